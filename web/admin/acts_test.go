package admin

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"snip/shortener"
	"snip/shortener/memstore"
)

// What an operator reads or brings in as a whole, and who comes and goes, is in the
// audit log.
func TestTransfersAndSessionsAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	store := &brokenStore{Store: memstore.New()}
	_, service := openAdmin(t, store, time.Now)
	var log strings.Builder
	h, err := New(Config{
		Service: service, Token: token, Origin: origin, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now,
		Backup: func(_ context.Context, w io.Writer) error { _, err := io.WriteString(w, "the file"); return err },
	})
	if err != nil {
		t.Fatal(err)
	}
	do := func(method, target, body string, status int, contains string) {
		t.Helper()
		wantAnswer(t, ask(h, method, target, "Bearer "+token, body), status, contains)
	}
	line := `{"slug":"abc","url":"https://example.org/","created_at":"2026-11-29T12:00:00Z"}` + "\n"
	do("POST", "/api/import", line+strings.Replace(line, "abc", "def", 1), http.StatusOK, `"created"`)
	do("POST", "/api/import", line+"{\n"+strings.Replace(line, "org", "net", 1), http.StatusOK, `"present"`)
	do("GET", "/api/export", "", http.StatusOK, `"abc"`)
	do("GET", "/api/export?format=csv", "", http.StatusOK, "abc")
	do("GET", "/api/export?format=xml", "", http.StatusBadRequest, "")
	do("GET", "/api/backup", "", http.StatusOK, "the file")
	visitor := &visitor{t: t, h: h}
	if w := visitor.shows("wrong-" + token); w.Code != http.StatusForbidden {
		t.Errorf("a wrong token: %d", w.Code)
	}
	if w := visitor.shows(token); w.Code != http.StatusSeeOther {
		t.Errorf("signing in: %d", w.Code)
	}
	want := []shortener.AuditLine{
		{Action: "import", Links: 2, Note: "present 0, refused 0"}, {Action: "import", Note: "present 1, refused 2"},
		{Action: "export", Target: "jsonl"}, {Action: "export", Target: "csv"}, {Action: "backup"}, {Action: "sign in"},
	}
	lines, err := service.Audit(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(lines)
	for i := range lines {
		lines[i].Number, lines[i].At = 0, time.Time{}
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the audit log has\n%+v, want\n%+v", lines, want)
	}

	// Without its line nothing is exported; a backup and the page are the way out of it.
	store.broken = true
	if w := ask(h, "GET", "/api/export", "Bearer "+token, ""); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "abc") {
		t.Errorf("an export without its line: %d %s", w.Code, w.Body)
	}
	do("POST", "/api/import", strings.Replace(line, "abc", "ghi", 1), http.StatusServiceUnavailable, "")
	do("GET", "/api/backup", "", http.StatusOK, "the file")
	if w := visitor.shows(token); w.Code != http.StatusSeeOther {
		t.Errorf("signing in without its line: %d", w.Code)
	}
	for _, action := range []string{"backup", `"sign in"`} {
		if text := `msg="an act is missing in the audit log" action=` + action; !strings.Contains(log.String(), text) {
			t.Errorf("the log lacks %q:\n%s", text, &log)
		}
	}
}

// An operator that acts on what another has changed meanwhile is told so, with a status
// of its own.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	store := &meanwhile{Store: memstore.New()}
	h, service := openAdmin(t, store, time.Now)
	if _, _, err := service.CreateKey(t.Context(), "script", 5); err != nil {
		t.Fatal(err)
	}
	_, other := openAdmin(t, store.Store, time.Now)
	for _, method := range []string{"PATCH", "DELETE"} {
		store.run = func() {
			if err := other.RevokeKey(t.Context(), "script", 0); err != nil {
				t.Error(err)
			}
			if _, _, err := other.CreateKey(t.Context(), "script", 5); err != nil {
				t.Error(err)
			}
		}
		w := ask(h, method, "/api/keys?name=script", "Bearer "+token, `{"daily":6}`)
		wantAnswer(t, w, http.StatusConflict, `"code":"changed"`)
		wantAnswer(t, w, http.StatusConflict, "was changed meanwhile; look again, and try again.")
	}
}

// meanwhile runs a function once, before the next act.
type meanwhile struct {
	shortener.Store
	run func()
}

func (s *meanwhile) Act(ctx context.Context, act shortener.Act) (shortener.Done, error) {
	if run := s.run; run != nil {
		s.run = nil
		run()
	}
	return s.Store.Act(ctx, act)
}
