package boltquota_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
)

// A note and the count that allows it are one commit: neither is ever there
// without the other.
func ExampleApply() {
	dir, err := os.MkdirTemp("", "notes")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := bbolt.Open(filepath.Join(dir, "notes.db"), 0o600, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket([]byte("notes")); err != nil {
			return err
		}
		return boltquota.Init(tx)
	})
	if err != nil {
		log.Fatal(err)
	}

	day := quota.DayOf(time.Date(2026, 11, 29, 13, 0, 0, 0, time.UTC))
	charges := []quota.Charge{{
		Counter: quota.Counter{Level: "author", Subject: "ann", Period: day.Label},
		Cost:    1, Max: 2, ResetAt: day.End,
	}}
	for _, note := range []string{"milk", "bread", "jam"} {
		var usages []quota.Usage
		err := db.Update(func(tx *bbolt.Tx) (err error) {
			if usages, err = boltquota.Apply(tx, charges); err != nil {
				return err
			}
			return tx.Bucket([]byte("notes")).Put([]byte(note), nil)
		})
		if err != nil {
			fmt.Printf("%s: %v\n", note, err)
			continue
		}
		fmt.Printf("%s: kept, %d left\n", note, usages[0].Remaining())
	}
	// Output:
	// milk: kept, 1 left
	// bread: kept, 0 left
	// jam: author quota exceeded: 2 of 2 used until 2026-11-30T00:00:00Z
}

// What is done when the program starts, and every few minutes after: reservations
// of a process that has died are settled, then counters of windows that are over
// are removed, a few at a time so that other writes get their turn.
func ExampleSettleExpired() {
	dir, err := os.MkdirTemp("", "calls")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := bbolt.Open(filepath.Join(dir, "calls.db"), 0o600, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	now := time.Date(2026, 11, 29, 13, 0, 0, 0, time.UTC)
	day := quota.DayOf(now)
	err = db.Update(func(tx *bbolt.Tx) error {
		if err := boltquota.Init(tx); err != nil {
			return err
		}
		_, _, err := boltquota.Reserve(tx, quota.Reservation{
			ID: "a call whose caller has died",
			Charges: []quota.Charge{{
				Counter: quota.Counter{Level: "calls", Period: day.Label},
				Cost:    5, Max: 100, ResetAt: day.End,
			}},
			ExpiresAt: now.Add(time.Minute), OnExpiry: quota.Committed,
		})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	tidy := func(now time.Time) error {
		for more := true; more; {
			err := db.Update(func(tx *bbolt.Tx) (err error) {
				more, err = boltquota.SettleExpired(tx, now, 100, func(r quota.Reservation, counts []quota.Count) error {
					fmt.Printf("%s: %s, %d used\n", r.ID, r.State, counts[0].Used)
					return nil
				})
				if errors.Is(err, quota.ErrCannotCount) { // of one that is damaged, which stays held
					log.Print(err)
					return nil
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		for more := true; more; {
			err := db.Update(func(tx *bbolt.Tx) (err error) {
				// A day ago is an instant to which no clock of ours comes back.
				more, err = boltquota.Sweep(tx, now.AddDate(0, 0, -1), 1000)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, now := range []time.Time{now, now.Add(time.Hour), now.AddDate(0, 0, 2)} {
		if err := tidy(now); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// a call whose caller has died: committed, 5 used
}
