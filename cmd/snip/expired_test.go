package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snip/shortener"
)

func TestParseBefore(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-11-29T12:00:00Z": "2026-11-29T12:00:00Z", "2026-11-29T12:00:00+02:00": "2026-11-29T10:00:00Z", "2026-11-01": "2026-11-01T00:00:00Z",
		"30d": "2026-10-30T12:00:00Z", "0d": "2026-11-29T12:00:00Z", "36h": "2026-11-28T00:00:00Z", "90m": "2026-11-29T10:30:00Z",
		"": "", "yesterday": "", "-1d": "", "-1h": "", "d": "", "1.5d": "", "99999999d": "", "29.11.2026": "", "2026-11-29 12:00": "", "2026-02-30": "",
	} {
		got, err := parseBefore(text, now)
		if (err == nil) != (want != "") || err == nil && got.Format(time.RFC3339) != want {
			t.Errorf("%q is read as %s, %v, want %q", text, got, err, want)
		}
	}
}

// TestDeleteExpiredCommand counts and deletes links of a running server, and looks at
// its file afterwards.
func TestDeleteExpiredCommand(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "--throttle-every=0")
	var lines strings.Builder
	for i := range 600 {
		fmt.Fprintf(&lines, `{"slug":"old-%d","url":"https://example.org/","created_at":"2019-01-01T00:00:00Z","expires_at":"2020-01-01T00:00:%02dZ"}`+"\n", i, i%60)
	}
	lines.WriteString(`{"slug":"never","url":"https://example.org/","created_at":"2019-01-01T00:00:00Z"}` + "\n")
	if out, err := command(t, p, strings.NewReader(lines.String()), "import", "-"); err != nil {
		t.Fatal(err, out)
	}
	mustAsk(t, 201, "POST", p.url+"/api/links", "application/json", `{"url":"https://example.org/","slug":"made"}`)
	for _, row := range []struct {
		args []string
		want string // empty is an error
	}{
		{[]string{"--expired-before", "2020-01-01T00:00:30Z", "--dry-run"}, "300 links to be deleted that expired before 2020-01-01T00:00:30Z."},
		{[]string{"--expired-before", "2020-01-01T00:00:30Z", "--note", "tidy"}, "300 links deleted that expired before 2020-01-01T00:00:30Z."},
		{[]string{"--expired-before", "2020-01-01T00:00:30Z"}, "0 links deleted"},
		{[]string{"--expired-before", "2020-01-01"}, "0 links deleted that expired before 2020-01-01T00:00:00Z."},
		{[]string{"--expired-before", "30d", "--dry-run"}, "300 links to be deleted"},
		{[]string{"--expired-before", "2999-01-01"}, ""},
		{[]string{"--expired-before", "soon"}, ""},
		{[]string{"--slug", "made", "--dry-run"}, ""},
		{[]string{"--slug", "made", "--expired-before", "30d"}, ""},
		{[]string{"--dry-run"}, ""},
	} {
		out, err := command(t, p, nil, append([]string{"links", "delete"}, row.args...)...)
		if (err == nil) != (row.want != "") || !strings.Contains(out, row.want) {
			t.Errorf("%v: %v: %s", row.args, err, out)
		}
	}
	out, err := command(t, p, nil, "audit")
	if err != nil || strings.Count(out, "expired before 2020-01-01T00:00:30Z  250") != 1 || strings.Count(out, `expired before 2020-01-01T00:00:30Z  50`) != 1 || !strings.Contains(out, `"tidy"`) {
		t.Errorf("the audit log: %v\n%s", err, out)
	}
	mustAsk(t, 410, "GET", p.url+"/old-0", "", "")
	mustAsk(t, 302, "GET", p.url+"/never", "", "")
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	content := audit(t, filepath.Join(p.cmd.Dir, "snip.db"))
	if n := len(content.slugs); n != 602 {
		t.Errorf("%d links and tombstones are left, want 602", n)
	}
}

