package quotatest

import (
	"errors"
	"time"

	"snip/quota"
)

// Package is what is tested: functions that count inside a transaction.
type Package[Tx any] struct {
	// View runs a function in a transaction that reads. Update runs one in a
	// transaction of its own and commits it, or where the function returns an error,
	// rolls it back and returns that.
	View, Update func(func(Tx) error) error

	Counts        func(Tx, []quota.Counter) ([]quota.Count, error)
	Check         func(Tx, []quota.Charge) ([]quota.Usage, error)
	Apply         func(Tx, []quota.Charge) ([]quota.Usage, error)
	Each          func(Tx, quota.Level, string, func(quota.Subject, int64)) error
	Reserve       func(Tx, quota.Reservation) (quota.Reservation, bool, error)
	Commit        func(Tx, string, []int64, time.Time) (quota.Reservation, []quota.Count, error)
	Release       func(Tx, string, time.Time) (quota.Reservation, []quota.Count, error)
	Reservation   func(Tx, string) (quota.Reservation, error)
	List          func(Tx, int) ([]quota.Reservation, error)
	SettleExpired func(Tx, time.Time, int, func(quota.Reservation, []quota.Count) error) (bool, error)
	Sweep         func(Tx, time.Time, int) (bool, error)
}

// book is a data set in which each call is a transaction of its own. One that is
// refused is committed as well: nothing of it may be left even so.
type book interface {
	counts([]quota.Counter) ([]quota.Count, error)
	check([]quota.Charge) ([]quota.Usage, error)
	apply([]quota.Charge) ([]quota.Usage, error)
	each(quota.Level, string, func(quota.Subject, int64)) error
	reserve(quota.Reservation) (stored quota.Reservation, already bool, err error)
	commit(string, []int64) (quota.Reservation, []quota.Count, error)
	release(string) (quota.Reservation, []quota.Count, error)
	reservation(string) (quota.Reservation, error)
	list(int) ([]quota.Reservation, error)
	settleExpired(time.Time, int, func(quota.Reservation, []quota.Count) error) (bool, error)
	sweep(time.Time, int) (bool, error)
}

func (p Package[Tx]) update(run func(Tx) error) error {
	var refusal error
	err := p.Update(func(tx Tx) error {
		err := run(tx)
		if errors.Is(err, quota.ErrCannotCount) {
			return err
		}
		refusal = err
		return nil
	})
	return errors.Join(refusal, err)
}

func (p Package[Tx]) counts(counters []quota.Counter) (counts []quota.Count, err error) {
	err = p.View(func(tx Tx) (err error) {
		counts, err = p.Counts(tx, counters)
		return err
	})
	return counts, err
}

func (p Package[Tx]) check(charges []quota.Charge) (usages []quota.Usage, err error) {
	err = p.View(func(tx Tx) (err error) {
		usages, err = p.Check(tx, charges)
		return err
	})
	return usages, err
}

func (p Package[Tx]) apply(charges []quota.Charge) (usages []quota.Usage, err error) {
	err = p.update(func(tx Tx) (err error) {
		usages, err = p.Apply(tx, charges)
		return err
	})
	return usages, err
}

func (p Package[Tx]) each(level quota.Level, period string, use func(quota.Subject, int64)) error {
	return p.View(func(tx Tx) error { return p.Each(tx, level, period, use) })
}

func (p Package[Tx]) reserve(r quota.Reservation) (stored quota.Reservation, already bool, err error) {
	err = p.update(func(tx Tx) (err error) {
		stored, already, err = p.Reserve(tx, r)
		return err
	})
	return stored, already, err
}

func (p Package[Tx]) commit(id string, actual []int64) (r quota.Reservation, counts []quota.Count, err error) {
	err = p.update(func(tx Tx) (err error) {
		r, counts, err = p.Commit(tx, id, actual, settledAt)
		return err
	})
	return r, counts, err
}

func (p Package[Tx]) release(id string) (r quota.Reservation, counts []quota.Count, err error) {
	err = p.update(func(tx Tx) (err error) {
		r, counts, err = p.Release(tx, id, settledAt)
		return err
	})
	return r, counts, err
}

func (p Package[Tx]) reservation(id string) (r quota.Reservation, err error) {
	err = p.View(func(tx Tx) (err error) {
		r, err = p.Reservation(tx, id)
		return err
	})
	return r, err
}

func (p Package[Tx]) list(n int) (list []quota.Reservation, err error) {
	err = p.View(func(tx Tx) (err error) {
		list, err = p.List(tx, n)
		return err
	})
	return list, err
}

func (p Package[Tx]) settleExpired(now time.Time, limit int, settled func(quota.Reservation, []quota.Count) error) (more bool, err error) {
	err = p.update(func(tx Tx) (err error) {
		more, err = p.SettleExpired(tx, now, limit, settled)
		return err
	})
	return more, err
}

func (p Package[Tx]) sweep(before time.Time, limit int) (more bool, err error) {
	err = p.update(func(tx Tx) (err error) {
		more, err = p.Sweep(tx, before, limit)
		return err
	})
	return more, err
}
