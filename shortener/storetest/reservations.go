package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

// soon is when the reservations of tests expire.
var soon = noon.Add(5 * time.Minute)

// charge returns a charge on noon's day, of a level that has no other subject.
func charge(level quota.Level, cost, limit int64) quota.Charge {
	day := quota.DayOf(noon)
	return quota.Charge{
		Counter: quota.Counter{Level: level, Subject: "payer", Period: day.Label},
		Cost:    cost, Max: limit, ResetAt: day.End,
	}
}

// demand returns a reservation of work whose outcome may have cost money.
func demand(id string, charges ...quota.Charge) quota.Reservation {
	return quota.Reservation{ID: id, Charges: charges, ExpiresAt: soon, OnExpiry: quota.Committed}
}

// account reserves for tests in one store.
type account struct {
	testing.TB
	store shortener.Store
}

// reserve reserves, and fails the test unless that is a new reservation.
func (a account) reserve(r quota.Reservation) quota.Reservation {
	a.Helper()
	stored, already, err := a.store.Reserve(context.Background(), r)
	if err != nil || already || stored.State != quota.Pending {
		a.Fatalf("reserve %s: %+v, already %v, %v", r.ID, stored, already, err)
	}
	return stored
}

// refused reserves, and asserts that the level refuses.
func (a account) refused(r quota.Reservation, level quota.Level) {
	a.Helper()
	_, already, err := a.store.Reserve(context.Background(), r)
	if already {
		a.Errorf("%s was reserved already", r.ID)
	}
	wantLevel(a, err, level)
}

func (a account) commit(id string, actual ...int64) quota.Reservation {
	a.Helper()
	r, err := a.store.Commit(context.Background(), id, actual, noon)
	if err != nil || r.ID != id {
		a.Fatalf("commit %s: %+v, %v", id, r, err)
	}
	return r
}

func (a account) release(id string) quota.Reservation {
	a.Helper()
	r, err := a.store.Release(context.Background(), id, noon)
	if err != nil || r.ID != id {
		a.Fatalf("release %s: %+v, %v", id, r, err)
	}
	return r
}

// settle settles everything that has expired at the instant now.
func (a account) settle(now time.Time) {
	a.Helper()
	for more := true; more; {
		var err error
		if more, err = a.store.SettleExpired(context.Background(), now, 10); err != nil {
			a.Fatalf("SettleExpired: %v", err)
		}
	}
}

// want asserts what the charges' counters hold: used and held of each.
func (a account) want(charges []quota.Charge, want ...quota.Count) {
	a.Helper()
	if got := a.counts(charges); !slices.Equal(got, want) {
		a.Errorf("the counters hold %+v, want %+v", got, want)
	}
}

func (a account) counts(charges []quota.Charge) []quota.Count {
	a.Helper()
	counters := make([]quota.Counter, len(charges))
	for i, c := range charges {
		counters[i] = c.Counter
	}
	counts, err := a.store.Counts(context.Background(), counters)
	if err != nil {
		a.Fatalf("Counts: %v", err)
	}
	return counts
}

// within asserts the invariant: at each level what is held and used together does
// not exceed the maximum.
func (a account) within(charges []quota.Charge) {
	a.Helper()
	for i, c := range a.counts(charges) {
		if c.Used < 0 || c.Held < 0 || c.Used+c.Held > charges[i].Max {
			a.Errorf("level %s holds %+v of %d", charges[i].Counter.Level, c, charges[i].Max)
		}
	}
}

// spend reserves and commits the whole.
func (a account) spend(id string, charges ...quota.Charge) {
	a.Helper()
	a.reserve(demand(id, charges...))
	a.commit(id)
}

// atOnce lets n callers reserve at once, under the prefix and their numbers, and
// returns how many could.
func atOnce(t *testing.T, stores []shortener.Store, prefix string, n int, charges ...quota.Charge) int {
	t.Helper()
	return together(t, stores, n, quota.ErrExceeded, func(s shortener.Store, i int) error {
		_, already, err := s.Reserve(context.Background(), demand(fmt.Sprint(prefix, i), charges...))
		if already {
			t.Errorf("number %d was reserved already", i)
		}
		return err
	})
}

func testNearTheEnd(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	c := charge("budget", 5, 10_000)
	spent := c
	spent.Cost = 9_900
	a.spend("before", spent)
	if accepted := atOnce(t, stores, "call ", 50, c); accepted != 20 {
		t.Errorf("%d of 50 were accepted, want the 20 that fit into 100", accepted)
	}
	a.want([]quota.Charge{c}, quota.Count{Used: 9_900, Held: 100})
	for i := range 50 {
		_, err := a.store.Commit(t.Context(), fmt.Sprint("call ", i), []int64{4}, noon)
		if err != nil && !errors.Is(err, quota.ErrNoReservation) {
			t.Error(err)
		}
	}
	a.want([]quota.Charge{c}, quota.Count{Used: 9_980})
	if accepted := atOnce(t, stores, "later ", 50, c); accepted != 4 {
		t.Errorf("%d of 50 were accepted, want the 4 that fit into the 20 that came back", accepted)
	}
	a.within([]quota.Charge{c})
}

// five returns charges of the same cost at five levels, of which the fourth is the
// narrowest.
func five(cost int64) []quota.Charge {
	return []quota.Charge{
		charge("one", cost, 50), charge("two", cost, 40), charge("three", cost, 30), charge("four", cost, 10), charge("five", cost, 20),
	}
}

