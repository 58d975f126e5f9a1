package storetest

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

func testRoundTrip(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	c := m.creation(host(1, 1), noon, "round-trip")
	link := &c.Links[0]
	link.Destination = "https://münchen.example/a%2Fb//../c d\"\\?q=%25+&&k#é"
	link.CreatedAt = noon.Add(123456 * time.Microsecond)
	link.ExpiresAt = noon.Add(time.Hour + time.Microsecond)
	link.MaxVisits, link.ForwardQuery, link.ShowsTarget, link.DirectRedirect = 3, true, true, true
	want := *link
	if err := m.store.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	*link = shortener.Link{} // the store has a copy of its own
	for i, s := range stores {
		got, err := s.Get(t.Context(), "round-trip")
		if err != nil || got != want {
			t.Errorf("handle %d: got %+v, %v, want %+v", i, got, err, want)
		}
		for range 2 { // a store may keep what is visited at hand
			if target, err := s.Follow(t.Context(), "round-trip"); err != nil || target != want.Target() {
				t.Errorf("handle %d: a visit finds %+v, %v, want %+v", i, target, err, want.Target())
			}
		}
		_, err = s.Get(t.Context(), "Round-Trip")
		wantError(t, err, shortener.ErrNotFound)
		_, err = s.Follow(t.Context(), "Round-Trip")
		wantError(t, err, shortener.ErrNotFound)
	}
}

func testSecret(t *testing.T, stores []shortener.Store) {
	_, err := stores[0].Secret(t.Context(), "2026-11-29")
	wantError(t, err, shortener.ErrNotFound)
	first, err := stores[0].EnsureSecret(t.Context(), "2026-11-29")
	if err != nil || first == (quota.Secret{}) {
		t.Fatalf("EnsureSecret: %v, %v", first, err)
	}
	for _, s := range stores {
		again, err := s.EnsureSecret(t.Context(), "2026-11-29")
		if err != nil || again != first {
			t.Errorf("EnsureSecret again: %v, %v, want %v", again, err, first)
		}
		read, err := s.Secret(t.Context(), "2026-11-29")
		if err != nil || read != first {
			t.Errorf("Secret: %v, %v, want %v", read, err, first)
		}
	}
	other, err := stores[0].EnsureSecret(t.Context(), "2026-11-30")
	if err != nil || other == first {
		t.Errorf("another day: %v, %v, want a secret of its own", other, err)
	}
}

func testJourney(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	who, slugs := host(1, 1), names("journey", 51)
	for i, slug := range slugs[:50] {
		m.store = stores[i%len(stores)]
		if err := m.create(who, noon, slug); err != nil {
			t.Fatalf("link %d: %v", i+1, err)
		}
		m.wantUsed(who, noon, int64(i+1), int64(i+1), int64(i+1))
	}
	wantLevel(t, m.create(who, noon, slugs[50]), quota.LevelClient)
	m.wantUsed(who, noon, 50, 50, 50)
	m.wantLinks(50, slugs...)
}

func testLevels(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], quota.Policy{Client: 2, Network: 3, Service: 4}}
	step := func(who quota.Client, slug string, refusedBy quota.Level) {
		t.Helper()
		err := m.create(who, noon, slug)
		if refusedBy != "" {
			wantLevel(t, err, refusedBy)
		} else if err != nil {
			t.Errorf("%s: %v", slug, err)
		}
	}
	step(host(1, 1), "one", "")
	step(host(1, 1), "two", "")
	step(host(1, 1), "three", quota.LevelClient)
	m.wantUsed(host(1, 1), noon, 2, 2, 2)
	step(host(1, 2), "four", "")
	step(host(1, 2), "five", quota.LevelNetwork)
	step(host(1, 1), "six", quota.LevelNetwork) // client and network are full: the wider is named
	m.wantUsed(host(1, 2), noon, 3, 3, 1)
	step(host(2, 1), "seven", "")
	step(host(3, 1), "eight", quota.LevelService)
	m.wantUsed(host(3, 1), noon, 4, 0, 0)
	m.wantLinks(4, "one", "two", "three", "four", "five", "six", "seven", "eight")
}

