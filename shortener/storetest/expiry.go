package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

func testExpiry(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	paid, own := charge("paid", 10, 100), charge("own", 10, 100)
	a.reserve(demand("call", paid))
	work := demand("work", own)
	work.OnExpiry = quota.Released
	a.reserve(work)
	a.reserve(demand("answered", paid))
	a.commit("answered", 1)
	later := demand("later", paid)
	later.ExpiresAt = soon.Add(time.Microsecond)
	a.reserve(later)

	a.settle(soon.Add(-time.Microsecond))
	a.want([]quota.Charge{paid, own}, quota.Count{Used: 1, Held: 20}, quota.Count{Held: 10})
	a.store = stores[len(stores)-1]
	a.settle(soon)
	a.want([]quota.Charge{paid, own}, quota.Count{Used: 11, Held: 10}, quota.Count{})
	list, err := a.store.Reservations(t.Context(), 10)
	expired := map[string]quota.State{}
	for _, r := range list {
		if r.Expired {
			expired[r.ID] = r.State
		}
	}
	if want := map[string]quota.State{"call": quota.Committed, "work": quota.Released}; err != nil || !maps.Equal(expired, want) {
		t.Errorf("expired are %v, %v, want %v", expired, err, want)
	}
	if r := a.release("later"); r.State != quota.Released {
		t.Errorf("what had not expired became %+v", r)
	}
	a.want([]quota.Charge{paid, own}, quota.Count{Used: 11}, quota.Count{})

	// They are forgotten a day after their windows have ended, and no earlier.
	forgotten := quota.DayOf(noon).End.AddDate(0, 0, 1)
	a.settle(forgotten.Add(-time.Microsecond))
	if r := a.commit("call"); r.Expired || r.Actual[0] != 10 {
		t.Errorf("the call became %+v", r)
	}
	a.settle(forgotten)
	for _, id := range []string{"call", "work", "answered", "later"} {
		if _, err := a.store.Commit(t.Context(), id, nil, noon); !errors.Is(err, quota.ErrNoReservation) {
			t.Errorf("%s, long ago: got error %v, want ErrNoReservation", id, err)
		}
	}
	a.want([]quota.Charge{paid, own}, quota.Count{Used: 11}, quota.Count{})
}

func testSettleSome(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	c := charge("budget", 1, 100)
	const all, atMost = 10, 3
	for i := range all {
		a.reserve(demand(fmt.Sprint("call ", i), c))
	}
	settled := int64(0)
	for more, rounds := true, 0; more; rounds++ {
		var err error
		if more, err = a.store.SettleExpired(t.Context(), soon, atMost); err != nil || rounds > all {
			t.Fatalf("round %d: %v", rounds, err)
		}
		before := settled
		settled = a.counts([]quota.Charge{c})[0].Used
		if settled-before > atMost {
			t.Errorf("round %d settled %d, want at most %d", rounds, settled-before, atMost)
		}
		if settled < all && !more {
			t.Errorf("%d of %d are settled, and it says that there is no more", settled, all)
		}
	}
	a.want([]quota.Charge{c}, quota.Count{Used: all})
	if more, err := a.store.SettleExpired(t.Context(), soon, atMost); more || err != nil {
		t.Errorf("with nothing to do: more %v, %v", more, err)
	}
}

