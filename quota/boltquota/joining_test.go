package boltquota_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
)

var (
	one          = time.Date(2026, 11, 29, 13, 0, 0, 0, time.UTC)
	errTakenBack = errors.New("the caller takes it back")
)

// unitsOf is a charge in the window, of a level that has ten units.
func unitsOf(level quota.Level, w quota.Window, cost int64) quota.Charge {
	return quota.Charge{
		Counter: quota.Counter{Level: level, Subject: "ann", Period: w.Label},
		Cost:    cost, Max: 10, ResetAt: w.End,
	}
}

// reservation holds four units at three levels with a window each. It expires in an hour.
func reservation(id string) quota.Reservation {
	return quota.Reservation{
		ID:        id,
		Charges:   []quota.Charge{unitsOf("month", quota.MonthOf(one), 4), unitsOf("day", quota.DayOf(one), 4), unitsOf("hour", quota.HourOf(one), 4)},
		ExpiresAt: one.Add(time.Hour),
		OnExpiry:  quota.Committed,
	}
}

func tryReserve(db *bbolt.DB, r quota.Reservation) (stored quota.Reservation, already bool, err error) {
	err = db.Update(func(tx *bbolt.Tx) (err error) {
		stored, already, err = boltquota.Reserve(tx, r)
		return err
	})
	return stored, already, err
}

func mustReserve(t *testing.T, db *bbolt.DB, r quota.Reservation) quota.Reservation {
	t.Helper()
	stored, already, err := tryReserve(db, r)
	if err != nil || already {
		t.Fatalf("reserve %q: already %t, error %v", r.ID, already, err)
	}
	return stored
}