func testNewcomers(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], quota.Policy{Client: 5, Network: 6, Service: 10, Newcomers: 3}}
	for i, slug := range names("before", 7) {
		if err := m.create(host(i%2, 1), noon, slug); err != nil {
			t.Fatal(err)
		}
	}
	wantLevel(t, m.create(host(0, 1), noon, "returning"), quota.LevelService)
	wantLevel(t, m.create(host(0, 2), noon, "neighbour"), quota.LevelService)
	wantLevel(t, m.create(host(7, 1), noon, "batch-1", "batch-2"), quota.LevelService)
	if err := m.create(host(7, 1), noon, "newcomer"); err != nil {
		t.Errorf("a newcomer's first link: %v", err)
	}
	wantLevel(t, m.create(host(7, 1), noon, "second"), quota.LevelService)
	wantLevel(t, m.create(host(7, 2), noon, "same-net"), quota.LevelService)
	for n := 8; n < 10; n++ {
		if err := m.create(host(n, 1), noon, names("last", n+1)[n]); err != nil {
			t.Errorf("newcomer %d: %v", n, err)
		}
	}
	wantLevel(t, m.create(host(11, 1), noon, "too-late"), quota.LevelService)
	m.wantUsed(host(11, 1), noon, 10, 0, 0)
}

func testTakenSlug(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	if err := m.create(host(1, 1), noon, "mine"); err != nil {
		t.Fatal(err)
	}
	wantError(t, m.create(host(2, 1), noon, "mine"), shortener.ErrSlugTaken)
	m.wantUsed(host(2, 1), noon, 1, 0, 0)
	m.wantUsed(host(1, 1), noon, 1, 1, 1)
	if err := m.create(host(2, 1), noon, "Mine"); err != nil {
		t.Errorf("a slug that differs in case: %v", err)
	}
}

func testOrder(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], quota.Policy{Client: 1}}
	if err := m.create(host(1, 1), noon, "mine"); err != nil {
		t.Fatal(err)
	}
	// Whoever is full cannot probe which slugs exist.
	wantLevel(t, m.create(host(1, 1), noon, "mine"), quota.LevelClient)
	// And a clock that is not trusted is said before either.
	late := m.creation(host(1, 1), noon, "mine")
	late.Day = "2026-11-27"
	wantError(t, m.store.Create(t.Context(), late), quota.ErrClock)
}

func testBatch(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], quota.Policy{Client: 5}}
	if err := m.create(host(1, 1), noon, "one", "two", "three"); err != nil {
		t.Fatal(err)
	}
	wantLevel(t, m.create(host(1, 1), noon, "four", "five", "six"), quota.LevelClient)
	wantError(t, m.create(host(1, 1), noon, "seven", "two"), shortener.ErrSlugTaken)
	m.wantUsed(host(1, 1), noon, 3)
	m.wantLinks(3, "one", "two", "three", "four", "five", "six", "seven")
	if err := m.create(host(1, 1), noon, "four", "five"); err != nil {
		t.Errorf("a batch that just fits: %v", err)
	}
	m.wantUsed(host(1, 1), noon, 5)
}

func testOddCharges(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	for name, change := range map[string]func(*quota.Charge){
		"a limit of zero":   func(c *quota.Charge) { c.Max, c.Reserved = 0, 0 },
		"a cost of zero":    func(c *quota.Charge) { c.Cost = 0 },
		"a negative cost":   func(c *quota.Charge) { c.Cost = -1 },
		"an enormous cost":  func(c *quota.Charge) { c.Cost = math.MaxInt64 },
		"a negative limit":  func(c *quota.Charge) { c.Max = -1 },
		"more kept than is": func(c *quota.Charge) { c.Reserved = c.Max + 1 },
	} {
		c := m.creation(host(1, 1), noon, "odd")
		change(&c.Charges[len(c.Charges)-1])
		err := m.store.Create(t.Context(), c)
		if err == nil {
			t.Errorf("%s was admitted", name)
		}
		if !errors.Is(err, quota.ErrExceeded) && (!errors.Is(err, quota.ErrInvalidCharge) || !errors.Is(err, shortener.ErrUnavailable)) {
			t.Errorf("%s: got error %v, want ErrInvalidCharge as a kind of ErrUnavailable", name, err)
		}
	}
	m.wantUsed(host(1, 1), noon, 0, 0, 0)
	m.wantLinks(0, "odd")
	// No level at all: a link without a count, if the operator wants it so.
	m.policy = quota.Policy{}
	if err := m.create(host(1, 1), noon, "free"); err != nil {
		t.Error(err)
	}
	m.wantLinks(1, "free")
}