// testSweptWindow settles reservations whose day has been swept meanwhile.
func testSweptWindow(t *testing.T, stores []shortener.Store) {
	a, m := account{t, stores[0]}, maker{t, stores[0], policy}
	day, month := charge("budget", 10, 100), charge("budget", 10, 100)
	w := quota.MonthOf(noon)
	month.Counter.Period, month.ResetAt = w.Label, w.End
	for _, id := range []string{"commit", "release", "expire"} {
		r := demand(id, month, day)
		r.ExpiresAt = noon.AddDate(0, 1, 1)
		a.reserve(r)
	}
	if err := m.create(host(1, 1), noon.AddDate(0, 0, 1), "next-day"); err != nil {
		t.Fatal(err)
	}
	a.want([]quota.Charge{month, day}, quota.Count{Held: 30}, quota.Count{Held: 30}) // a clock may come back to it
	if err := m.create(host(1, 1), noon.AddDate(0, 1, 0), "next-month"); err != nil {
		t.Fatal(err)
	}
	// The month may have ended, and is kept or not; the day is gone by some time.
	for _, want := range []struct {
		settle func()
		id     string
		state  quota.State
	}{
		{func() { a.commit("commit", 4, 4) }, "commit", quota.Committed},
		{func() { a.release("release") }, "release", quota.Released},
		{func() { a.settle(noon.AddDate(0, 1, 1)) }, "expire", quota.Committed},
	} {
		want.settle()
		list, err := a.store.Reservations(t.Context(), 10)
		i := slices.IndexFunc(list, func(r quota.Reservation) bool { return r.ID == want.id })
		if err != nil || i < 0 || list[i].State != want.state {
			t.Errorf("%s became one of %+v, %v", want.id, list, err)
		}
	}
	if counts := a.counts([]quota.Charge{month, day}); counts[0].Held != 0 || counts[1].Held != 0 {
		t.Errorf("%+v are held by nothing", counts)
	}
}

func testExpiredOverrun(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	c := charge("budget", 5, 10)
	early := demand("never answered", c)
	early.ExpiresAt = noon
	a.reserve(early)
	a.reserve(demand("costly", c))
	a.commit("costly", 10) // which leaves no room for what is held beside it
	over := "More was paid than reserved: 15 of 10 are used or held at level budget until 2026-11-30T00:00:00Z."
	wantOverruns(t, stores, over)
	a.settle(noon)
	a.want([]quota.Charge{c}, quota.Count{Used: 15})
	wantOverruns(t, stores, over)
}

// testRaised pays just what was reserved after the limit was raised and others have used
// more than the earlier one.
func testRaised(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	a.reserve(demand("earlier", charge("budget", 5, 10)))
	a.spend("later", charge("budget", 50, 100))
	a.commit("earlier")
	early := demand("expired", charge("budget", 5, 60))
	early.ExpiresAt = noon
	a.reserve(early)
	a.spend("last", charge("budget", 30, 100))
	a.settle(noon)
	a.want([]quota.Charge{charge("budget", 1, 1)}, quota.Count{Used: 90})
	wantOverruns(t, stores)
}

