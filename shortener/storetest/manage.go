package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"snip/shortener"
)

// testVisits has many visit a link with few visits left at the same moment.
func testVisits(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	c := m.creation(host(1, 1), noon, "limited", "unlimited")
	c.Links[0].MaxVisits = 7
	if err := m.store.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	visits := func(callers int) (led int64) {
		var group sync.WaitGroup
		var found atomic.Int64
		for i := range callers {
			group.Go(func() {
				target, err := stores[i%len(stores)].Visit(t.Context(), "limited")
				switch {
				case err == nil && target.Destination == c.Links[0].Destination && target.Limited:
					found.Add(1)
				case !errors.Is(err, shortener.ErrGone):
					t.Errorf("a visit: %+v, %v", target, err)
				}
			})
		}
		group.Wait()
		return found.Load()
	}
	for _, row := range []struct{ callers, led int64 }{{6, 6}, {20, 1}, {20, 0}} {
		if led := visits(int(row.callers)); led != row.led {
			t.Errorf("%d of %d visits led on, want %d", led, row.callers, row.led)
		}
	}
	wantVisited(t, stores, "limited", 7)
	more := int64(8)
	if _, err := m.store.Change(t.Context(), "limited", shortener.Change{MaxVisits: &more}); err != nil {
		t.Fatal(err)
	}
	if led := visits(20); led != 1 {
		t.Errorf("%d visits led on after one more was allowed", led)
	}
	for range 3 {
		if target, err := m.store.Visit(t.Context(), "unlimited"); err != nil || target != c.Links[1].Target() {
			t.Errorf("a link without a limit: %+v, %v", target, err)
		}
	}
	wantVisited(t, stores, "unlimited", 0)
	_, err := m.store.Visit(t.Context(), "unknown")
	wantError(t, err, shortener.ErrNotFound)
	m.wantUsed(host(1, 1), noon, 2, 2, 2)
}

func wantVisited(t *testing.T, stores []shortener.Store, slug shortener.Slug, want int64) {
	t.Helper()
	for i, s := range stores {
		if got, err := s.Visited(t.Context(), slug); err != nil || got != want {
			t.Errorf("handle %d: %s has %d visits, %v, want %d", i, slug, got, err, want)
		}
	}
}

// testChange changes a link while others follow it: once a change has returned,
// nobody finds what was before.
func testChange(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	if err := m.create(host(1, 1), noon, "changing", "staying"); err != nil {
		t.Fatal(err)
	}
	destination := func(n int64) string { return fmt.Sprintf("https://example.org/%06d", n) }
	var (
		settled atomic.Int64 // the change that has returned last
		over    atomic.Bool
		readers sync.WaitGroup
	)
	write := func(n int64) {
		t.Helper()
		to, expiresAt, forward, direct := destination(n), noon.AddDate(0, 0, int(n)), n%2 == 0, n%3 == 0
		link, err := m.store.Change(t.Context(), "changing", shortener.Change{Destination: &to, ExpiresAt: &expiresAt, ForwardQuery: &forward, DirectRedirect: &direct})
		if err != nil || link.Destination != to || !link.ExpiresAt.Equal(expiresAt) || link.ForwardQuery != forward || link.DirectRedirect != direct {
			t.Fatalf("change %d: %+v, %v", n, link, err)
		}
		settled.Store(n)
	}
	write(0)
	for i := range 4 {
		readers.Go(func() {
			for !over.Load() {
				least := destination(settled.Load())
				target, err := stores[i%len(stores)].Follow(t.Context(), "changing")
				if err != nil || target.Destination < least {
					t.Errorf("after %s a visit finds %+v, %v", least, target, err)
					return
				}
			}
		})
	}
	for n := range int64(200) {
		write(n + 1)
	}
	over.Store(true)
	readers.Wait()
	for _, s := range stores {
		link, err := s.Get(t.Context(), "changing")
		if err != nil || link.Slug != "changing" || link.Day == "" || !link.CreatedAt.Equal(noon) {
			t.Errorf("what a change leaves alone: %+v, %v", link, err)
		}
	}
	if link, err := m.store.Change(t.Context(), "staying", shortener.Change{}); err != nil || link.Destination == "" {
		t.Errorf("a change of nothing: %+v, %v", link, err)
	}
	_, err := m.store.Change(t.Context(), "unknown", shortener.Change{})
	wantError(t, err, shortener.ErrNotFound)
	m.wantUsed(host(1, 1), noon, 2, 2, 2)
}