// TestClearBefore moves on with the days of the history, and not with a clock that jumps
// ahead.
func TestClearBefore(t *testing.T) {
	t.Parallel()
	clock := func() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }
	s := openSite(t, filepath.Join(t.TempDir(), "snip.db"), clock)
	service := shortener.New(shortener.Config{Store: s.store, Now: clock})
	check := func(now string, days int, want string) {
		t.Helper()
		instant, err := time.Parse(time.DateTime, now)
		if err != nil {
			t.Fatal(err)
		}
		before, err := clearBefore(t.Context(), service, instant, days)
		if got := before.Format(time.DateOnly); err != nil || (want == "") != before.IsZero() || want != "" && got != want {
			t.Errorf("at %s, %d days: %s, %v, want %q", now, days, got, err, want)
		}
	}
	check("2026-11-29 12:00:00", 30, "")
	for _, day := range []string{"2026-10-20", "2026-10-28", "2026-10-30", "2026-11-28", "2026-11-29"} {
		if err := s.store.AddHistory(t.Context(), shortener.DayRecord{Day: day, Created: 1}); err != nil {
			t.Fatal(err)
		}
	}
	check("2026-11-29 12:00:00", 30, "2026-10-30")
	check("2026-11-28 12:00:00", 30, "2026-10-28") // nothing was counted on the day after it
	check("2026-11-29 12:00:00", 60, "")
	check("2026-11-30 12:00:00", 1, "2026-11-29")
	check("2026-11-29 12:00:00", 5000, "")
	check("2031-11-29 12:00:00", 30, "2026-11-29") // a jump of years
	if err := s.store.AddHistory(t.Context(), shortener.DayRecord{Day: "2031-11-29", Created: 1}); err != nil {
		t.Fatal(err)
	}
	check("2031-12-28 12:00:00", 30, "2026-11-29")
	check("2031-12-29 12:00:00", 30, "2031-11-29")
	check("2031-12-29 12:00:00", 2000, "2026-07-08") // further back than the history needs to confirm
}

// TestClearOnce deletes by itself where it leads, and leaves counters that equal links
// and tombstones.
func TestClearOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	s := openSite(t, filepath.Join(t.TempDir(), "snip.db"), clock)
	service := shortener.New(shortener.Config{Store: s.store, Now: clock})
	for i := range 9 {
		if got, slug := s.create(t, request{client: i, destination: "https://example.org/"}); got != 201 {
			t.Fatalf("%d %s", got, slug)
		} else if i%3 == 0 {
			expiry := now.Add(time.Duration(i+1) * time.Minute)
			if _, err := s.store.Change(t.Context(), shortener.Slug(slug), shortener.Change{ExpiresAt: &expiry}); err != nil {
				t.Fatal(err)
			}
		}
	}
	now = now.Add(time.Hour)
	before := now.Add(-54 * time.Minute) // of 1, 4 and 7 minutes two
	leads := false
	clear := func(ctx context.Context) int {
		t.Helper()
		n, err := clearOnce(ctx, service, before, 30, func() bool { return leads })
		if err != nil {
			t.Error(err)
		}
		return n
	}
	if n := clear(t.Context()); n != 0 {
		t.Errorf("%d links were deleted by one that does not lead", n)
	}
	leads = true
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if n := clear(over); n != 0 {
		t.Errorf("%d links were deleted after the end", n)
	}
	first, again := clear(t.Context()), clear(t.Context())
	if first != 2 || again != 0 {
		t.Errorf("%d links were deleted, then %d, want 2 and none", first, again)
	}
	lines, err := service.Audit(t.Context(), 0, 9)
	if err != nil || len(lines) != 1 || lines[0].Links != 2 || lines[0].Note != "--delete-expired-after 30" {
		t.Errorf("the audit log has %+v, %v", lines, err)
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	if content := audit(t, s.file); len(content.slugs) != 9 {
		t.Errorf("%d links and tombstones are left, want 9", len(content.slugs))
	}
}