func testDays(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], quota.Policy{Client: 2}}
	who := host(1, 1)
	lastInstant := time.Date(2026, 11, 29, 23, 59, 59, 999_999_000, time.UTC)
	midnight := lastInstant.Add(time.Microsecond)
	for _, slug := range []string{"one", "two"} {
		if err := m.create(who, lastInstant, slug); err != nil {
			t.Fatal(err)
		}
	}
	wantLevel(t, m.create(who, lastInstant, "three"), quota.LevelClient)
	if err := m.create(who, midnight, "four"); err != nil {
		t.Errorf("the first of a new day: %v", err)
	}
	// The clock steps back over midnight: the old day goes on with its old count.
	wantLevel(t, m.create(who, lastInstant, "five"), quota.LevelClient)
	m.wantUsed(who, lastInstant, 2)
	m.wantUsed(who, midnight, 1)
	for day := range 30 {
		if err := m.create(who, midnight.AddDate(0, 0, day+1), names("later", day+1)[day]); err != nil {
			t.Fatalf("%d days later: %v", day+1, err)
		}
	}
	m.wantUsed(who, midnight.AddDate(0, 0, 30), 1)
	m.wantUsed(who, midnight.AddDate(0, 0, 29), 1)
	m.wantLinks(4, "one", "two", "four", "later-0000")
}

func testClock(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	who := host(1, 1)
	tooFar := noon.AddDate(0, 0, -2)
	for i, s := range stores {
		for range 2 { // a store may keep what it found, until another day is counted
			if _, err := s.EnsureSecret(t.Context(), quota.DayOf(tooFar).Label); err != nil {
				t.Errorf("handle %d, before anything was counted: %v", i, err)
			}
		}
	}
	if err := m.create(who, noon, "today"); err != nil {
		t.Fatal(err)
	}
	for i, s := range stores {
		_, err := s.EnsureSecret(t.Context(), quota.DayOf(tooFar).Label)
		wantError(t, err, quota.ErrClock)
		c := m.creation(who, noon, "stale")
		c.Day = quota.DayOf(tooFar).Label
		err = s.Create(t.Context(), c)
		wantError(t, err, quota.ErrClock)
		wantError(t, err, shortener.ErrUnavailable)
		wantError(t, s.Ready(t.Context(), "1970-01-01"), quota.ErrClock)
		if err := s.Ready(t.Context(), "2026-11-28"); err != nil {
			t.Errorf("handle %d, a day behind: %v", i, err)
		}
	}
	m.wantLinks(0, "stale")
	if err := m.create(who, noon.AddDate(0, 0, -1), "yesterday"); err != nil {
		t.Errorf("a day behind: %v", err)
	}
	m.wantUsed(who, noon, 1, 1, 1)

	// An operator may say that the clock is right; what later days hold goes on.
	last := stores[len(stores)-1]
	accept := func(day string) (forgotten string, err error) {
		act := shortener.Act{Line: shortener.AuditLine{At: noon, Action: "accept clock", Target: day}, AcceptClock: day}
		done, err := last.Act(t.Context(), act)
		return done.Forgotten, err
	}
	if day, err := accept("2026-11-28"); day != "" || err != nil {
		t.Errorf("a clock that needs no word: %q, %v", day, err)
	}
	if day, err := accept(quota.DayOf(tooFar).Label); day != "2026-11-29" || err != nil {
		t.Errorf("an accepted clock: %q, %v", day, err)
	}
	if err := m.create(who, tooFar, "accepted"); err != nil {
		t.Errorf("after the clock was accepted: %v", err)
	}
	if err := m.create(who, noon, "later"); err != nil {
		t.Errorf("the later day: %v", err)
	}
	m.wantUsed(who, noon, 2, 2, 2)
}

func testCancelled(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	c := m.creation(host(1, 1), noon, "gone")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Either it was withdrawn, or it had been begun and is whole.
	switch err := m.store.Create(ctx, c); {
	case err == nil:
		m.wantLinks(1, "gone")
		m.wantUsed(host(1, 1), noon, 1, 1, 1)
	case errors.Is(err, context.Canceled):
		m.wantLinks(0, "gone")
		m.wantUsed(host(1, 1), noon, 0, 0, 0)
	default:
		t.Errorf("got error %v, want none or the context's", err)
	}
}