// testDelete: a deleted link is gone for good, its slug stays taken, and it was
// paid for.
func testDelete(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	c := m.creation(host(1, 1), noon, "deleted")
	c.Links[0].Token = shortener.NewToken().Hash()
	c.Links[0].MaxVisits = 5
	if err := m.store.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, s := range stores { // so that whoever keeps what is visited has it
		if _, err := s.Follow(t.Context(), "deleted"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.store.Visit(t.Context(), "deleted"); err != nil {
		t.Fatal(err)
	}
	if err := m.store.Delete(t.Context(), "deleted"); err != nil {
		t.Fatal(err)
	}
	wantVisited(t, stores, "deleted", 0)
	for i, s := range stores {
		if link, err := s.Get(t.Context(), "deleted"); err != nil || link != c.Links[0].Tombstone() {
			t.Errorf("handle %d: %+v, %v", i, link, err)
		}
		if target, err := s.Follow(t.Context(), "deleted"); err != nil || !target.Deleted || target.Destination != "" {
			t.Errorf("handle %d: a visit finds %+v, %v", i, target, err)
		}
		_, err := s.Visit(t.Context(), "deleted")
		wantError(t, err, shortener.ErrGone)
		_, err = s.Change(t.Context(), "deleted", shortener.Change{})
		wantError(t, err, shortener.ErrGone)
		wantError(t, s.Delete(t.Context(), "deleted"), shortener.ErrGone)
	}
	wantError(t, m.create(host(1, 2), noon, "deleted"), shortener.ErrSlugTaken)
	wantError(t, m.store.Delete(t.Context(), "unknown"), shortener.ErrNotFound)
	m.wantUsed(host(1, 1), noon, 1, 1, 1)
}

// testClicks adds visits of several links up, beside a link that is deleted
// meanwhile.
func testClicks(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	if err := m.create(host(1, 1), noon, "one", "two"); err != nil {
		t.Fatal(err)
	}
	add := func(s shortener.Store, slugs ...shortener.Slug) {
		t.Helper()
		visits := map[shortener.Slug]shortener.Visits{}
		for _, slug := range slugs {
			visits[slug] = shortener.Visits{
				Kinds:     [5]int64{shortener.Person: 2, shortener.Fetcher: 1},
				Days:      map[string]int64{"2026-11-29": 1, "2026-11-30": 1},
				Referrers: map[string]int64{"news.example": 2},
			}
		}
		if err := s.AddVisits(t.Context(), visits); err != nil {
			t.Fatal(err)
		}
	}
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() { add(stores[i%len(stores)], "one", "two", "unknown") })
	}
	group.Wait()
	want := shortener.Visits{
		Kinds:     [5]int64{shortener.Person: 20, shortener.Fetcher: 10},
		Days:      map[string]int64{"2026-11-29": 10, "2026-11-30": 10},
		Referrers: map[string]int64{"news.example": 20},
	}
	for _, s := range stores {
		for _, slug := range []shortener.Slug{"one", "two"} {
			if got, err := s.Visits(t.Context(), slug); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %+v, %v, want %+v", slug, got, err, want)
			}
		}
		if got, err := s.Visits(t.Context(), "unknown"); err != nil || got.Total() != 0 {
			t.Errorf("of an unknown link: %+v, %v", got, err)
		}
	}
	if err := m.store.Delete(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	add(stores[0], "one", "two")
	if link, err := m.store.Get(t.Context(), "two"); err != nil || !link.Deleted {
		t.Errorf("a visit that was counted late brought a link back: %+v, %v", link, err)
	}
	if got, err := m.store.Visits(t.Context(), "two"); err != nil || fmt.Sprint(got) != fmt.Sprint(shortener.Visits{}) {
		t.Errorf("of a deleted link is left %+v, %v", got, err)
	}
	if got, err := m.store.Visits(t.Context(), "one"); err != nil || got.Total() != 22 {
		t.Errorf("%+v, %v", got, err)
	}
}
