package main

import (
	"io"
	"log/slog"
	"os"
	"strings"
)

// newLog writes text for a person at a terminal, and JSON for anything else.
func newLog(w io.Writer) *slog.Logger {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return slog.New(slog.NewTextHandler(w, nil))
		}
	}
	return slog.New(slog.NewJSONHandler(w, nil))
}

// serverLog takes what net/http itself has to say, one message a call.
type serverLog struct{ log *slog.Logger }

// Write drops the one thing in such messages that identifies a visitor: the
// address in "http: panic serving 192.0.2.1:4242: ...".
func (s serverLog) Write(p []byte) (int, error) {
	message := strings.TrimSuffix(string(p), "\n")
	const mark = "panic serving "
	if before, rest, ok := strings.Cut(message, mark); ok {
		if _, cause, ok := strings.Cut(rest, ": "); ok {
			message = before + mark + "a request: " + cause
		}
	}
	s.log.Warn("http server", "message", message)
	return len(p), nil
}