// wantHeld compares what the counters of a reservation's charges hold, as pairs of
// used and held.
func wantHeld(t *testing.T, db *bbolt.DB, r quota.Reservation, want string) {
	t.Helper()
	var counters []quota.Counter
	for _, c := range r.Charges {
		counters = append(counters, c.Counter)
	}
	err := db.View(func(tx *bbolt.Tx) error {
		counts, err := boltquota.Counts(tx, counters)
		if got := fmt.Sprint(counts); got != want {
			t.Errorf("used and held: got %s, want %s", got, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func find(db *bbolt.DB, id string) (r quota.Reservation, err error) {
	err = db.View(func(tx *bbolt.Tx) (err error) {
		r, err = boltquota.Reservation(tx, id)
		return err
	})
	return r, err
}

func wantState(t *testing.T, db *bbolt.DB, id string, want quota.State) {
	t.Helper()
	if r, err := find(db, id); err != nil || r.State != want {
		t.Errorf("reservation %q: got %q and %v, want %q", id, r.State, err, want)
	}
}

// settleByTurns settles and forgets all that is due, n at a time, and returns the ids
// of those that were settled, in order.
func settleByTurns(t *testing.T, db *bbolt.DB, now time.Time, n int) (ids []string) {
	t.Helper()
	for more := true; more; {
		err := db.Update(func(tx *bbolt.Tx) (err error) {
			more, err = boltquota.SettleExpired(tx, now, n, func(r quota.Reservation, _ []quota.Count) error {
				ids = append(ids, r.ID)
				return nil
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// TestReservationIsKeptAsGiven reads back what was reserved, bytes that are no text
// and times included.
func TestReservationIsKeptAsGiven(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	given := reservation("\x00 \xff")
	given.ExpiresAt = one.Add(time.Hour + time.Microsecond)
	given.OnExpiry = quota.Released
	given.Charges[0].Counter.Subject = ""
	given.Charges[0].Reserved = 1
	given.Charges[1].Counter.Subject = "\xff\x00\xfe"
	given.Charges[2].DryRun = true
	stored := mustReserve(t, db, given)
	found, err := find(db, given.ID)
	if err != nil {
		t.Fatal(err)
	}
	given.State = quota.Pending
	if diff := cmp.Diff(given, stored) + cmp.Diff(given, found); diff != "" {
		t.Errorf("not as given: %s", diff)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		stored, _, err = boltquota.Commit(tx, given.ID, []int64{0, 9, 4}, time.Time{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	given.State, given.Actual = quota.Committed, []int64{0, 9, 4}
	if found, err = find(db, given.ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(given, stored) + cmp.Diff(given, found); diff != "" {
		t.Errorf("not as given: %s", diff)
	}
}

// TestCallerRollsBack shows that a reservation, and its settling, are the caller's
// to lose: they are there if and only if the transaction is.
func TestCallerRollsBack(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	r := reservation("call")
	attempt := func(do func(tx *bbolt.Tx) error) {
		t.Helper()
		err := db.Update(func(tx *bbolt.Tx) error {
			if err := do(tx); err != nil {
				t.Error(err)
			}
			return errTakenBack
		})
		if !errors.Is(err, errTakenBack) {
			t.Fatal(err)
		}
	}

	attempt(func(tx *bbolt.Tx) error {
		_, _, err := boltquota.Reserve(tx, r)
		return err
	})
	if _, err := find(db, "call"); !errors.Is(err, quota.ErrNoReservation) {
		t.Errorf("got %v, want ErrNoReservation", err)
	}
	wantHeld(t, db, r, "[{0 0} {0 0} {0 0}]")
	if ids := settleByTurns(t, db, one.AddDate(1, 0, 0), 10); ids != nil {
		t.Errorf("settled %q, want nothing", ids)
	}

	mustReserve(t, db, r)
	for _, settle := range []func(tx *bbolt.Tx) error{
		func(tx *bbolt.Tx) error { _, _, err := boltquota.Commit(tx, "call", nil, time.Time{}); return err },
		func(tx *bbolt.Tx) error { _, _, err := boltquota.Release(tx, "call", time.Time{}); return err },
		func(tx *bbolt.Tx) error {
			_, err := boltquota.SettleExpired(tx, one.Add(time.Hour), 1, func(quota.Reservation, []quota.Count) error { return nil })
			return err
		},
	} {
		attempt(settle)
		wantState(t, db, "call", quota.Pending)
		wantHeld(t, db, r, "[{0 4} {0 4} {0 4}]")
	}
	if ids := settleByTurns(t, db, one.Add(time.Hour), 10); !slices.Equal(ids, []string{"call"}) {
		t.Errorf("settled %q, want the one that three callers could not", ids)
	}
	wantHeld(t, db, r, "[{4 0} {4 0} {4 0}]")
}

// TestRefusedReservationInATransactionThatCommits shows that a refusal at the last
// of the levels has written at none.
func TestRefusedReservationInATransactionThatCommits(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	full, twice := reservation("full"), reservation("twice")
	full.Charges[2].Max = 3
	twice.Charges[2] = twice.Charges[0]
	err := db.Update(func(tx *bbolt.Tx) error {
		var exceeded *quota.ExceededError
		if _, already, err := boltquota.Reserve(tx, full); already || !errors.As(err, &exceeded) || exceeded.Usage.Level != "hour" {
			t.Errorf("got %t and %v, want a refusal at the level hour", already, err)
		}
		if _, already, err := boltquota.Reserve(tx, twice); already || !errors.Is(err, quota.ErrInvalidCharge) {
			t.Errorf("got %t and %v, want ErrInvalidCharge", already, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []quota.Reservation{full, twice} {
		if _, err := find(db, r.ID); !errors.Is(err, quota.ErrNoReservation) {
			t.Errorf("%s: got %v, want ErrNoReservation", r.ID, err)
		}
	}
	wantHeld(t, db, reservation(""), "[{0 0} {0 0} {0 0}]")
}

// TestReserveAndApplyShareLimits reserves and charges one counter in one transaction.
func TestReserveAndApplyShareLimits(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	r := reservation("call")
	err := db.Update(func(tx *bbolt.Tx) error {
		if _, _, err := boltquota.Reserve(tx, r); err != nil {
			return err
		}
		six, seven := unitsOf("day", quota.DayOf(one), 6), unitsOf("day", quota.DayOf(one), 7)
		if _, err := boltquota.Apply(tx, []quota.Charge{seven}); !errors.Is(err, quota.ErrExceeded) {
			t.Errorf("seven beside four of ten: got %v, want a refusal", err)
		}
		if _, err := boltquota.Apply(tx, []quota.Charge{six}); err != nil {
			return err
		}
		if _, _, err := boltquota.Reserve(tx, reservation("another")); !errors.Is(err, quota.ErrExceeded) {
			t.Errorf("four beside ten of ten: got %v, want a refusal", err)
		}
		_, _, err := boltquota.Release(tx, "call", time.Time{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantHeld(t, db, r, "[{0 0} {6 0} {0 0}]")
}

func TestReserveTwice(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	first := mustReserve(t, db, reservation("call"))
	other := reservation("call")
	other.Charges, other.OnExpiry = other.Charges[:1], quota.Released
	other.Charges[0].Max = 0 // there would be no room for it
	again := func(want quota.Reservation) {
		t.Helper()
		got, already, err := tryReserve(db, other)
		if diff := cmp.Diff(want, got); err != nil || !already || diff != "" {
			t.Errorf("already %t, error %v, and not what was stored: %s", already, err, diff)
		}
	}
	again(first)
	wantHeld(t, db, first, "[{0 4} {0 4} {0 4}]")

	var committed quota.Reservation
	err := db.Update(func(tx *bbolt.Tx) (err error) {
		committed, _, err = boltquota.Commit(tx, "call", []int64{1, 2, 3}, time.Time{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	again(committed)
	wantHeld(t, db, first, "[{1 0} {2 0} {3 0}]")

	// Once it is forgotten, the id is as good as new.
	settleByTurns(t, db, committed.KeptUntil().Add(-time.Microsecond), 10)
	again(committed)
	settleByTurns(t, db, committed.KeptUntil(), 10)
	if _, _, err := tryReserve(db, other); !errors.Is(err, quota.ErrExceeded) {
		t.Errorf("got %v, want the decision on a new reservation", err)
	}
}

func TestReservationIDs(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	ids := []string{"a", "ab", "\x00", "\x00\x00", "due", "\xff", strings.Repeat("x", quota.MaxReservationID)}
	for i, id := range ids {
		r := reservation(id)
		r.Charges = []quota.Charge{unitsOf(quota.Level(fmt.Sprint("level ", i)), quota.DayOf(one), 4)}
		mustReserve(t, db, r)
	}
	if _, _, err := tryReserve(db, reservation(strings.Repeat("x", quota.MaxReservationID+1))); !errors.Is(err, quota.ErrInvalidReservation) {
		t.Errorf("an id that is too long: got %v, want ErrInvalidReservation", err)
	}
	got := settleByTurns(t, db, one.Add(time.Hour), 2)
	slices.Sort(ids)
	if !slices.Equal(got, ids) {
		t.Errorf("settled %q, want each once: %q", got, ids)
	}
	for _, id := range append(ids, "b", "") {
		want := quota.ErrNoReservation
		if slices.Contains(ids, id) {
			want = nil
		}
		if _, err := find(db, id); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", id, err, want)
		}
	}
	for name, settle := range map[string]func(tx *bbolt.Tx) error{
		"commit":  func(tx *bbolt.Tx) error { _, _, err := boltquota.Commit(tx, "b", nil, time.Time{}); return err },
		"release": func(tx *bbolt.Tx) error { _, _, err := boltquota.Release(tx, "b", time.Time{}); return err },
	} {
		if err := db.Update(settle); !errors.Is(err, quota.ErrNoReservation) {
			t.Errorf("%s: got %v, want ErrNoReservation", name, err)
		}
	}
}

// TestSettleExpired settles the oldest first, and none before its instant.
func TestSettleExpired(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	for i, id := range []string{"c", "b", "a"} { // none by the order of its id
		r := reservation(id)
		r.Charges = []quota.Charge{unitsOf("day", quota.DayOf(one), 3)}
		r.ExpiresAt = one.Add(time.Duration(i) * time.Microsecond)
		if id == "b" {
			r.OnExpiry = quota.Released
		}
		mustReserve(t, db, r)
	}
	err := db.Update(func(tx *bbolt.Tx) error {
		told := 0
		more, err := boltquota.SettleExpired(tx, one.Add(time.Hour), 2, func(quota.Reservation, []quota.Count) error { told++; return nil })
		if !more || told != 2 {
			t.Errorf("more %t after %d, want more after 2", more, told)
		}
		return errors.Join(err, errTakenBack)
	})
	if !errors.Is(err, errTakenBack) {
		t.Fatal(err)
	}
	for i, want := range [][]string{nil, {"c"}, {"b"}, {"a"}, nil} {
		if got := settleByTurns(t, db, one.Add(time.Duration(i-1)*time.Microsecond), 1); !slices.Equal(got, want) {
			t.Errorf("%d microseconds later: settled %q, want %q", i-1, got, want)
		}
	}
	wantState(t, db, "c", quota.Committed)
	wantState(t, db, "b", quota.Released)
	wantUsed(t, db, "[6]", unitsOf("day", quota.DayOf(one), 1).Counter)

	// The caller is told what the counters hold, and an error of its own is returned.
	mustReserve(t, db, reservation("d"))
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := boltquota.SettleExpired(tx, one.Add(time.Hour), 10, func(r quota.Reservation, counts []quota.Count) error {
			if got := fmt.Sprint(r.ID, counts); got != "d[{4 0} {10 0} {4 0}]" {
				t.Errorf("told of %s", got)
			}
			return errTakenBack
		})
		return err
	})
	if !errors.Is(err, errTakenBack) {
		t.Errorf("got %v, want the caller's error", err)
	}
	wantState(t, db, "d", quota.Pending)
}

// TestReservationOutlivesItsWindow settles after hour, day and month have turned:
// what was stored says which counters pay, not the clock.
func TestReservationOutlivesItsWindow(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	r := mustReserve(t, db, reservation("call"))
	later := reservation("later")
	for i, w := range []quota.Window{quota.MonthOf(one.AddDate(0, 1, 0)), quota.DayOf(one.AddDate(0, 1, 0)), quota.HourOf(one.AddDate(0, 1, 0))} {
		later.Charges[i].Counter.Period, later.Charges[i].ResetAt = w.Label, w.End
	}
	mustReserve(t, db, later)
	err := db.Update(func(tx *bbolt.Tx) error {
		_, _, err := boltquota.Commit(tx, "call", []int64{2, 2, 2}, time.Time{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantHeld(t, db, r, "[{2 0} {2 0} {2 0}]")
	wantHeld(t, db, later, "[{0 4} {0 4} {0 4}]")
}

// TestReservationNeedsAWrite refuses where nothing can be written, with an error
// that is none of quota's: neither reserved nor refused for want of room.
func TestReservationNeedsAWrite(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	mustReserve(t, db, reservation("call"))
	for name, do := range map[string]func(tx *bbolt.Tx) error{
		"reserve": func(tx *bbolt.Tx) error { _, _, err := boltquota.Reserve(tx, reservation("another")); return err },
		"commit":  func(tx *bbolt.Tx) error { _, _, err := boltquota.Commit(tx, "call", nil, time.Time{}); return err },
		"release": func(tx *bbolt.Tx) error { _, _, err := boltquota.Release(tx, "call", time.Time{}); return err },
	} {
		if err := db.View(do); err == nil || errors.Is(err, quota.ErrExceeded) || errors.Is(err, quota.ErrNoReservation) {
			t.Errorf("%s: got %v, want an error of the database", name, err)
		}
	}
	wantState(t, db, "call", quota.Pending)
}
