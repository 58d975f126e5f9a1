package boltquota

import (
	"fmt"

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

// Sweep removes counters of the oldest period whose label is below keep, at most
// limit of them, and the period itself with its secret once it is empty. It
// reports whether anything was removed; calling it until it reports false removes
// them all.
func Sweep(tx *bbolt.Tx, keep string, limit int) (bool, error) {
	root := tx.Bucket(rootName)
	if root == nil {
		return false, errNoRoot()
	}
	label, _ := root.Cursor().First()
	if label == nil || string(label) >= keep {
		return false, nil
	}
	// The secret goes first: the subjects of a day that is over cannot be
	// recomputed, however long its counters take to go.
	period := root.Bucket(label)
	if err := period.Delete(secretName); err != nil {
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