func testInvariant(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	all := five(1)
	steps := []func(){
		func() { a.reserve(demand("a", five(4)...)) },
		func() { a.reserve(demand("b", five(4)...)) },
		func() { a.refused(demand("c", five(3)...), "four") },
		func() { a.commit("a", 4, 3, 2, 1, 0) },
		func() { a.reserve(demand("d", five(5)...)) },
		func() { a.refused(demand("e", five(1)...), "four") },
		func() { a.release("b") },
		func() { a.reserve(demand("f", five(4)...)) },
		func() { a.commit("d") },
		func() { a.refused(demand("g", five(1)...), "four") },
		func() { a.settle(soon) },
	}
	for i, step := range steps {
		a.store = stores[i%len(stores)]
		step()
		a.within(all)
	}
	a.want(all, quota.Count{Used: 13}, quota.Count{Used: 12}, quota.Count{Used: 11}, quota.Count{Used: 10}, quota.Count{Used: 9})
}

func testHeld(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	c := charge("budget", 1, 1)
	a.reserve(demand("first", c))
	a.store = stores[len(stores)-1]
	a.refused(demand("second", c), "budget")
	// Neither may a creation have it.
	m := maker{t, stores[0], quota.Policy{}}
	creation := m.creation(host(1, 1), noon, "link")
	creation.Charges = []quota.Charge{c}
	wantLevel(t, a.store.Create(t.Context(), creation), "budget")
	a.release("first")
	a.reserve(demand("third", c))
	a.want([]quota.Charge{c}, quota.Count{Held: 1})
}

func testFreshCounter(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	c := charge("budget", 10, 10)
	a.want([]quota.Charge{c}, quota.Count{})
	a.reserve(demand("whole", c))
	a.want([]quota.Charge{c}, quota.Count{Held: 10})
}

func testActual(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	c := charge("budget", 10, 100)
	var want quota.Count
	for _, row := range []struct {
		name   string
		actual []int64
		used   int64
	}{
		{"less", []int64{3}, 3}, {"nothing", []int64{0}, 0}, {"the whole", []int64{10}, 10}, {"more", []int64{12}, 12}, {"what was reserved", nil, 10},
	} {
		a.reserve(demand(row.name, c))
		r := a.commit(row.name, row.actual...)
		want.Used += row.used
		a.want([]quota.Charge{c}, want)
		if r.State != quota.Committed || !slices.Equal(r.Actual, []int64{row.used}) {
			t.Errorf("%s: committed as %+v, want %d", row.name, r, row.used)
		}
	}
	// What makes no sense changes nothing, and does not settle.
	a.reserve(demand("odd", c))
	for _, actual := range [][]int64{{-1}, {1, 1}, {math.MaxInt64}} {
		if _, err := a.store.Commit(t.Context(), "odd", actual, noon); !errors.Is(err, quota.ErrInvalidCharge) || !errors.Is(err, shortener.ErrUnavailable) {
			t.Errorf("commit of %d: got error %v, want ErrInvalidCharge as a kind of ErrUnavailable", actual, err)
		}
	}
	want.Held = 10
	a.want([]quota.Charge{c}, want)
	a.commit("odd", 1)
}

func testSettledTwice(t *testing.T, stores []shortener.Store) {
	commit := func(a account, id string) quota.Reservation { return a.commit(id, 7) }
	again := func(a account, id string) quota.Reservation { return a.commit(id, 9) }
	release := account.release
	for _, row := range []struct {
		name          string
		first, second func(account, string) quota.Reservation
		used          int64
	}{
		{"commit twice", commit, again, 7},
		{"release twice", release, release, 0},
		{"commit after release", release, commit, 0},
		{"release after commit", commit, release, 7},
	} {
		a := account{t, stores[0]}
		c := charge(quota.Level(row.name), 10, 30)
		a.reserve(demand(row.name, c))
		a.reserve(demand("beside "+row.name, c)) // of which nothing may be taken
		first := row.first(a, row.name)
		for i := range 3 {
			a.store = stores[i%len(stores)]
			second := row.second(a, row.name)
			if fmt.Sprint(second) != fmt.Sprint(first) {
				t.Errorf("%s: then %+v, want the first result, %+v", row.name, second, first)
			}
			a.want([]quota.Charge{c}, quota.Count{Used: row.used, Held: 10})
		}
	}
	for name, err := range map[string]error{
		"commit":  func() error { _, err := stores[0].Commit(t.Context(), "unknown", nil, noon); return err }(),
		"release": func() error { _, err := stores[0].Release(t.Context(), "unknown", noon); return err }(),
	} {
		if !errors.Is(err, quota.ErrNoReservation) {
			t.Errorf("%s of none: got error %v, want ErrNoReservation", name, err)
		}
	}
}

func testReserveTable(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	c := charge("budget", 6, 10)
	// A new id, and room for it.
	stored := a.reserve(demand("first", c))
	a.want([]quota.Charge{c}, quota.Count{Held: 6})
	// A new id, and no room: nothing is left of it.
	a.refused(demand("second", c), "budget")
	a.want([]quota.Charge{c}, quota.Count{Held: 6})
	if _, err := a.store.Release(t.Context(), "second", noon); !errors.Is(err, quota.ErrNoReservation) {
		t.Errorf("what was refused: got error %v, want ErrNoReservation", err)
	}
	// The same id: nothing more is taken, though there is no room for it either.
	for _, s := range stores {
		again, already, err := s.Reserve(t.Context(), demand("first", c))
		if err != nil || !already || fmt.Sprint(again) != fmt.Sprint(stored) {
			t.Errorf("again: %+v, already %v, %v, want %+v", again, already, err, stored)
		}
	}
	a.want([]quota.Charge{c}, quota.Count{Held: 6})
	// Once there is room, what was refused is new.
	a.release("first")
	a.reserve(demand("second", c))
	a.want([]quota.Charge{c}, quota.Count{Held: 6})
}
