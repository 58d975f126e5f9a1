package main

import (
	"bytes"
	stdlog "log"
	"log/slog"
	"strings"
	"testing"
)

func TestServerLogNamesNoVisitor(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ message, want string }{
		{"http: panic serving 192.0.2.7:4242: boom: again\ngoroutine 1", `http: panic serving a request: boom: again\ngoroutine 1`},
		{"http: panic serving [2001:db8::7]:4242: boom", "http: panic serving a request: boom"},
		{"http: Accept error: too many open files; retrying in 5ms", "http: Accept error: too many open files; retrying in 5ms"},
	} {
		var out bytes.Buffer
		log := serverLog{slog.New(slog.NewTextHandler(&out, nil))}
		stdlog.New(log, "", 0).Print(row.message)
		if got := out.String(); !strings.Contains(got, `message="`+row.want+`"`) {
			t.Errorf("%q was logged as %s", row.message, got)
		}
	}
}

func TestLogIsJSONBesideATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newLog(&out).Info("hello")
	if got := out.String(); !strings.HasPrefix(got, "{") || !strings.Contains(got, `"msg":"hello"`) {
		t.Errorf("logged %q", got)
	}
}
