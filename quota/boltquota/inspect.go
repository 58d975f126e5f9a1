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
func Counters(tx *bbolt.Tx, period string) (map[quota.Counter]int64, error) {
	bucket, err := countersOf(tx, period)
	if err != nil {
		return nil, err
	}
	used := map[quota.Counter]int64{}
	var wrong []error
	err = bucket.ForEach(func(key, _ []byte) error {
		counter := quota.Counter{Level: levelOf(key), Subject: quota.Subject(key[1:]), Period: period}
		if counter.Level == "" {
			wrong = append(wrong, fmt.Errorf("counter %x of %s is of no level", key, period))
			return nil
		}
		n, err := read(bucket, counter)
		if err == nil && n < 0 {
			err = fmt.Errorf("%w: the counter at level %s holds %d", quota.ErrCannotCount, counter.Level, n)
		}
		if err != nil {
			wrong = append(wrong, err)
			return nil
		}
		used[counter] = n
		return nil
	})
	return used, errors.Join(append(wrong, err)...)
}

// levelOf is the level of a counter's key; see counterKey.
func levelOf(key []byte) quota.Level {
	for _, level := range []quota.Level{quota.LevelService, quota.LevelNetwork, quota.LevelClient} {
		if key[0] == level[0] {
			return level
		}
	}
	return ""
}
