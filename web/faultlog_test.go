package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestFaultLog(t *testing.T) {
	t.Parallel()
	clock := &handClock{t: time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)}
	lines := &logLines{}
	faults := newFaultLog(slog.New(slog.NewTextHandler(lines, nil)), clock.now)
	for _, step := range []struct {
		after time.Duration
		kind  string
		want  string // at the end of the log; empty is no new line
	}{
		{0, "store", "kind=store error=broken suppressed=0\n"},
		{time.Second, "store", ""},
		{time.Second, "clock", "kind=clock error=broken suppressed=0\n"},
		{57 * time.Second, "store", ""},
		{time.Second, "store", "kind=store error=broken suppressed=2\n"},
		{time.Second, "store", ""},
		{-time.Hour, "store", "kind=store error=broken suppressed=1\n"},
		{time.Hour, "store", "kind=store error=broken suppressed=0\n"},
	} {
		before := lines.String()
		clock.advance(step.after)
		faults.report(step.kind, errors.New("broken"))
		line := strings.TrimPrefix(lines.String(), before)
		if step.want == "" && line != "" || !strings.HasSuffix(line, step.want) {
			t.Errorf("%+v: logged %q", step, line)
		}
	}
}

// A client that left is no fault of ours, and whoever still listens must not be
// told of a link.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	ctx, leave := context.WithCancel(t.Context())
	s.store.fail = func() error {
		leave()
		return ctx.Err()
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/links", strings.NewReader(goodJSON))
	r.Header.Set("Content-Type", mediaJSON)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	wantAnswer(t, w, http.StatusServiceUnavailable, "unavailable")
	if log := s.log.String(); !strings.Contains(log, "status=499") || strings.Contains(log, "ERROR") {
		t.Errorf("log:\n%s", log)
	}
}
