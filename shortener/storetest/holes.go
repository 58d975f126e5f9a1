package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

// testNoHalfHold has many refused at a level of their own beside one for whom just
// enough is left at the level that all share: with levels taken one after the other,
// those who are going to be refused would hold it for a while.
func testNoHalfHold(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	shared, full, own := charge("shared", 1, 20), charge("full", 1, 1), charge("own", 1, 20)
	a.spend("before", full)
	refused := make(chan int)
	go func() { refused <- atOnce(t, stores, "refused ", 100, shared, full) }()
	for i := range 20 {
		store := stores[i%len(stores)]
		if _, _, err := store.Reserve(t.Context(), demand(fmt.Sprint("unrelated ", i), shared, own)); err != nil {
			t.Errorf("unrelated %d: %v", i, err)
		}
	}
	if passed := <-refused; passed != 0 {
		t.Errorf("%d passed a level that is full", passed)
	}
	a.want([]quota.Charge{shared, full, own}, quota.Count{Held: 20}, quota.Count{Used: 1}, quota.Count{Held: 20})
}

func testCommitAbove(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	c := charge("budget", 10, 10)
	a.refused(demand("above", charge("budget", 11, 10)), "budget")
	a.reserve(demand("within", c))
	r := a.commit("within", 15)
	if !slices.Equal(r.Actual, []int64{15}) {
		t.Errorf("committed %d, want 15", r.Actual)
	}
	a.want([]quota.Charge{c}, quota.Count{Used: 15})
}

func testOverrun(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	full := charge("budget", 10, 10)
	a.reserve(demand("costly", full))
	a.commit("costly", 12)
	a.want([]quota.Charge{full}, quota.Count{Used: 12})
	one := charge("budget", 1, 10)
	a.refused(demand("next", one), "budget")

	// What was under way may overrun as well. It is told once a day.
	raised := charge("budget", 1, 13)
	a.reserve(demand("under way", raised))
	a.commit("under way", 3)
	a.want([]quota.Charge{full}, quota.Count{Used: 15})
	a.commit("costly", 12) // once more
	a.refused(demand("later", raised), "budget")
	wantOverruns(t, stores, "More was paid than reserved: 12 of 10 are used or held at level budget until 2026-11-30T00:00:00Z.")
}

// wantOverruns asserts the texts of the notices that wait, all of them of overruns.
func wantOverruns(t *testing.T, stores []shortener.Store, want ...string) {
	t.Helper()
	for i, s := range stores {
		notices, err := s.Notices(t.Context(), 10)
		var texts []string
		for _, n := range notices {
			texts = append(texts, n.Text)
			if n.Kind != shortener.KindOverrun || !n.At.Equal(noon) || !strings.HasPrefix(n.ID, quota.DayOf(noon).Label+"/") {
				t.Errorf("handle %d: notice %+v", i, n)
			}
		}
		if err != nil || !slices.Equal(texts, want) {
			t.Errorf("handle %d: notices %q, %v, want %q", i, texts, err, want)
		}
	}
}

func testTwoFit(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	spent := charge("budget", 500, 1000)
	a.spend("before", spent)
	c := charge("budget", 200, 1000)
	if accepted := atOnce(t, stores, "caller ", 50, c); accepted != 2 {
		t.Errorf("%d of 50 were accepted, want 2", accepted)
	}
	a.want([]quota.Charge{c}, quota.Count{Used: 500, Held: 400})
}

func testLastHeld(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	for round := range 20 {
		level := quota.Level(fmt.Sprint("budget ", round))
		spent, c := charge(level, 99, 100), charge(level, 1, 100)
		a.spend(fmt.Sprint("before ", round), spent)
		if accepted := atOnce(t, stores, fmt.Sprint(round, " caller "), 2, c); accepted != 1 {
			t.Errorf("round %d: %d of 2 got the last unit", round, accepted)
		}
		a.want([]quota.Charge{c}, quota.Count{Used: 99, Held: 1})
	}
}

func testFourthFull(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	all := five(3)
	a.spend("full", charge("four", 10, 10))
	a.spend("before", all[0], all[4])
	before := []quota.Count{{Used: 3}, {}, {}, {Used: 10}, {Used: 3}}
	a.want(all, before...)
	a.refused(demand("refused", all...), "four")
	a.want(all, before...)
	if passed := atOnce(t, stores, "caller ", 20, all...); passed != 0 {
		t.Errorf("%d passed", passed)
	}
	a.want(all, before...)
}

func testRetryFinds(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	c := charge("budget", 10, 10)
	for _, row := range []struct {
		id     string
		settle func()
		want   quota.State
	}{
		{"pending", func() {}, quota.Pending},
		{"released", func() { a.release("released") }, quota.Released},
		{"committed", func() { a.commit("committed", 4) }, quota.Committed},
	} {
		c.Counter.Subject = quota.Subject(row.id)
		a.reserve(demand(row.id, c))
		row.settle()
		before := a.counts([]quota.Charge{c})
		for _, s := range stores {
			r, already, err := s.Reserve(t.Context(), demand(row.id, c))
			if err != nil || !already || r.State != row.want {
				t.Errorf("%s: %+v, already %v, %v", row.id, r, already, err)
			}
		}
		a.want([]quota.Charge{c}, before...)
	}
	// It goes on with what it has found.
	a.commit("pending", 9)
	c.Counter.Subject = "pending"
	a.want([]quota.Charge{c}, quota.Count{Used: 9})
	// Twenty tries at once hold once, and one of them is told that it is new.
	c.Counter.Subject = "many"
	fresh := together(t, stores, 20, errAlready, func(s shortener.Store, _ int) error {
		_, already, err := s.Reserve(t.Context(), demand("many", c))
		if already {
			return errors.Join(errAlready, err)
		}
		return err
	})
	if fresh != 1 {
		t.Errorf("%d of 20 tries were the first", fresh)
	}
	a.want([]quota.Charge{c}, quota.Count{Held: 10})
}

