// Package boltquota keeps the counters and reservations of package quota inside a
// bbolt transaction of the caller's, so that whatever must not be overdrawn and the
// count that allows it are one commit.
//
// It promises that [Apply] and [Reserve] count every charge or change nothing, and
// that what cannot be read is never taken for zero. It opens, begins and commits
// nothing: the transaction and its failure are the caller's, and any error but a
// refusal must end in a rollback.
//
// Call [Init] once when the database is opened. Call [Apply] inside each write
// transaction, before the caller's own puts; or [Reserve] in one, and [Commit] or
// [Release] in another when the work is done. Call [SettleExpired] and [Sweep] at
// the start and now and then, each until it reports false, in a transaction for each
// call.
//
// Two root buckets of the file are this package's: days and reservations. The
// layout is days/<window>/counters/<level><subject> = 8 bytes, big-endian, of what
// is used, and where something is held 8 more; days/<window>/secret = the key of
// that window's subjects, if it has one; reservations/ids/<id> = a reservation, in
// CBOR; reservations/due/<instant><id>, when something is to be done about it.
package boltquota

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"go.etcd.io/bbolt"

	"snip/quota"
)

var (
	rootName     = []byte("days")
	countersName = []byte("counters")
	secretName   = []byte("secret")
	sweptName    = []byte("swept") // in a period, once counters of it have been removed
)

// ErrNoPeriod means that nothing was ever counted in a period.
var ErrNoPeriod = errors.New("no such period")

// Init creates the bucket that holds every period, if it is not there yet. Without
// it nothing can be counted: a file that has lost its counters is no empty one.
func Init(tx *bbolt.Tx) error {
	_, err := tx.CreateBucketIfNotExists(rootName)
	return err
}

// Counts returns what the counters hold, in order. A missing counter holds
// nothing; one that cannot be read is [quota.ErrCannotCount].
func Counts(tx *bbolt.Tx, counters []quota.Counter) ([]quota.Count, error) {
	if tx.Bucket(rootName) == nil {
		return nil, errNoRoot()
	}
	counts := make([]quota.Count, len(counters))
	last := lastPeriod{tx: tx}
	for i, c := range counters {
		bucket, err := last.counters(c.Period, countersOf)
		if errors.Is(err, ErrNoPeriod) {
			continue
		}
		if err == nil {
			counts[i], err = read(bucket, c)
		}
		if err != nil {
			return nil, err
		}
	}
	return counts, nil
}

func countersIn(charges []quota.Charge) []quota.Counter {
	counters := make([]quota.Counter, len(charges))
	for i, c := range charges {
		counters[i] = c.Counter
	}
	return counters
}

// write makes the counters hold the counts. An error leaves the transaction half done.
func write(tx *bbolt.Tx, charges []quota.Charge, counts []quota.Count) error {
	last := lastPeriod{tx: tx}
	for i, c := range charges {
		bucket, err := last.counters(c.Counter.Period, ensureCounters)
		if err == nil {
			err = bucket.Put(counterKey(c.Counter), encodeCount(counts[i]))
		}
		if err != nil {
			return fmt.Errorf("count at level %s: %w", c.Counter.Level, err)
		}
	}
	return nil
}

// Check decides as [Apply] would and changes nothing.
func Check(tx *bbolt.Tx, charges []quota.Charge) ([]quota.Usage, error) {
	counts, err := Counts(tx, countersIn(charges))
	if err != nil {
		return nil, err
	}
	return quota.Decide(charges, quota.Taken(counts))
}

// Apply decides on the charges by [quota.Decide] and counts them, or returns an
// error and changes nothing. An error of the write itself, which is none of
// quota's, leaves the transaction half done: the caller must roll it back.
func Apply(tx *bbolt.Tx, charges []quota.Charge) ([]quota.Usage, error) {
	counts, err := Counts(tx, countersIn(charges))
	if err != nil {
		return nil, err
	}
	usages, err := quota.Decide(charges, quota.Taken(counts))
	if err != nil {
		return nil, err
	}
	for i, c := range charges {
		counts[i].Used += c.Cost
	}
	return usages, write(tx, charges, counts)
}

// Each calls use with what is used of every counter of one level holds in a period, in the
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
		count, err := read(bucket, quota.Counter{Level: level, Subject: subject})
		if err != nil {
			return err
		}
		use(subject, count.Used)
	}
	return nil
}

func read(counters *bbolt.Bucket, c quota.Counter) (quota.Count, error) {
	raw := counters.Get(counterKey(c))
	if raw == nil {
		return quota.Count{}, nil
	}
	count, err := decodeCount(raw)
	if err != nil {
		return quota.Count{}, fmt.Errorf("%w: the counter at level %s %w", quota.ErrCannotCount, c.Level, err)
	}
	return count, nil
}

// encodeCount is what is used and, where something is held, that too: 8 bytes each.
func encodeCount(c quota.Count) []byte {
	raw := binary.BigEndian.AppendUint64(nil, uint64(c.Used))
	if c.Held != 0 {
		raw = binary.BigEndian.AppendUint64(raw, uint64(c.Held))
	}
	return raw
}

func decodeCount(raw []byte) (c quota.Count, err error) {
	switch len(raw) {
	case 16:
		c.Held = int64(binary.BigEndian.Uint64(raw[8:]))
		fallthrough
	case 8:
		c.Used = int64(binary.BigEndian.Uint64(raw))
	default:
		return c, fmt.Errorf("has %d bytes, not 8 or 16", len(raw))
	}
	if c.Used < 0 || c.Held < 0 || c.Held > math.MaxInt64-c.Used {
		return c, fmt.Errorf("holds %d and %d, which cannot be", c.Used, c.Held)
	}
	return c, nil
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

// letters are the levels that are kept as one letter, because there are thousands
// of their counters.
var letters = map[quota.Level]byte{quota.LevelService: 's', quota.LevelNetwork: 'n', quota.LevelClient: 'c'}

// counterKey begins with the level's letter, or with the length of its name, which
// is below every letter, and the name: the keys of two levels never meet.
func counterKey(c quota.Counter) []byte {
	if letter, ok := letters[c.Level]; ok {
		return append([]byte{letter}, c.Subject...)
	}
	key := append([]byte{byte(len(c.Level))}, c.Level...)
	return append(key, c.Subject...)
}

// counterOf is the counter of a key, without its period; the zero counter is none.
func counterOf(key []byte) quota.Counter {
	for level, letter := range letters {
		if key[0] == letter {
			return quota.Counter{Level: level, Subject: quota.Subject(key[1:])}
		}
	}
	if n := 1 + int(key[0]); n > 1 && n <= 1+quota.MaxLevel && n <= len(key) {
		return quota.Counter{Level: quota.Level(key[1:n]), Subject: quota.Subject(key[n:])}
	}
	return quota.Counter{}
}
