package boltquota

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"snip/quota"
)

// Secrets calls use with the secret of each period that has one.
func Secrets(tx *bbolt.Tx, use func(period string, secret quota.Secret) error) error {
	return eachPeriod(tx, func(period string) error {
		secret, err := Secret(tx, period)
		if errors.Is(err, ErrNoPeriod) {
			return nil
		}
		if err != nil {
			return err
		}
		return use(period, secret)
	})
}

// AllCounts calls use with every counter and what it holds, but for those of periods
// that are being removed.
func AllCounts(tx *bbolt.Tx, use func(quota.Counter, quota.Count) error) error {
	return eachPeriod(tx, func(period string) error {
		return eachCount(tx, period, func(counter quota.Counter, count quota.Count, err error) error {
			if err != nil {
				return err
			}
			return use(counter, count)
		})
	})
}

// Reservations calls use with every reservation.
func Reservations(tx *bbolt.Tx, use func(quota.Reservation) error) error {
	ids, _, err := reservationBuckets(tx)
	if ids == nil {
		return err
	}
	return ids.ForEach(func(id, _ []byte) error {
		r, err := Reservation(tx, string(id))
		if err != nil {
			return err
		}
		return use(r)
	})
}

// eachPeriod leaves out periods that are being removed.
func eachPeriod(tx *bbolt.Tx, use func(period string) error) error {
	periods, err := Periods(tx)
	if err != nil {
		return err
	}
	for _, period := range periods {
		if isSwept(tx, period) {
			continue
		}
		if err := use(period); err != nil {
			return err
		}
	}
	return nil
}

// eachCount calls use with every counter of a period and what it holds, or what is
// wrong with it.
func eachCount(tx *bbolt.Tx, period string, use func(quota.Counter, quota.Count, error) error) error {
	bucket, err := countersOf(tx, period)
	if err != nil {
		return err
	}
	return bucket.ForEach(func(key, _ []byte) error {
		counter := counterOf(key)
		if counter.Level == "" {
			return use(counter, quota.Count{}, fmt.Errorf("counter %x of %s is of no level", key, period))
		}
		count, err := read(bucket, counter)
		counter.Period = period
		return use(counter, count, err)
	})
}
