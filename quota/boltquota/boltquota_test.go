package boltquota_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
)

func openDB(t testing.TB) *bbolt.DB {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "quota.db"), 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := db.Update(boltquota.Init); err != nil {
		t.Fatal(err)
	}
	return db
}

func counter(level quota.Level, subject, period string) quota.Counter {
	return quota.Counter{Level: level, Subject: quota.Subject(subject), Period: period}
}

// charges demands one unit of a service that has ten and a client that has two.
func charges(subject, period string) []quota.Charge {
	return []quota.Charge{
		{Counter: counter(quota.LevelService, "", period), Cost: 1, Max: 10},
		{Counter: counter(quota.LevelClient, subject, period), Cost: 1, Max: 2},
	}
}

func apply(db *bbolt.DB, charges []quota.Charge) error {
	return db.Update(func(tx *bbolt.Tx) error {
		_, err := boltquota.Apply(tx, charges)
		return err
	})
}

func wantUsed(t *testing.T, db *bbolt.DB, want string, counters ...quota.Counter) {
	t.Helper()
	err := db.View(func(tx *bbolt.Tx) error {
		counts, err := boltquota.Counts(tx, counters)
		if got := fmt.Sprint(quota.Taken(counts)); got != want {
			t.Errorf("used: got %s, want %s", got, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	service, client := counter(quota.LevelService, "", "today"), counter(quota.LevelClient, "ann", "today")
	wantUsed(t, db, "[0 0]", service, client)
	for range 2 {
		if err := apply(db, charges("ann", "today")); err != nil {
			t.Fatal(err)
		}
	}
	var exceeded *quota.ExceededError
	if err := apply(db, charges("ann", "today")); !errors.As(err, &exceeded) || exceeded.Usage.Level != quota.LevelClient {
		t.Errorf("got error %v, want a refusal at the client level", err)
	}
	wantUsed(t, db, "[2 2]", service, client)
	// A subject, a period and a level of their own start at zero.
	wantUsed(t, db, "[0 0 0]", counter(quota.LevelClient, "bob", "today"),
		counter(quota.LevelClient, "ann", "tomorrow"), counter(quota.LevelNetwork, "ann", "today"))
}

// TestRefusalInATransactionThatCommits shows that a refusal has written nothing,
// even when the caller goes on to commit something else.
func TestRefusalInATransactionThatCommits(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	err := db.Update(func(tx *bbolt.Tx) error {
		for range 5 {
			if _, err := boltquota.Apply(tx, charges("ann", "today")); err != nil && !errors.Is(err, quota.ErrExceeded) {
				return err
			}
		}
		_, err := boltquota.Check(tx, charges("bob", "today")) // decides and counts nothing
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantUsed(t, db, "[2 2 0]", counter(quota.LevelService, "", "today"),
		counter(quota.LevelClient, "ann", "today"), counter(quota.LevelClient, "bob", "today"))
}

func TestCannotCount(t *testing.T) {
	t.Parallel()
	days := []byte("days")
	for name, damage := range map[string]func(*bbolt.Tx) error{
		"never initialized": func(tx *bbolt.Tx) error { return tx.DeleteBucket(days) },
		"counters gone": func(tx *bbolt.Tx) error {
			return tx.Bucket(days).Bucket([]byte("today")).DeleteBucket([]byte("counters"))
		},
		"short counter": func(tx *bbolt.Tx) error {
			return tx.Bucket(days).Bucket([]byte("today")).Bucket([]byte("counters")).Put([]byte("cann"), []byte{1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openDB(t)
			if err := apply(db, charges("ann", "today")); err != nil {
				t.Fatal(err)
			}
			if err := db.Update(damage); err != nil {
				t.Fatal(err)
			}
			if err := apply(db, charges("ann", "today")); !errors.Is(err, quota.ErrCannotCount) {
				t.Errorf("got error %v, want ErrCannotCount", err)
			}
			err := db.View(func(tx *bbolt.Tx) error {
				return boltquota.Each(tx, quota.LevelClient, "today", func(quota.Subject, int64) { t.Error("a counter was read") })
			})
			if !errors.Is(err, quota.ErrCannotCount) {
				t.Errorf("of each: got error %v, want ErrCannotCount", err)
			}
		})
	}
}

func TestSecretLivesAndDiesWithItsPeriod(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	secret := quota.NewSecret()
	read := func(period string) (got quota.Secret, err error) {
		_ = db.View(func(tx *bbolt.Tx) error {
			got, err = boltquota.Secret(tx, period)
			return nil
		})
		return got, err
	}
	if _, err := read("2026-11-28"); !errors.Is(err, boltquota.ErrNoPeriod) {
		t.Errorf("got error %v, want ErrNoPeriod", err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error { return boltquota.PutSecret(tx, "2026-11-28", secret) }); err != nil {
		t.Fatal(err)
	}
	if got, err := read("2026-11-28"); err != nil || got != secret {
		t.Errorf("got %v, %v, want what was put", got, err)
	}
	for _, period := range []string{"2026-11-28", "2026-11-29", "2026-11-30"} {
		for _, subject := range []string{"ann", "bob", "cid"} {
			if err := apply(db, charges(subject, period)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Two counters at a time: four of the oldest day take two rounds, its bucket a third.
	rounds := 0
	for more := true; more; rounds++ {
		err := db.Update(func(tx *bbolt.Tx) (err error) {
			more, err = boltquota.Sweep(tx, quota.DayOf(time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)).Start, 2)
			return err
		})
		if err != nil || rounds > 10 {
			t.Fatalf("round %d: %v", rounds, err)
		}
		if _, err := read("2026-11-28"); !errors.Is(err, boltquota.ErrNoPeriod) {
			t.Errorf("the secret outlived the first round: %v", err)
		}
	}
	if rounds != 4 {
		t.Errorf("swept in %d rounds, want 4: two of counters, one of the bucket, one that finds nothing", rounds)
	}
	wantUsed(t, db, "[0 1 1]", counter(quota.LevelClient, "ann", "2026-11-28"),
		counter(quota.LevelClient, "ann", "2026-11-29"), counter(quota.LevelClient, "ann", "2026-11-30"))
}

// Windows of all kinds lie among each other: those go that have ended, and no others,
// whatever the order of their labels.
func TestSweepWindows(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	for _, label := range []string{
		"2026-10", "2026-11", "2026-12", "2026-11-27", "2026-11-28", "2026-11-29", "2026-11-28T23", "2026-11-29T00", "2026-11-28T00",
	} {
		if err := apply(db, charges("ann", label)); err != nil {
			t.Fatal(err)
		}
	}
	for more := true; more; {
		err := db.Update(func(tx *bbolt.Tx) (err error) {
			more, err = boltquota.Sweep(tx, time.Date(2026, 11, 28, 23, 0, 0, 0, time.UTC), 1)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	kept := []string{"2026-11", "2026-11-28", "2026-11-28T23", "2026-11-29", "2026-11-29T00", "2026-12"}
	wantPeriods(t, db, kept...)
	// Of what is no window nobody knows whether it has ended.
	if err := apply(db, charges("ann", "2026-11-")); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		err := db.Update(func(tx *bbolt.Tx) error {
			more, err := boltquota.Sweep(tx, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 1)
			if more == (err != nil) {
				t.Errorf("removed %v, %v", more, err)
			}
			return err
		})
		if err == nil {
			continue
		}
		if !errors.Is(err, quota.ErrCannotCount) {
			t.Errorf("got error %v, want ErrCannotCount", err)
		}
		break
	}
	wantPeriods(t, db, "2026-11-")
}
