package boltquota

import (
	"bytes"
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
	counts := map[quota.Counter]quota.Count{}
	var wrong []error
	err := eachCount(tx, period, func(counter quota.Counter, count quota.Count, err error) error {
		if err != nil {
			wrong = append(wrong, err)
		} else {
			counts[counter] = count
		}
		return nil
	})
	return counts, errors.Join(append(wrong, err)...)
}

// CheckReservations calls wrong with whatever is not as it must be: a reservation that
// cannot be read, or that is not due when it says, and a counter that does not hold
// just what the pending ones hold of it. It returns how many there are, and how many of
// them are pending.
func CheckReservations(tx *bbolt.Tx, wrong func(error)) (all, pending int64) {
	ids, dues, err := reservationBuckets(tx)
	if err != nil {
		wrong(err)
		return 0, 0
	}
	held := map[quota.Counter]int64{}
	if ids != nil {
		err = errors.Join(
			ids.ForEach(func(id, _ []byte) error {
				r, err := Reservation(tx, string(id))
				if err != nil {
					wrong(fmt.Errorf("reservation %q: %w", id, err))
					return nil
				}
				all++
				at := dueKey(r.Due(), r.ID)
				if found, _ := dues.Cursor().Seek(at); !bytes.Equal(found, at) {
					wrong(fmt.Errorf("reservation %q is not among those that are due", id))
				}
				if r.State != quota.Pending {
					return nil
				}
				pending++
				for _, c := range r.Charges {
					if !isSwept(tx, c.Counter.Period) {
						held[c.Counter] += c.Cost
					}
				}
				return nil
			}),
			dues.ForEach(func(key, _ []byte) error {
				if _, err := dueAt(tx, key); err != nil {
					wrong(err)
				}
				return nil
			}))
	}
	periods, periodsErr := Periods(tx)
	if err := errors.Join(err, periodsErr); err != nil {
		wrong(err)
	}
	for _, period := range periods {
		if isSwept(tx, period) {
			continue
		}
		counters, _ := Counters(tx, period) // what is wrong with others is not about reservations
		for counter, count := range counters {
			if count.Held != held[counter] {
				wrong(fmt.Errorf("%d are held at level %s of %s, and reservations hold %d", count.Held, counter.Level, period, held[counter]))
			}
			delete(held, counter)
		}
	}
	for counter, n := range held {
		wrong(fmt.Errorf("reservations hold %d at level %s of %s, whose counter is missing", n, counter.Level, counter.Period))
	}
	return all, pending
}
