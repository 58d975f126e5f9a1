package shortener_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"snip/shortener"
)

// What is kept of a link's visits stays within bounds, and no visit is lost but
// days that are too old.
func TestVisitsStayWithinBounds(t *testing.T) {
	t.Parallel()
	var v shortener.Visits
	first := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 500 {
		v.Add(shortener.Visits{
			Kinds:     [5]int64{shortener.Person: int64(i) + 1, shortener.Crawler: 2},
			Days:      map[string]int64{first.AddDate(0, 0, i).Format(time.DateOnly): int64(i) + 1},
			Referrers: map[string]int64{fmt.Sprintf("host-%03d.example", i): int64(i) + 1},
		})
	}
	if v.Total() != 500*501/2 || v.Kinds[shortener.Crawler] != 1000 {
		t.Errorf("kinds %v", v.Kinds)
	}
	if len(v.Days) != shortener.VisitDays || v.Days["2025-01-01"] != 0 || v.Days[first.AddDate(0, 0, 499).Format(time.DateOnly)] != 500 {
		t.Errorf("%d days", len(v.Days))
	}
	var referred int64
	for _, n := range v.Referrers {
		referred += n
	}
	if len(v.Referrers) > shortener.VisitReferrers+1 || referred != v.Total() || v.Referrers["host-499.example"] != 500 {
		t.Errorf("%d referrers with %d visits of %d", len(v.Referrers), referred, v.Total())
	}
}

// A host that comes late and slowly finds a place among those that came once.
func TestLateReferrer(t *testing.T) {
	t.Parallel()
	var v shortener.Visits
	spam := map[string]int64{}
	for i := range 200 {
		spam[fmt.Sprintf("spam-%03d.example", i)] = 2
	}
	v.Add(shortener.Visits{Referrers: spam})
	for range 8 {
		v.Add(shortener.Visits{Referrers: map[string]int64{"real.example": 1}})
	}
	if got := v.Referrers["real.example"]; got != 8 {
		t.Errorf("real.example has %d visits, want 8: %v", got, v.Referrers)
	}
}

// Many count while what they counted is stored: every visit is there in the end.
func TestCountedVisitsAreStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	for _, slug := range []string{"first", "second"} {
		if _, err := f.create(shortener.NewLink{URL: "https://example.org/", Slug: slug}); err != nil {
			t.Fatal(err)
		}
	}
	const visitors, each = 8, 500
	var group sync.WaitGroup
	for i := range visitors {
		group.Go(func() {
			for n := range each {
				f.CountVisit([]shortener.Slug{"first", "second", "unknown"}[n%3], shortener.Visitor(i%2), "news.example")
			}
		})
	}
	for range 20 {
		if lost, err := f.StoreVisits(t.Context(), func() {}); lost != 0 || err != nil {
			t.Errorf("%d lost, %v", lost, err)
		}
	}
	group.Wait()
	f.clock.set(f.clock.read().AddDate(0, 0, 1))
	f.CountVisit("first", shortener.Person, "")
	if lost, err := f.StoreVisits(t.Context(), func() {}); lost != 0 || err != nil {
		t.Errorf("%d lost, %v", lost, err)
	}
	got, err := f.store.Visits(t.Context(), "first")
	const half = visitors / 2 * 167 // of each visitor's 500, a third
	if err != nil || got.Total() != half+1 || got.Kinds[shortener.Crawler] != half ||
		got.Days["2026-11-29"] != half || got.Days["2026-11-30"] != 1 || got.Referrers["news.example"] != half {
		t.Errorf("%+v, %v", got, err)
	}
}

// Visits that cannot be stored are lost and told of, and the next ones are stored.
func TestVisitsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	if _, err := f.create(shortener.NewLink{URL: "https://example.org/", Slug: "first"}); err != nil {
		t.Fatal(err)
	}
	f.store.fail["visits"] = errors.New("disk on fire")
	for range 3 {
		f.CountVisit("first", shortener.Person, "")
	}
	if lost, err := f.StoreVisits(context.Background(), func() {}); lost != 3 || !errors.Is(err, shortener.ErrUnavailable) {
		t.Errorf("%d lost, %v", lost, err)
	}
	delete(f.store.fail, "visits")
	f.CountVisit("first", shortener.Person, "")
	if lost, err := f.StoreVisits(context.Background(), func() {}); lost != 0 || err != nil {
		t.Errorf("%d lost, %v", lost, err)
	}
	if got, err := f.store.Visits(t.Context(), "first"); err != nil || got.Total() != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	// A flood of links that nobody stores is bounded and told of.
	for i := range 200_000 {
		f.CountVisit(shortener.Slug(fmt.Sprintf("flood-%d", i)), shortener.Person, "")
	}
	if lost, err := f.StoreVisits(context.Background(), func() {}); lost < 100_000 || err != nil {
		t.Errorf("%d lost, %v", lost, err)
	}
}
