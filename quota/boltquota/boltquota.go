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
	"bytes"
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
	last := lastPeriod{tx: tx}
	for i, c := range counters {
		bucket, err := last.counters(c.Period, countersOf)
		if errors.Is(err, ErrNoPeriod) {
			continue
		}
		if err == nil {
			used[i], err = read(bucket, c)
		}
		if err != nil {
			return nil, err
		}
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
	last := lastPeriod{tx: tx}
	for i, c := range charges {
		bucket, err := last.counters(c.Counter.Period, ensureCounters)
		if err == nil {
			err = bucket.Put(counterKey(c.Counter), binary.BigEndian.AppendUint64(nil, uint64(usages[i].Used)))
		}
		if err != nil {
			return nil, fmt.Errorf("count at level %s: %w", c.Counter.Level, err)
		}
	}
	return usages, nil
}

// Each calls use with what every counter of one level holds in a period, in the
// order of their subjects. None is called in a period in which nothing was counted.
func Each(tx *bbolt.Tx, level quota.Level, period string, use func(quota.Subject, int64)) error {
	bucket, err := countersOf(tx, period)
	if errors.Is(err, ErrNoPeriod) {
		return nil
	}
	if err != nil {
		return err
	}
	prefix := counterKey(quota.Counter{Level: level})
	cursor := bucket.Cursor()
	for key, _ := cursor.Seek(prefix); bytes.HasPrefix(key, prefix); key, _ = cursor.Next() {
		subject := quota.Subject(key[len(prefix):])
		used, err := read(bucket, quota.Counter{Level: level, Subject: subject})
		if err != nil {
			return err
		}
		use(subject, used)
	}
	return nil
}

func read(counters *bbolt.Bucket, c quota.Counter) (int64, error) {
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

// lastPeriod keeps the bucket that was found last: the charges of a demand mostly
// share their period, and finding its bucket costs more than a counter in it.
type lastPeriod struct {
	tx     *bbolt.Tx
	label  string
	bucket *bbolt.Bucket
}

func (l *lastPeriod) counters(label string, find func(*bbolt.Tx, string) (*bbolt.Bucket, error)) (*bbolt.Bucket, error) {
	if l.bucket != nil && l.label == label {
		return l.bucket, nil
	}
	bucket, err := find(l.tx, label)
	if err != nil {
		return nil, err
	}
	l.label, l.bucket = label, bucket
	return bucket, nil
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

func ensureCounters(tx *bbolt.Tx, period string) (*bbolt.Bucket, error) {
	p, err := ensurePeriod(tx, period)
	if err != nil {
		return nil, err
	}
	return p.Bucket(countersName), nil
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
