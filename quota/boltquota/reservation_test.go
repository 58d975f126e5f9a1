package boltquota_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
)

var (
	noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	soon = noon.Add(time.Minute)
)

// demand returns a reservation of two units of each of the levels that charges has.
func demand(id string) quota.Reservation {
	all := charges("ann", "2026-11-29")
	for i := range all {
		all[i].Cost, all[i].Max, all[i].ResetAt = 2, 10, noon.Add(12*time.Hour)
	}
	return quota.Reservation{ID: id, Charges: all, ExpiresAt: soon, OnExpiry: quota.Committed}
}

func reserve(t *testing.T, db *bbolt.DB, ids ...string) {
	t.Helper()
	for _, id := range ids {
		err := db.Update(func(tx *bbolt.Tx) error {
			_, _, err := boltquota.Reserve(tx, demand(id))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// wantCounts asserts what the service and ann hold: used and held of each.
func wantCounts(t *testing.T, db *bbolt.DB, want string) {
	t.Helper()
	err := db.View(func(tx *bbolt.Tx) error {
		counts, err := boltquota.Counts(tx, []quota.Counter{counter(quota.LevelService, "", "2026-11-29"), counter(quota.LevelClient, "ann", "2026-11-29")})
		if got := fmt.Sprint(counts); got != want {
			t.Errorf("the counters hold %s, want %s", got, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// checked returns what is wrong with the reservations.
func checked(t *testing.T, db *bbolt.DB) (wrong []string) {
	t.Helper()
	err := db.View(func(tx *bbolt.Tx) error {
		boltquota.CheckReservations(tx, func(err error) { wrong = append(wrong, err.Error()) })
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return wrong
}

// settleAll settles what can be settled, and returns what is wrong with the rest.
func settleAll(db *bbolt.DB, now time.Time) (settled []string, wrong error) {
	err := db.Update(func(tx *bbolt.Tx) error {
		for more := true; more; {
			more, wrong = boltquota.SettleExpired(tx, now, 1, func(r quota.Reservation, _ []quota.Count) error {
				settled = append(settled, r.ID)
				return nil
			})
			if wrong != nil && !errors.Is(wrong, quota.ErrCannotCount) {
				return wrong
			}
		}
		return nil
	})
	return settled, errors.Join(wrong, err)
}

// Those that cannot be read keep nobody else's from being settled, by a caller who rolls
// back whatever ends in an error.
func TestDamagedReservationsHoldUpNobody(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	reserve(t, db, "a", "b", "c", "d")
	if err := db.Update(func(tx *bbolt.Tx) error {
		ids := at(tx, "reservations/ids")
		return errors.Join(ids.Put([]byte("a"), []byte("?")), ids.Put([]byte("c"), []byte("?")))
	}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		more  bool
		wrong bool
	}{{true, false}, {true, false}, {false, true}, {false, true}} {
		var more bool
		err := db.Update(func(tx *bbolt.Tx) (err error) {
			more, err = boltquota.SettleExpired(tx, soon, 0, nil) // which is one at a time
			return err
		})
		if more != want.more || errors.Is(err, quota.ErrCannotCount) != want.wrong || err != nil && (!strings.Contains(err.Error(), `"a"`) || !strings.Contains(err.Error(), `"c"`)) {
			t.Errorf("more %v, %v, want %+v", more, err, want)
		}
	}
	wantCounts(t, db, "[{4 4} {4 4}]")
}

// A caller whose work fails once one is settled hears of that and not of the damage.
func TestSettledFails(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	reserve(t, db, "a")
	lost := fmt.Errorf("%w: my own", quota.ErrCannotCount)
	err := db.Update(func(tx *bbolt.Tx) error {
		more, err := boltquota.SettleExpired(tx, soon, 9, func(quota.Reservation, []quota.Count) error { return lost })
		if more {
			t.Error("it goes on")
		}
		return err
	})
	if !errors.Is(err, lost) {
		t.Errorf("got the error %v, want %v", err, lost)
	}
	wantCounts(t, db, "[{0 2} {0 2}]")
}

// A refusal has written nothing, even when the caller goes on to commit something.
func TestReserveRefusedInATransactionThatCommits(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	err := db.Update(func(tx *bbolt.Tx) error {
		for i := range 7 {
			_, _, err := boltquota.Reserve(tx, demand(fmt.Sprint("call ", i)))
			if (err != nil) != (i >= 5) || err != nil && !errors.Is(err, quota.ErrExceeded) {
				t.Errorf("number %d: %v", i, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantCounts(t, db, "[{0 10} {0 10}]")
	if wrong := checked(t, db); wrong != nil {
		t.Errorf("the check says %q", wrong)
	}
}

// A counter is as long as what it holds: 8 bytes, and 8 more while something is held.
func TestCounterSizes(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	wantSize := func(want int) {
		t.Helper()
		_ = db.View(func(tx *bbolt.Tx) error {
			if raw := tx.Bucket([]byte("days")).Bucket([]byte("2026-11-29")).Bucket([]byte("counters")).Get([]byte("s")); len(raw) != want {
				t.Errorf("a counter of %d bytes, want %d", len(raw), want)
			}
			return nil
		})
	}
	reserve(t, db, "call")
	wantSize(16)
	err := db.Update(func(tx *bbolt.Tx) error {
		_, counts, err := boltquota.Commit(tx, "call", nil, time.Time{})
		if fmt.Sprint(counts) != "[{2 0} {2 0}]" {
			t.Errorf("committed, the counters hold %v", counts)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantSize(8)
}

// Reservations whose window is being swept, a few counters at a time, are settled
// all the same, and nothing is counted in it any more.
func TestSettleWhileSweeping(t *testing.T) {
	t.Parallel()
	for rounds := range 4 {
		db := openDB(t)
		reserve(t, db, "commit", "release", "expire")
		for range rounds {
			err := db.Update(func(tx *bbolt.Tx) error {
				_, err := boltquota.Sweep(tx, noon.AddDate(0, 0, 2), 1)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		err := db.Update(func(tx *bbolt.Tx) error {
			committed, _, err := boltquota.Commit(tx, "commit", []int64{3, 3}, time.Time{})
			released, _, releaseErr := boltquota.Release(tx, "release", time.Time{})
			if committed.State != quota.Committed || released.State != quota.Released {
				t.Errorf("after %d rounds: %+v, %+v", rounds, committed, released)
			}
			return errors.Join(err, releaseErr)
		})
		if err != nil {
			t.Errorf("after %d rounds: %v", rounds, err)
		}
		if settled, err := settleAll(db, soon); err != nil || fmt.Sprint(settled) != "[expire]" {
			t.Errorf("after %d rounds: settled %q, %v", rounds, settled, err)
		}
		if wrong := checked(t, db); wrong != nil {
			t.Errorf("after %d rounds the check says %q", rounds, wrong)
		}
	}
}

// at returns the bucket at a path.
func at(tx *bbolt.Tx, path string) *bbolt.Bucket {
	parts := strings.Split(path, "/")
	bucket := tx.Bucket([]byte(parts[0]))
	for _, part := range parts[1:] {
		bucket = bucket.Bucket([]byte(part))
	}
	return bucket
}

// record returns the record of demand("b") with one of its fields changed.
func record(t testing.TB, field int, value any) []byte {
	t.Helper()
	fields := map[int]any{
		0: 1, 1: []map[int]any{{0: "service", 2: "2026-11-29", 3: 2, 4: 10, 7: noon.UnixMicro()}},
		2: soon.UnixMicro(), 3: "committed", 4: "pending",
	}
	fields[field] = value
	raw, err := cbor.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Whatever has become of a reservation, it is never settled by guesswork and what it
// holds stays held; others are settled beside it, and the check finds it.
func TestDamagedReservations(t *testing.T) {
	t.Parallel()
	const ids, dues = "reservations/ids", "reservations/due"
	due := func(at time.Time, id string) []byte {
		return append(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMicro())), id...)
	}
	overwrite := func(raw []byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return at(tx, ids).Put([]byte("b"), raw) }
	}
	charge := func(field int, value any) []byte {
		fields := map[int]any{0: "service", 2: "2026-11-29", 3: 2, 4: 10, 7: noon.UnixMicro()}
		fields[field] = value
		return record(t, 1, []map[int]any{fields})
	}
	for name, row := range map[string]struct {
		damage func(*bbolt.Tx) error
		want   string
	}{
		"nothing":                 {overwrite(nil), "EOF"},
		"no CBOR":                 {overwrite([]byte("?")), "cbor: "},
		"something behind it":     {overwrite(append(record(t, 4, "pending"), 0)), "extraneous data"},
		"of a newer program":      {overwrite(record(t, 0, 2)), "version 2 is not known"},
		"in no state":             {overwrite(record(t, 4, "paid")), `its state is "paid"`},
		"committed to nothing":    {overwrite(record(t, 4, "committed")), "has 0 amounts"},
		"expired and pending":     {overwrite(record(t, 8, true)), "and is pending"},
		"pending and paid":        {overwrite(record(t, 5, []int64{1})), "has 1 amounts"},
		"without charges":         {overwrite(record(t, 1, []int{})), "no charges"},
		"with a negative cost":    {overwrite(charge(3, -2)), "cost -2"},
		"of a level without name": {overwrite(charge(0, "")), `the level ""`},
		"without an end":          {overwrite(record(t, 3, "")), "on expiry"},
		"due at another instant":  {overwrite(record(t, 2, soon.UnixMicro()+1)), "due at another instant"},
		"holding more than is":    {overwrite(charge(3, 7)), "less than the 7"},
		"gone":                    {func(tx *bbolt.Tx) error { return at(tx, ids).Delete([]byte("b")) }, "due and missing"},
		"a bucket in its place": {func(tx *bbolt.Tx) error {
			return errors.Join(at(tx, ids).Delete([]byte("b")), second(at(tx, ids).CreateBucket([]byte("b"))))
		}, "due and missing"},
		"an entry that is too short": {func(tx *bbolt.Tx) error {
			return errors.Join(at(tx, dues).Delete(due(soon, "b")), at(tx, dues).Put(make([]byte, 8), nil))
		}, "is no reservation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openDB(t)
			reserve(t, db, "a", "b", "c")
			if err := db.Update(row.damage); err != nil {
				t.Fatal(err)
			}
			wrong := checked(t, db)
			if len(wrong) == 0 {
				t.Error("the check finds nothing")
			}
			settled, err := settleAll(db, soon)
			if !errors.Is(err, quota.ErrCannotCount) || !strings.Contains(fmt.Sprint(err), row.want) {
				t.Errorf("got error %v, want ErrCannotCount and %q", err, row.want)
			}
			if fmt.Sprint(settled) != "[a c]" {
				t.Errorf("settled %q, want the others", settled)
			}
			wantCounts(t, db, "[{4 2} {4 2}]")
		})
	}
}

func second[A, B any](_ A, b B) B { return b }

// Whatever stands in a record, it is refused or makes sense.
func FuzzReservation(f *testing.F) {
	for _, seed := range [][]byte{nil, []byte("?"), []byte("\xa0"), record(f, 4, "pending"), record(f, 4, "committed"), record(f, 1, []int{1}), record(f, 2, -1)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) == 0 { // within a transaction it looks as if it were gone
			return
		}
		db := openDB(t)
		reserve(t, db, "b")
		err := db.Update(func(tx *bbolt.Tx) error {
			if err := at(tx, "reservations/ids").Put([]byte("b"), raw); err != nil {
				return err
			}
			r, err := boltquota.Reservation(tx, "b")
			if err == nil {
				return r.ValidateStored()
			}
			if !errors.Is(err, quota.ErrCannotCount) {
				return err
			}
			_, already, err := boltquota.Reserve(tx, demand("b"))
			if already || !errors.Is(err, quota.ErrCannotCount) {
				return fmt.Errorf("reserved anew: already %v, %w", already, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%x: %v", raw, err)
		}
	})
}

// What the buckets of reservations hold is gone: nothing is taken for fresh.
func TestReservationsWithoutTheirBuckets(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ids", "due"} {
		db := openDB(t)
		reserve(t, db, "a")
		if err := db.Update(func(tx *bbolt.Tx) error { return at(tx, "reservations").DeleteBucket([]byte(name)) }); err != nil {
			t.Fatal(err)
		}
		for what, run := range map[string]func(*bbolt.Tx) error{
			"reserve": func(tx *bbolt.Tx) error { _, _, err := boltquota.Reserve(tx, demand("a")); return err },
			"commit":  func(tx *bbolt.Tx) error { _, _, err := boltquota.Commit(tx, "a", nil, time.Time{}); return err },
			"release": func(tx *bbolt.Tx) error { _, _, err := boltquota.Release(tx, "a", time.Time{}); return err },
			"settle":  func(tx *bbolt.Tx) error { _, err := boltquota.SettleExpired(tx, soon, 1, nil); return err },
		} {
			if err := db.Update(run); !errors.Is(err, quota.ErrCannotCount) {
				t.Errorf("%s without %s: got error %v, want ErrCannotCount", what, name, err)
			}
		}
		wantCounts(t, db, "[{0 2} {0 2}]")
		if wrong := checked(t, db); !slices.ContainsFunc(wrong, func(s string) bool { return strings.Contains(s, "is missing") }) {
			t.Errorf("without %s the check says %q", name, wrong)
		}
	}
}

// Held sums of counters are those of pending reservations.
func TestCheckReservationsComparesSums(t *testing.T) {
	t.Parallel()
	counters := "days/2026-11-29/counters"
	for name, row := range map[string]struct {
		damage func(*bbolt.Tx) error
		want   string
	}{
		"too much is held": {func(tx *bbolt.Tx) error { return at(tx, counters).Put([]byte("s"), append(make([]byte, 15), 5)) }, "5 are held at level service of 2026-11-29, and reservations hold 2"},
		"nothing is held":  {func(tx *bbolt.Tx) error { return at(tx, counters).Put([]byte("s"), make([]byte, 8)) }, "0 are held at level service of 2026-11-29, and reservations hold 2"},
		"no counter":       {func(tx *bbolt.Tx) error { return at(tx, counters).Delete([]byte("cann")) }, "reservations hold 2 at level client of 2026-11-29, whose counter is missing"},
	} {
		db := openDB(t)
		reserve(t, db, "a")
		if err := db.Update(row.damage); err != nil {
			t.Fatal(err)
		}
		if wrong := checked(t, db); !slices.Equal(wrong, []string{row.want}) {
			t.Errorf("%s: the check says %q, want %q", name, wrong, row.want)
		}
	}
}

// A record of a program that knew no times is read without them, and settled.
func TestReservationOfAnEarlierProgram(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	reserve(t, db, "b")
	err := db.Update(func(tx *bbolt.Tx) error {
		if err := at(tx, "reservations/ids").Put([]byte("b"), record(t, 4, "pending")); err != nil {
			return err
		}
		r, err := boltquota.Reservation(tx, "b")
		if !r.CreatedAt.IsZero() || !r.UpdatedAt.IsZero() || r.Expired {
			t.Errorf("it is read as %+v", r)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, _, err := boltquota.Commit(tx, "b", []int64{1}, noon)
		if err != nil {
			return err
		}
		r, err := boltquota.Reservation(tx, "b")
		if !r.CreatedAt.IsZero() || !r.UpdatedAt.Equal(noon) || r.State != quota.Committed {
			t.Errorf("it was settled as %+v", r)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
