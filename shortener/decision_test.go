package shortener_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

// TestMidnight decides the day when the input is valid, not when the commit lands.
func TestMidnight(t *testing.T) {
	t.Parallel()
	f := newFixture(t, quota.Policy{Client: 100, Network: 100, Service: 1000})
	f.clock.set(time.Date(2026, 11, 29, 23, 59, 59, 900_000_000, time.UTC))
	if _, err := f.create(shortener.NewLink{URL: "https://example.org/"}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	days := make(chan string, 200)
	for i := range 200 {
		wg.Go(func() {
			if i == 50 {
				f.clock.set(time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC))
			}
			link, err := f.create(shortener.NewLink{URL: "https://example.org/"})
			if err != nil && !errors.Is(err, quota.ErrExceeded) {
				t.Errorf("number %d: %v", i, err)
			}
			if err == nil {
				days <- link.Day
				if !strings.HasPrefix(link.CreatedAt.Format(time.DateOnly), link.Day) {
					t.Errorf("created at %v but charged to %s", link.CreatedAt, link.Day)
				}
			}
		})
	}
	wg.Wait()
	close(days)
	made := map[string]int64{"2026-11-29": 1}
	for day := range days {
		made[day]++
	}
	for day, n := range made {
		if n > 100 {
			t.Errorf("%d links on %s", n, day)
		}
	}
	f.wantUsed(t, made["2026-11-30"])
	f.clock.set(time.Date(2026, 11, 29, 23, 59, 59, 0, time.UTC))
	f.wantUsed(t, made["2026-11-29"])
}

// TestMidnightWithinACreation lets the day turn between any two readings of the
// clock: a link made at the last instant of a day belongs to that day.
func TestMidnightWithinACreation(t *testing.T) {
	t.Parallel()
	lastInstant := time.Date(2026, 11, 29, 23, 59, 59, 999_999_000, time.UTC)
	f := newFixture(t, standard)
	readings := 0
	service := shortener.New(shortener.Config{Store: f.store, Policy: standard, Now: func() time.Time {
		readings++
		return lastInstant.Add(time.Duration(readings-1) * time.Second)
	}})
	made, err := service.Create(t.Context(), someone, shortener.NewLink{URL: "https://example.org/"}, "")
	link := made.Link
	if err != nil || link.CreatedAt != lastInstant || link.Day != "2026-11-29" {
		t.Errorf("created at %v on %s, %v", link.CreatedAt, link.Day, err)
	}
	if readings != 1 {
		t.Errorf("the clock was read %d times", readings)
	}
	f.clock.set(lastInstant)
	f.wantUsed(t, 1)
}

// TestLookNeverAdmits fills the last unit between the look and the decision.
func TestLookNeverAdmits(t *testing.T) {
	t.Parallel()
	f := newFixture(t, quota.Policy{Client: 1})
	overtaken := &overtakenStore{Store: f.store, overtake: func() {
		if _, err := f.create(shortener.NewLink{URL: "https://example.org/"}); err != nil {
			t.Error(err)
		}
	}}
	slow := shortener.New(shortener.Config{Store: overtaken, Policy: quota.Policy{Client: 1}, Now: f.clock.read})
	_, err := slow.Create(t.Context(), someone, shortener.NewLink{URL: "https://example.org/"}, "")
	if !errors.Is(err, quota.ErrExceeded) {
		t.Errorf("got error %v, want ErrExceeded", err)
	}
	if f.store.calls["used"] != 2 || f.store.calls["create"] != 2 {
		t.Errorf("calls %v, want each creation to look and then to ask the store", f.store.calls)
	}
	f.wantUsed(t, 1)
}

// overtakenStore lets another creation pass just before its own.
type overtakenStore struct {
	shortener.Store
	overtake func()
}

func (s *overtakenStore) Create(ctx context.Context, c shortener.Creation) error {
	s.overtake()
	return s.Store.Create(ctx, c)
}
