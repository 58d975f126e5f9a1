package quota_test

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

// bot answers messages with a model that is paid by the call. Its two writes fail
// in opposite directions, which is decided here, where it is known what is at stake.
type bot struct {
	seen   *bbolt.DB // the messages that were handled
	counts *bbolt.DB // the calls of the model, by boltquota
}

func (b *bot) handle(message, person string, now time.Time) string {
	first, err := b.firstTime(message)
	if err != nil {
		// Fails open: two answers are better than none, and their cost is guarded below.
		first = true
	}
	if !first {
		return "handled before"
	}
	switch err := b.count(person, 1, now); {
	case err == nil:
		return "answered by the model"
	case errors.Is(err, quota.ErrExceeded):
		return "refused: " + err.Error()
	default:
		// Fails closed: a call that cannot be counted is not made.
		return "left to a person: it cannot be counted"
	}
}

func (b *bot) firstTime(message string) (first bool, err error) {
	err = b.seen.Update(func(tx *bbolt.Tx) error {
		messages, err := tx.CreateBucketIfNotExists([]byte("messages"))
		if err != nil {
			return err
		}
		first = messages.Get([]byte(message)) == nil
		return messages.Put([]byte(message), []byte{})
	})
	return first, err
}

// count counts calls of the model: 300 per day for all, 20 per hour for each person.
func (b *bot) count(person string, calls int64, now time.Time) error {
	day, hour := quota.DayOf(now), quota.HourOf(now)
	charges := []quota.Charge{{
		Counter: quota.Counter{Level: "all", Period: day.Label},
		Cost:    calls, Max: 300, ResetAt: day.End,
	}, {
		Counter: quota.Counter{Level: "person", Subject: quota.Subject(person), Period: hour.Label},
		Cost:    calls, Max: 20, ResetAt: hour.End,
	}}
	return b.counts.Update(func(tx *bbolt.Tx) error {
		_, err := boltquota.Apply(tx, charges)
		return err
	})
}

// A chat bot whose calls of a model are limited for each person and hour and for
// all people and the day, and which stops calling when it cannot count.
func Example_chatBot() {
	dir, err := os.MkdirTemp("", "bot")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var b bot
	if b.seen, err = bbolt.Open(filepath.Join(dir, "seen.db"), 0o600, nil); err != nil {
		log.Fatal(err)
	}
	countsFile := filepath.Join(dir, "counts.db")
	if b.counts, err = bbolt.Open(countsFile, 0o600, nil); err != nil {
		log.Fatal(err)
	}
	if err := b.counts.Update(boltquota.Init); err != nil {
		log.Fatal(err)
	}

	one := time.Date(2026, 11, 29, 13, 0, 0, 0, time.UTC)
	fmt.Println("message 1:", b.handle("1", "ann", one))
	fmt.Println("message 1 again:", b.handle("1", "ann", one))
	for range 18 {
		if err := b.count("ann", 1, one); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("message 20:", b.handle("20", "ann", one))
	fmt.Println("message 21:", b.handle("21", "ann", one))
	two := one.Add(time.Hour)
	for i := range 14 { // others make the day's 20 into 300, each by a demand of 20 at once
		if err := b.count(fmt.Sprint("person ", i), 20, two); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("message 22, an hour later:", b.handle("22", "ann", two))
	tomorrow := one.AddDate(0, 0, 1)
	fmt.Println("message 23, a day later:", b.handle("23", "ann", tomorrow))

	if err := b.seen.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("message 23 again, but nothing can be remembered:", b.handle("23", "ann", tomorrow))

	if err := b.counts.Close(); err != nil {
		log.Fatal(err)
	}
	if b.counts, err = bbolt.Open(countsFile, 0o600, &bbolt.Options{ReadOnly: true}); err != nil {
		log.Fatal(err)
	}
	defer b.counts.Close()
	fmt.Println("message 24, and nothing can be counted:", b.handle("24", "ann", tomorrow))
	// Output:
	// message 1: answered by the model
	// message 1 again: handled before
	// message 20: answered by the model
	// message 21: refused: person quota exceeded: 20 of 20 used until 2026-11-29T14:00:00Z
	// message 22, an hour later: refused: all quota exceeded: 300 of 300 used until 2026-11-30T00:00:00Z
	// message 23, a day later: answered by the model
	// message 23 again, but nothing can be remembered: answered by the model
	// message 24, and nothing can be counted: left to a person: it cannot be counted
}
