package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

// TestClockJumps sets the clock to and fro while a client that may make three
// links a day goes on making them. The program's own clock is replaced: a static
// binary reads it without a call that could be caught on the way.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	night := time.Date(2026, 11, 29, 0, 30, 0, 0, time.UTC)
	const made, full, refused = http.StatusCreated, http.StatusTooManyRequests, http.StatusServiceUnavailable
	const day = "2026-11-29"
	type step struct {
		at     time.Time
		accept bool // the operator says that the clock is right, once the day's counters are swept
		want   []int
	}
	for name, row := range map[string]struct {
		steps     []step
		forgotten map[string]int64 // links whose counters were swept, by day
	}{
		"forward a week and back, no link meanwhile": {
			[]step{{noon, false, []int{made}}, {noon.AddDate(0, 0, 7), false, nil}, {noon, false, []int{made, made, full}}}, nil,
		},
		"forward a week and back, with a link": {
			[]step{
				{noon, false, []int{made, made}},
				{noon.AddDate(0, 0, 7), false, []int{made}},
				{noon, false, []int{refused, refused}},
				{noon.AddDate(0, 0, 5), false, []int{refused}},
				{noon.AddDate(0, 0, 6), false, []int{made, made, made, full}},
				{noon.AddDate(0, 0, 7), false, []int{made, made, full}}, // which has caught up
			}, map[string]int64{"2026-11-29": 2},
		},
		"forward a week and back, and the operator accepts": {
			[]step{
				{noon, false, []int{made, made}},
				{noon.AddDate(0, 0, 7), false, []int{made}},
				{noon, false, []int{refused}},
				{noon, true, []int{made, made, made, full}},             // from zero, as the manual says
				{noon.AddDate(0, 0, 7), false, []int{made, made, full}}, // continued
			}, map[string]int64{"2026-11-29": 5},
		},
		"back an hour": {
			[]step{{noon, false, []int{made}}, {noon.Add(-time.Hour), false, []int{made}}, {noon, false, []int{made, full}}}, nil,
		},
		"back over midnight": {
			[]step{
				{night, false, []int{made, made, made, full}},
				{night.Add(-time.Hour), false, []int{made, made, made, full}},
				{night, false, []int{full}},
			}, nil,
		},
		"to 1970 and back": {
			[]step{
				{noon, false, []int{made}},
				{time.Unix(60, 0).UTC(), false, []int{refused, refused}},
				{noon, false, []int{made, made, full}},
			}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := noon
			s := openSite(t, filepath.Join(t.TempDir(), "snip.db"), func() time.Time { return now }, "--quota-client=3")
			links := map[string]string{}
			for i, step := range row.steps {
				now = step.at
				if step.accept {
					swept := func() bool {
						_, err := s.store.Secret(t.Context(), day)
						return errors.Is(err, shortener.ErrNotFound)
					}
					if err := eventually("the sweep of "+day, swept); err != nil {
						t.Fatal(err)
					}
					if _, err := s.store.Act(t.Context(), shortener.Act{Line: shortener.AuditLine{At: now}, AcceptClock: quota.DayOf(now).Label}); err != nil {
						t.Fatal(err)
					}
				}
				for n, want := range step.want {
					destination := fmt.Sprintf("https://example.org/%d/%d", i, n)
					got, slug := s.create(t, request{client: 1, destination: destination})
					if got != want {
						t.Fatalf("step %d: creation %d at %v was answered with %d, want %d", i, n, now, got, want)
					}
					if got == made {
						links[slug] = destination
					}
				}
				if ready := s.get("/readyz"); slices.Contains(step.want, refused) &&
					(ready.Code != refused || !strings.Contains(ready.Body.String(), "clock")) {
					t.Errorf("step %d: /readyz is %d %s", i, ready.Code, ready.Body)
				}
				for slug, destination := range links {
					if got := s.get("/" + slug); got.Header().Get("Location") != destination {
						t.Errorf("step %d: /%s is %d, to %q", i, slug, got.Code, got.Header().Get("Location"))
					}
				}
			}
			if err := s.store.Close(); err != nil {
				t.Fatal(err)
			}
			content, err := readFile(s.file)
			if err != nil {
				t.Fatal(err)
			}
			if err := content.counted(row.forgotten); err != nil {
				t.Error(err)
			}
			if err := content.holds(links); err != nil || len(content.slugs) != len(links) {
				t.Errorf("%d links in the file, want %d: %v", len(content.slugs), len(links), err)
			}
		})
	}
}

// get sends a visitor's request.
func (s site) get(path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}