// testLate lets callers come with what was paid after their reservations have expired.
func testLate(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	for i, row := range []struct {
		onExpiry quota.State
		paid     int64
		used     int64 // by it
		told     []string
	}{
		{quota.Committed, 25, 25, []string{
			"More was paid than reserved: 25 of 20 are used or held at level %s until 2026-11-30T00:00:00Z.",
			"A cost came after its reservation had expired at 2026-11-29T12:05:00Z: 15 more than was charged then are counted at level %s.",
		}},
		{quota.Committed, 12, 12, []string{
			"A cost came after its reservation had expired at 2026-11-29T12:05:00Z: 2 more than was charged then are counted at level %s.",
		}},
		{quota.Released, 4, 4, []string{
			"A cost came after its reservation had expired at 2026-11-29T12:05:00Z: 4 more than was charged then are counted at level %s.",
		}},
		{quota.Committed, 10, 10, nil}, {quota.Committed, 3, 3, nil}, {quota.Committed, -1, 0, nil}, {quota.Released, -1, 0, nil},
	} {
		id := fmt.Sprint("call ", i)
		c := charge(quota.Level("level "+id), 10, 20)
		r := demand(id, c)
		r.OnExpiry, r.CreatedAt = row.onExpiry, noon
		a.reserve(r)
		a.settle(soon)
		startAgain(t, stores[0])
		var told []string
		for n := range 3 { // a retry changes nothing and tells nothing
			a.store = stores[n%len(stores)]
			if row.paid < 0 {
				r = a.release(id)
			} else {
				r = a.commit(id, row.paid)
			}
			if r.Expired || !r.CreatedAt.Equal(noon) || !r.UpdatedAt.Equal(noon) {
				t.Errorf("%s became %+v", id, r)
			}
			a.want([]quota.Charge{c}, quota.Count{Used: row.used})
			notices, err := a.store.Notices(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range notices {
				told = append(told, n.Text)
				if err := a.store.Delivered(t.Context(), n.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range row.told {
			row.told[i] = fmt.Sprintf(row.told[i], c.Counter.Level)
		}
		slices.Sort(told)
		slices.Sort(row.told)
		if !slices.Equal(told, row.told) {
			t.Errorf("%s: operators are told %q, want %q", id, told, row.told)
		}
	}
}

// testStuck leaves calls that nobody settles, of the money for checks: what a start and a
// sweep do charges them, each once, and operators are told of each share once.
func testStuck(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	c := charge(shortener.LevelCheckBudget, 10, 105)
	for i := range 10 {
		r := demand(fmt.Sprint("call ", i), c)
		r.ExpiresAt = noon.Add(time.Duration(i) * time.Minute)
		a.reserve(r)
	}
	var told []string
	for i, step := range []struct {
		at   time.Time
		used int64
		told []string // since the step before
	}{
		{noon.Add(-time.Microsecond), 0, nil},
		{noon.Add(3 * time.Minute), 40, nil},
		{noon.Add(6 * time.Minute), 70, []string{"2026-11-29/reputation-budget/50"}},
		{noon.Add(7 * time.Minute), 80, []string{"2026-11-29/reputation-budget/80"}},
		{noon.Add(8 * time.Minute), 90, []string{"2026-11-29/reputation-budget/90"}},
		{noon.Add(9 * time.Minute), 100, []string{"2026-11-29/reputation-budget/100"}},
		{noon.Add(time.Hour), 100, nil},
	} {
		startAgain(t, stores[0]) // a start settles what the process before it left, and a sweep what expires later
		for range 2 {
			for _, a.store = range stores {
				a.settle(step.at)
			}
			a.want([]quota.Charge{c}, quota.Count{Used: step.used, Held: 100 - step.used})
		}
		told = append(told, step.told...)
		notices, err := a.store.Notices(t.Context(), 10)
		var ids []string
		for _, n := range notices {
			ids = append(ids, n.ID)
			if n.Kind != shortener.KindBudget || n.At.After(step.at) {
				t.Errorf("step %d: notice %+v", i, n)
			}
		}
		if err != nil || !slices.Equal(ids, told) {
			t.Errorf("step %d: operators are told %q, %v, want %q", i, ids, err, told)
		}
		if i == 3 { // what was delivered does not come again
			for _, id := range told {
				if err := a.store.Delivered(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			told = nil
		}
	}
}

// startAgain opens the data again, where that can be done.
func startAgain(t *testing.T, store shortener.Store) {
	t.Helper()
	if handle, ok := store.(Restarter); ok {
		if err := handle.Restart(); err != nil {
			t.Fatal(err)
		}
	}
}

// testRestartedHold opens the data again between the steps, where that can be done.
func testRestartedHold(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	all := five(3)
	a.reserve(demand("call", all...))
	startAgain(t, stores[0])
	held := quota.Count{Held: 3}
	a.want(all, held, held, held, held, held)
	if _, already, err := a.store.Reserve(t.Context(), demand("call", all...)); !already || err != nil {
		t.Errorf("reserving again: already %v, %v", already, err)
	}
	a.commit("call", 1, 2, 3, 4, 5)
	startAgain(t, stores[0])
	if r := a.commit("call"); fmt.Sprint(r.Actual) != "[1 2 3 4 5]" {
		t.Errorf("committed %d", r.Actual)
	}
	a.reserve(demand("lost", all...))
	startAgain(t, stores[0])
	a.settle(soon) // what a start does
	used := func(n int64) quota.Count { return quota.Count{Used: n} }
	a.want(all, used(4), used(5), used(6), used(7), used(8))
}
