// Package quotatest is what the packages that keep counters in a database have in
// common, as a suite that each of them passes.
//
// Call [Run] from the package's own tests.
package quotatest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snip/quota"
)

// Run tests what such a package promises. open returns it on an empty data set,
// which is closed when the test ends.
func Run[Tx any](t *testing.T, open func(testing.TB) Package[Tx]) {
	for _, c := range []struct {
		name string
		test func(*testing.T, book)
	}{
		{"all levels or none", testLevels},
		{"counters of other levels, subjects and periods are others", testApart},
		{"50 near the end of a budget", testNearTheEnd},
		{"50 at once want more than there is", testAtOnce},
		{"the last unit has one taker", testLastUnit},
		{"what is held is not there for others", testHeld},
		{"a reservation is made once", testReserve},
		{"a reservation is settled once", testSettled},
		{"the difference comes back", testDifference},
		{"more than was reserved is counted as it is", testOverrun},
		{"what has expired is settled as it says, until its caller says more", testExpired},
		{"reservations are listed with their times", testList},
		{"a window that was swept decides nothing more", testSwept},
		{"what makes no sense is refused", testNonsense},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t))
		})
	}
}

var (
	noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	day  = quota.DayOf(noon)
)

func charge(level quota.Level, subject quota.Subject, w quota.Window, cost, limit int64) quota.Charge {
	return quota.Charge{Counter: quota.Counter{Level: level, Subject: subject, Period: w.Label}, Cost: cost, Max: limit, ResetAt: w.End}
}

// budget demands a cost of one counter of that day.
func budget(cost, limit int64) []quota.Charge {
	return []quota.Charge{charge("team", "\x00\xffteam", day, cost, limit)}
}

// five demands one unit at each of five levels.
func five(limits ...int64) []quota.Charge {
	var charges []quota.Charge
	for i, limit := range limits {
		charges = append(charges, charge(quota.Level(fmt.Sprintf("level %d", i+1)), "", day, 1, limit))
	}
	return charges
}

func reservation(id string, charges []quota.Charge) quota.Reservation {
	return quota.Reservation{ID: id, Charges: charges, ExpiresAt: noon.Add(time.Minute), OnExpiry: quota.Released}
}

// want asserts what the counters of the charges hold, used and held.
func want(t *testing.T, b book, charges []quota.Charge, counts ...quota.Count) {
	t.Helper()
	counters := make([]quota.Counter, len(charges))
	for i, c := range charges {
		counters[i] = c.Counter
	}
	if got, err := b.counts(counters); err != nil || !slices.Equal(got, counts) {
		t.Errorf("the counters hold %v, %v, want %v", got, err, counts)
	}
}

// together runs n functions at once and returns how many were not refused.
func together(t *testing.T, n int, run func(int) error) int64 {
	t.Helper()
	var passed atomic.Int64
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			switch err := run(i); {
			case err == nil:
				passed.Add(1)
			case !errors.Is(err, quota.ErrExceeded):
				t.Errorf("number %d: %v", i, err)
			}
		})
	}
	group.Wait()
	return passed.Load()
}