var errAlready = errors.New("reserved already")

func testStoredCharges(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	c := charge("budget", 10, 10)
	a.reserve(demand("over midnight", c))
	// The day turns, and another price with it.
	tomorrow := quota.DayOf(noon.AddDate(0, 0, 1))
	next := c
	next.Counter.Period, next.ResetAt, next.Cost, next.Max = tomorrow.Label, tomorrow.End, 3, 5
	r, already, err := a.store.Reserve(t.Context(), demand("over midnight", next))
	if err != nil || !already || r.Charges[0] != c {
		t.Errorf("a retry after midnight: %+v, already %v, %v, want what was stored", r, already, err)
	}
	if r, err := a.store.Commit(t.Context(), "over midnight", nil, tomorrow.Start); err != nil || r.Charges[0] != c || r.Actual[0] != 10 {
		t.Errorf("commit after midnight: %+v, %v", r, err)
	}
	a.want([]quota.Charge{c, next}, quota.Count{Used: 10}, quota.Count{})
	// Whoever was given a reservation cannot change what is stored by changing it.
	second := charge("other", 10, 10)
	given := a.reserve(demand("mine", second))
	given.Charges[0].Cost, given.Charges[0].Counter.Level = 1, "elsewhere"
	a.release("mine")
	a.want([]quota.Charge{second}, quota.Count{})
}

func testSeveralLevels(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	var charges []quota.Charge
	for i, w := range []quota.Window{quota.MonthOf(noon), quota.DayOf(noon), quota.HourOf(noon)} {
		for _, subject := range []quota.Subject{"team", "member\x00\xff"} {
			charges = append(charges, quota.Charge{
				Counter: quota.Counter{Level: "money", Subject: subject, Period: w.Label}, Cost: int64(i + 1), Max: 10, ResetAt: w.End,
			})
		}
	}
	stored := a.reserve(demand("several\x00\xff", charges...))
	if !slices.EqualFunc(stored.Charges, charges, sameCharge) {
		t.Errorf("stored as %+v, want %+v", stored.Charges, charges)
	}
	held := func(n int64) quota.Count { return quota.Count{Held: n} }
	a.want(charges, held(1), held(1), held(2), held(2), held(3), held(3))
	a.commit("several\x00\xff", 1, 0, 2, 1, 5, 0)
	used := func(n int64) quota.Count { return quota.Count{Used: n} }
	a.want(charges, used(1), used(0), used(2), used(1), used(5), used(0))
}

func sameCharge(a, b quota.Charge) bool {
	same := a.ResetAt.Equal(b.ResetAt)
	a.ResetAt, b.ResetAt = time.Time{}, time.Time{}
	return same && a == b
}

func testOddReservations(t *testing.T, stores []shortener.Store) {
	c := charge("budget", 1, 10)
	changed := func(change func(*quota.Charge)) func(*quota.Reservation) {
		return func(r *quota.Reservation) { change(&r.Charges[0]) }
	}
	for name, change := range map[string]func(*quota.Reservation){
		"no id":                       func(r *quota.Reservation) { r.ID = "" },
		"an id that is too long":      func(r *quota.Reservation) { r.ID = strings.Repeat("x", quota.MaxReservationID+1) },
		"no charges":                  func(r *quota.Reservation) { r.Charges = nil },
		"no expiry":                   func(r *quota.Reservation) { r.ExpiresAt = time.Time{} },
		"pending on expiry":           func(r *quota.Reservation) { r.OnExpiry = quota.Pending },
		"nothing on expiry":           func(r *quota.Reservation) { r.OnExpiry = "" },
		"a cost of zero":              changed(func(c *quota.Charge) { c.Cost = 0 }),
		"a negative cost":             changed(func(c *quota.Charge) { c.Cost = -1 }),
		"a negative limit":            changed(func(c *quota.Charge) { c.Max = -1 }),
		"an enormous cost":            changed(func(c *quota.Charge) { c.Cost = math.MaxInt64 }),
		"a counter charged twice":     func(r *quota.Reservation) { r.Charges = append(r.Charges, r.Charges[0]) },
		"a window without an end":     changed(func(c *quota.Charge) { c.ResetAt = time.Time{} }),
		"a level without a name":      changed(func(c *quota.Charge) { c.Counter.Level = "" }),
		"more reserved than there is": changed(func(c *quota.Charge) { c.Reserved = c.Max + 1 }),
	} {
		r := demand("odd", c)
		change(&r)
		if _, already, err := stores[0].Reserve(t.Context(), r); err == nil || already {
			t.Errorf("%s was reserved", name)
		}
	}
	a := account{t, stores[0]}
	a.want([]quota.Charge{c}, quota.Count{})
	longest := demand(strings.Repeat("x", quota.MaxReservationID), c)
	a.reserve(longest)
	a.release(longest.ID)
}

func testWithdrawnHold(t *testing.T, stores []shortener.Store) {
	a := account{t, stores[0]}
	c := charge("budget", 1, 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Either it was withdrawn, or it had been begun and is whole.
	var want quota.Count
	switch _, _, err := a.store.Reserve(ctx, demand("gone", c)); {
	case err == nil:
		want.Held = 1
	case !errors.Is(err, context.Canceled):
		t.Errorf("got error %v, want none or the context's", err)
	}
	a.want([]quota.Charge{c}, want)
}
