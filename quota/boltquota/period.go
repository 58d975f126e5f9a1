package boltquota

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"snip/quota"
)

// Secret returns the secret of a period, or [ErrNoPeriod] when it has none.
func Secret(tx *bbolt.Tx, period string) (quota.Secret, error) {
	var secret quota.Secret
	if _, err := countersOf(tx, period); err != nil {
		return secret, err
	}
	raw := tx.Bucket(rootName).Bucket([]byte(period)).Get(secretName)
	if raw == nil {
		return secret, ErrNoPeriod
	}
	if len(raw) != len(secret) {
		return secret, fmt.Errorf("%w: the secret of %s has %d bytes, not %d", quota.ErrCannotCount, period, len(raw), len(secret))
	}
	copy(secret[:], raw)
	return secret, nil
}

// PutSecret stores the secret of a period that has none. It lives and dies with
// the period's counters.
func PutSecret(tx *bbolt.Tx, period string, secret quota.Secret) error {
	p, err := ensurePeriod(tx, period)
	if err != nil {
		return err
	}
	return p.Put(secretName, secret[:])
}

// Sweep removes counters of the first period that ended at the instant before or
// earlier, at most limit of them, which is at least 1, and the period itself with
// its secret once it is empty. It reports whether anything was removed; calling it
// until it reports false removes them all. The instant must be one to which no
// clock comes back.
func Sweep(tx *bbolt.Tx, before time.Time, limit int) (bool, error) {
	root := tx.Bucket(rootName)
	if root == nil {
		return false, errNoRoot()
	}
	label, err := ended(root, before)
	if label == nil || err != nil {
		return false, err
	}
	// The secret goes first: the subjects of a day that is over cannot be
	// recomputed, however long its counters take to go.
	period := root.Bucket(label)
	if err := errors.Join(period.Delete(secretName), period.Put(sweptName, []byte{1})); err != nil {
		return false, err
	}
	counters := period.Bucket(countersName)
	if counters == nil {
		return true, root.DeleteBucket(label)
	}
	cursor := counters.Cursor()
	key, _ := cursor.First()
	for range limit {
		if key == nil {
			return true, root.DeleteBucket(label)
		}
		if err := cursor.Delete(); err != nil {
			return false, err
		}
		key, _ = cursor.First()
	}
	return true, nil
}

// isSwept reports whether the counters of a period, in which something was counted
// once, are gone or going.
func isSwept(tx *bbolt.Tx, period string) bool {
	root := tx.Bucket(rootName)
	if root == nil {
		return false
	}
	p := root.Bucket([]byte(period))
	return p == nil || p.Get(sweptName) != nil
}

// ended returns the first period that ended at the instant or earlier. Windows of
// several kinds lie among each other, so those that have not ended are passed over. A
// label of none is an error once nothing else is left to remove.
func ended(root *bbolt.Bucket, before time.Time) ([]byte, error) {
	var unknown error
	cursor := root.Cursor()
	for label, _ := cursor.First(); label != nil; label, _ = cursor.Next() {
		w, err := quota.ParseWindow(string(label))
		if err != nil {
			unknown = fmt.Errorf("%w: %w", quota.ErrCannotCount, err)
			continue
		}
		if !w.End.After(before) {
			return label, nil
		}
	}
	return nil, unknown
}