func do[T any](t *testing.T) func(T, error) T {
	return func(result T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
}

func reserve(t *testing.T, b book, r quota.Reservation) quota.Reservation {
	t.Helper()
	stored, already, err := b.reserve(r)
	if err != nil || already {
		t.Fatalf("reserve %s: already %v, %v", r.ID, already, err)
	}
	return stored
}

func wantLevel(t *testing.T, err error, level quota.Level) {
	t.Helper()
	exceeded, ok := errors.AsType[*quota.ExceededError](err)
	if !ok || exceeded.Usage.Level != level {
		t.Errorf("got error %v, want a refusal at level %s", err, level)
	}
}

// testLevels is B26: of five levels the fourth is full.
func testLevels(t *testing.T, b book) {
	charges := five(9, 9, 9, 1, 9)
	do[[]quota.Usage](t)(b.apply(charges[3:4]))
	for range 2 {
		_, err := b.apply(charges)
		wantLevel(t, err, "level 4")
		_, err = b.check(charges)
		wantLevel(t, err, "level 4")
		_, _, err = b.reserve(reservation("four is full", charges))
		wantLevel(t, err, "level 4")
	}
	want(t, b, charges, quota.Count{}, quota.Count{}, quota.Count{}, quota.Count{Used: 1}, quota.Count{})
	charges[3].Max = 2
	usages := do[[]quota.Usage](t)(b.check(charges))
	if again := do[[]quota.Usage](t)(b.apply(charges)); !slices.Equal(usages, again) || usages[3].Used != 2 || usages[4].Used != 1 {
		t.Errorf("checked %v, applied %v", usages, again)
	}
	want(t, b, charges, quota.Count{Used: 1}, quota.Count{Used: 1}, quota.Count{Used: 1}, quota.Count{Used: 2}, quota.Count{Used: 1})
}

func testApart(t *testing.T, b book) {
	tomorrow, month := quota.DayOf(noon.AddDate(0, 0, 1)), quota.MonthOf(noon)
	rows := []quota.Charge{
		charge(quota.LevelClient, "ann", day, 1, 9), charge(quota.LevelClient, "bob", day, 2, 9), charge(quota.LevelClient, "", day, 3, 9),
		charge(quota.LevelNetwork, "ann", day, 4, 9), charge(quota.LevelClient, "ann", tomorrow, 5, 9), charge("person", "ann", month, 6, 9),
		charge(quota.LevelClient, "\xff\x00", day, 7, 9),
	}
	var counts []quota.Count
	for _, c := range rows {
		do[[]quota.Usage](t)(b.apply([]quota.Charge{c}))
		counts = append(counts, quota.Count{Used: c.Cost})
	}
	want(t, b, rows, counts...)
	reserve(t, b, reservation("held only", []quota.Charge{charge(quota.LevelClient, "cid", day, 1, 9)}))
	var subjects []quota.Subject
	err := b.each(quota.LevelClient, day.Label, func(s quota.Subject, used int64) {
		if used > 0 {
			subjects = append(subjects, s)
		}
	})
	if err != nil || !slices.Equal(subjects, []quota.Subject{"", "ann", "bob", "\xff\x00"}) {
		t.Errorf("each client is %q, %v", subjects, err)
	}
	if err := b.each(quota.LevelClient, "2026-11-01", func(quota.Subject, int64) { t.Error("a counter of another day") }); err != nil {
		t.Error(err)
	}
}

// testNearTheEnd is B3: 9,900 of 10,000 are spent, and 50 calls of at most 5 come at
// once, which cost 4 each.
func testNearTheEnd(t *testing.T, b book) {
	do[[]quota.Usage](t)(b.apply(budget(9900, 10_000)))
	passed := together(t, 50, func(i int) error {
		id := fmt.Sprint("call ", i)
		if _, _, err := b.reserve(reservation(id, budget(5, 10_000))); err != nil {
			return err
		}
		// What is held and used together never passes the budget, at any moment.
		counts, err := b.counts([]quota.Counter{budget(1, 1)[0].Counter})
		if err != nil || counts[0].Taken() > 10_000 {
			t.Errorf("%v of 10,000 are taken, %v", counts, err)
		}
		_, _, err = b.commit(id, []int64{4})
		return err
	})
	// 20 may hold 5 at once; of those that come while others have given back their
	// difference, five more at most.
	if passed < 20 || passed > 25 {
		t.Errorf("%d of 50 passed", passed)
	}
	want(t, b, budget(1, 1), quota.Count{Used: 9900 + 4*passed})
}

// testAtOnce is B24: 500 are left, and 50 at once want 200 each.
func testAtOnce(t *testing.T, b book) {
	do[[]quota.Usage](t)(b.apply(budget(500, 1000)))
	passed := together(t, 50, func(i int) error {
		_, _, err := b.reserve(reservation(fmt.Sprint("call ", i), budget(200, 1000)))
		return err
	})
	if passed != 2 {
		t.Errorf("%d of 50 passed, want 2", passed)
	}
	want(t, b, budget(1, 1), quota.Count{Used: 500, Held: 400})
}

// testLastUnit is B25.
func testLastUnit(t *testing.T, b book) {
	do[[]quota.Usage](t)(b.apply(five(9, 9, 2)))
	passed := together(t, 2, func(i int) error {
		if i == 0 {
			_, err := b.apply(five(9, 9, 2))
			return err
		}
		_, _, err := b.reserve(reservation("call", five(9, 9, 2)))
		return err
	})
	if passed != 1 {
		t.Errorf("%d of 2 passed", passed)
	}
	got := do[[]quota.Count](t)(b.counts([]quota.Counter{five(1, 1, 1)[2].Counter}))
	if got[0].Taken() != 2 {
		t.Errorf("the level that was full holds %v", got)
	}
}

// testHeld is B8.
func testHeld(t *testing.T, b book) {
	reserve(t, b, reservation("first", budget(10, 10)))
	_, _, err := b.reserve(reservation("second", budget(1, 10)))
	wantLevel(t, err, "team")
	_, err = b.apply(budget(1, 10))
	wantLevel(t, err, "team")
	_, err = b.check(budget(1, 10))
	wantLevel(t, err, "team")
	if r, counts, err := b.release("first"); err != nil || r.State != quota.Released || counts[0] != (quota.Count{}) {
		t.Errorf("released: %v, %v, %v", r, counts, err)
	}
	reserve(t, b, reservation("second", budget(1, 10)))
	want(t, b, budget(1, 1), quota.Count{Held: 1})
}

func testNonsense(t *testing.T, b book) {
	for name, charges := range map[string][]quota.Charge{
		"no cost":          budget(0, 10),
		"a negative limit": budget(1, -1),
		"charged twice":    append(budget(1, 10), budget(1, 10)...),
		"no level":         {charge("", "", day, 1, 1)},
	} {
		if _, err := b.apply(charges); !errors.Is(err, quota.ErrInvalidCharge) {
			t.Errorf("%s: applied with %v", name, err)
		}
		if _, _, err := b.reserve(reservation(name, charges)); !errors.Is(err, quota.ErrInvalidCharge) {
			t.Errorf("%s: reserved with %v", name, err)
		}
	}
	for name, r := range map[string]quota.Reservation{
		"no id":      reservation("", budget(1, 1)),
		"no charges": reservation("id", nil),
		"no expiry":  {ID: "id", Charges: budget(1, 1), OnExpiry: quota.Released},
		"no end":     {ID: "id", Charges: budget(1, 1), ExpiresAt: noon},
	} {
		if _, _, err := b.reserve(r); !errors.Is(err, quota.ErrInvalidReservation) {
			t.Errorf("%s: %v", name, err)
		}
	}
	want(t, b, budget(1, 1), quota.Count{})
}
