package web

import (
	"log/slog"
	"sync"
	"time"
)

// faultPause is how often a fault of one kind is logged at most. A store that
// fails does so for every request, and the first line says it all.
const faultPause = time.Minute

// faultLog logs faults of ours: the first of a kind at once, the next ones at
// most once a minute with the number that was left out. Kinds are words of this
// package, never text from a request, so there are few.
type faultLog struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	kinds map[string]faults
}

// faults is what has happened of one kind.
type faults struct {
	logged     time.Time // when it was last logged
	suppressed int       // how many were not, since
}

func newFaultLog(log *slog.Logger, now func() time.Time) *faultLog {
	return &faultLog{log: log, now: now, kinds: make(map[string]faults)}
}

// report logs the fault, or counts it.
func (l *faultLog) report(kind string, err error, attrs ...any) {
	l.mu.Lock()
	f, seen := l.kinds[kind]
	now := l.now()
	// A clock that went back would keep the log silent until it has caught up.
	due := !seen || now.Sub(f.logged) >= faultPause || now.Before(f.logged)
	if due {
		l.kinds[kind] = faults{logged: now}
	} else {
		f.suppressed++
		l.kinds[kind] = f
	}
	l.mu.Unlock()
	if due {
		l.log.Error("a request could not be served", append([]any{"kind", kind, "error", err, "suppressed", f.suppressed}, attrs...)...)
	}
}
