package boltquota

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"snip/quota"
)

// Periods returns the labels of all periods that are kept, the oldest first.
func Periods(tx *bbolt.Tx) (labels []string, err error) {
	root := tx.Bucket(rootName)
	if root == nil {
		return nil, errNoRoot()
	}
	err = root.ForEach(func(label, value []byte) error {
		if value != nil {
			return fmt.Errorf("%q is no period", label)
		}
		labels = append(labels, string(label))
		return nil
	})
	return labels, err
}

// Counters returns what every counter of a period holds. Its error joins what is
// wrong with the others.
func Counters(tx *bbolt.Tx, period string) (map[quota.Counter]quota.Count, error) {
	bucket, err := countersOf(tx, period)
	if err != nil {
		return nil, err
	}
	counts := map[quota.Counter]quota.Count{}
	var wrong []error
	err = bucket.ForEach(func(key, _ []byte) error {
		counter := counterOf(key)
		if counter.Level == "" {
			wrong = append(wrong, fmt.Errorf("counter %x of %s is of no level", key, period))
			return nil
		}
		count, err := read(bucket, counter)
		if err != nil {
			wrong = append(wrong, err)
			return nil
		}
		counter.Period = period
		counts[counter] = count
		return nil
	})
	return counts, errors.Join(append(wrong, err)...)
}
