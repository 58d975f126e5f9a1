package boltquota_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
)

// sweep removes the counters of one round.
func sweep(t *testing.T, db *bbolt.DB, before time.Time, limit int) (more bool) {
	t.Helper()
	err := db.Update(func(tx *bbolt.Tx) (err error) {
		more, err = boltquota.Sweep(tx, before, limit)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return more
}

func wantPeriods(t *testing.T, db *bbolt.DB, want ...string) {
	t.Helper()
	err := db.View(func(tx *bbolt.Tx) error {
		got, err := boltquota.Periods(tx)
		if !slices.Equal(got, want) {
			t.Errorf("kept %q, want %q", got, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSweepWindowsOfEveryKind removes hours, days and months, which lie among each
// other, each at the instant at which it has ended and not before.
func TestSweepWindowsOfEveryKind(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	periods := []string{
		"2026-10", "2026-10-31", "2026-10-31T22", "2026-10-31T23",
		"2026-11", "2026-11-01", "2026-11-01T00", "2026-11-01T01", "2026-11-02", "2026-12",
	}
	for _, period := range periods {
		if err := apply(db, charges("ann", period)); err != nil {
			t.Fatal(err)
		}
	}
	november := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		before time.Time
		gone   []string
	}{
		{november.Add(-time.Hour - 1), nil},
		{november.Add(-time.Hour), []string{"2026-10-31T22"}},
		{november.Add(-1), nil},
		{november.In(time.FixedZone("", 9*3600)), []string{"2026-10", "2026-10-31", "2026-10-31T23"}},
		{november.Add(time.Hour), []string{"2026-11-01T00"}},
		{november.Add(24*time.Hour - 1), []string{"2026-11-01T01"}},
		{november.Add(24 * time.Hour), []string{"2026-11-01"}},
		{november.AddDate(0, 1, 0).Add(-1), []string{"2026-11-02"}},
		{november.AddDate(0, 1, 0), []string{"2026-11"}},
		{november.AddDate(0, 2, 0), []string{"2026-12"}},
	} {
		rounds := 0
		for sweep(t, db, step.before, 100) {
			rounds++
		}
		if rounds != len(step.gone) {
			t.Errorf("before %s: %d rounds, want %d", step.before, rounds, len(step.gone))
		}
		periods = slices.DeleteFunc(periods, func(p string) bool { return slices.Contains(step.gone, p) })
		wantPeriods(t, db, periods...)
	}
}

// TestSweepOfAnUnknownPeriod removes nothing that it does not understand.
func TestSweepOfAnUnknownPeriod(t *testing.T) {
	t.Parallel()
	for _, period := range []string{"2026-W44", "2026-11-1", "2026-11-01T3"} {
		db := openDB(t)
		if err := apply(db, charges("ann", period)); err != nil {
			t.Fatal(err)
		}
		err := db.Update(func(tx *bbolt.Tx) error {
			more, err := boltquota.Sweep(tx, one.AddDate(100, 0, 0), 100)
			if more {
				t.Errorf("%s: something was removed", period)
			}
			return err
		})
		if !errors.Is(err, quota.ErrCannotCount) {
			t.Errorf("%s: got %v, want ErrCannotCount", period, err)
		}
		wantPeriods(t, db, period)
	}
}

// TestPendingInASweptWindow settles a reservation of which some windows are gone
// and some are not: what was swept decides nothing more and does not come back,
// the rest is counted.
func TestPendingInASweptWindow(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		settle func(tx *bbolt.Tx) (quota.Reservation, []quota.Count, error)
		state  quota.State
		told   string
		want   string
	}{
		"committed": {func(tx *bbolt.Tx) (quota.Reservation, []quota.Count, error) {
			return boltquota.Commit(tx, "call", []int64{3, 3, 3}, time.Time{})
		}, quota.Committed, "[{3 0} {3 0} {3 0}]", "[{3 0} {0 0} {0 0}]"},
		"released": {func(tx *bbolt.Tx) (quota.Reservation, []quota.Count, error) {
			return boltquota.Release(tx, "call", time.Time{})
		}, quota.Released, "[{0 0} {0 0} {0 0}]", "[{0 0} {0 0} {0 0}]"},
		"expired": {func(tx *bbolt.Tx) (r quota.Reservation, counts []quota.Count, err error) {
			_, err = boltquota.SettleExpired(tx, one.AddDate(0, 0, 2), 10, func(settled quota.Reservation, held []quota.Count) error {
				r, counts = settled, held
				return nil
			})
			return r, counts, err
		}, quota.Committed, "[{4 0} {4 0} {4 0}]", "[{4 0} {0 0} {0 0}]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openDB(t)
			r := mustReserve(t, db, reservation("call"))
			for sweep(t, db, one.AddDate(0, 0, 1).Truncate(24*time.Hour), 100) { // the end of the day
			}
			wantPeriods(t, db, "2026-11")
			err := db.Update(func(tx *bbolt.Tx) error {
				settled, counts, err := row.settle(tx)
				if settled.State != row.state || fmt.Sprint(counts) != row.told {
					t.Errorf("got %s and %v, want %s and %s", settled.State, counts, row.state, row.told)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			wantHeld(t, db, r, row.want)
			wantPeriods(t, db, "2026-11")
			if name == "expired" { // its caller comes late: where the window has gone, nothing is counted
				err := db.Update(func(tx *bbolt.Tx) error {
					_, counts, err := boltquota.Commit(tx, "call", []int64{4, 9, 9}, time.Time{})
					if told := "[{4 0} {9 0} {9 0}]"; fmt.Sprint(counts) != told {
						t.Errorf("late: got %v, want %s", counts, told)
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				wantHeld(t, db, r, row.want)
			}
			err = db.Update(func(tx *bbolt.Tx) error {
				settled, counts, err := boltquota.Release(tx, "call", time.Time{})
				if settled.State != row.state || fmt.Sprint(counts) != row.want {
					t.Errorf("again: got %s and %v, want %s and %s", settled.State, counts, row.state, row.want)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
