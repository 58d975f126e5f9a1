// Package boltquota keeps the counters of package quota inside a bbolt
// transaction of the caller's, so that whatever must not be overdrawn and the
// count that allows it are one commit.
//
// It promises that [Apply] counts every charge or changes nothing, and that what
// cannot be read is never taken for zero. It opens, begins and commits nothing:
// the transaction and its failure are the caller's. Call [Init] once when the
// database is opened, then [Apply] inside each write transaction, before the
// caller's own puts.
//
// The layout is days/<period>/counters/<level><subject> = 8 bytes, big-endian,
// and days/<period>/secret = the key of that period's subjects.
package boltquota

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"snip/quota"
)

var (
	rootName     = []byte("days")
	countersName = []byte("counters")
	secretName   = []byte("secret")
)

// ErrNoPeriod means that nothing was ever counted in a period.
var ErrNoPeriod = errors.New("no such period")

// Init creates the bucket that holds every period.
func Init(tx *bbolt.Tx) error {
	_, err := tx.CreateBucketIfNotExists(rootName)
	return err
}

// Used returns what the counters hold, in order. A missing counter holds zero;
// one that cannot be read is [quota.ErrCannotCount].
func Used(tx *bbolt.Tx, counters []quota.Counter) ([]int64, error) {
	if tx.Bucket(rootName) == nil {
		return nil, errNoRoot()
	}
	used := make([]int64, len(counters))
	for i, c := range counters {
		n, err := read(tx, c)
		if err != nil {
			return nil, err
		}
		used[i] = n
	}
	return used, nil
}

// Check decides as [Apply] would and changes nothing.
func Check(tx *bbolt.Tx, charges []quota.Charge) ([]quota.Usage, error) {
	counters := make([]quota.Counter, len(charges))
	for i, c := range charges {
		counters[i] = c.Counter
	}
	used, err := Used(tx, counters)
	if err != nil {
		return nil, err
	}
	return quota.Decide(charges, used)
}

// Apply decides on the charges by [quota.Decide] and counts them, or returns an
// error and changes nothing. An error of the write itself, which is none of
// quota's, leaves the transaction half done: the caller must roll it back.
func Apply(tx *bbolt.Tx, charges []quota.Charge) ([]quota.Usage, error) {
	usages, err := Check(tx, charges)
	if err != nil {
		return nil, err
	}
	for i, c := range charges {
		if err := write(tx, c.Counter, usages[i].Used); err != nil {
			return nil, fmt.Errorf("count at level %s: %w", c.Counter.Level, err)
		}
	}
	return usages, nil
}

func read(tx *bbolt.Tx, c quota.Counter) (int64, error) {
	counters, err := countersOf(tx, c.Period)
	if errors.Is(err, ErrNoPeriod) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	raw := counters.Get(counterKey(c))
	if raw == nil {
		return 0, nil
	}
	if len(raw) != 8 {
		return 0, fmt.Errorf("%w: the counter at level %s has %d bytes, not 8", quota.ErrCannotCount, c.Level, len(raw))
	}
	// A set top bit makes it negative, which quota.Decide refuses.
	return int64(binary.BigEndian.Uint64(raw)), nil
}

func write(tx *bbolt.Tx, c quota.Counter, n int64) error {
	period, err := ensurePeriod(tx, c.Period)
	if err != nil {
		return err
	}
	return period.Bucket(countersName).Put(counterKey(c), binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// countersOf tells a period in which nothing was counted yet, which is zero, from
// a bucket that should be there, which is not.
func countersOf(tx *bbolt.Tx, period string) (*bbolt.Bucket, error) {
	root := tx.Bucket(rootName)
	if root == nil {
		return nil, errNoRoot()
	}
	p := root.Bucket([]byte(period))
	if p == nil {
		return nil, ErrNoPeriod
	}
	counters := p.Bucket(countersName)
	if counters == nil {
		return nil, fmt.Errorf("%w: the bucket %q of %s is missing", quota.ErrCannotCount, countersName, period)
	}
	return counters, nil
}

func errNoRoot() error {
	return fmt.Errorf("%w: the bucket %q is missing", quota.ErrCannotCount, rootName)
}

// ensurePeriod returns the period's bucket, made whole first when it is missing.
func ensurePeriod(tx *bbolt.Tx, period string) (*bbolt.Bucket, error) {
	root := tx.Bucket(rootName)
	if root == nil {
		return nil, errNoRoot()
	}
	if p := root.Bucket([]byte(period)); p != nil {
		return p, nil
	}
	p, err := root.CreateBucket([]byte(period))
	if err != nil {
		return nil, err
	}
	if _, err := p.CreateBucket(countersName); err != nil {
		return nil, err
	}
	return p, nil
}

// counterKey begins with the level, whose names have different first letters, so
// the keys of two levels never meet.
func counterKey(c quota.Counter) []byte {
	return append([]byte{c.Level[0]}, c.Subject...)
}
