package boltstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
	"snip/shortener"
)

// errUnchanged says that an operation has nothing to write: the first outcome stands.
var errUnchanged = errors.New("nothing has changed")

// Reserve implements [shortener.Store].
func (s *Store) Reserve(ctx context.Context, r quota.Reservation) (stored quota.Reservation, already bool, err error) {
	err = s.submit(ctx, func(tx *bbolt.Tx) error {
		var err error
		stored, already, err = boltquota.Reserve(tx, r)
		switch {
		case err == nil && already:
			return errUnchanged
		case err == nil || decided(err) || errors.Is(err, quota.ErrInvalidReservation):
			return err
		}
		return torn(err)
	})
	if err = changed(err); err != nil {
		return quota.Reservation{}, false, err
	}
	return stored, already, nil
}

// changed is the error of an operation that may have had nothing to change.
func changed(err error) error {
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return shortener.Uncounted(err)
}

// Commit implements [shortener.Store].
func (s *Store) Commit(ctx context.Context, id string, actual []int64, at time.Time) (quota.Reservation, error) {
	return s.settleReservation(ctx, id, at, func(tx *bbolt.Tx) (quota.Reservation, []quota.Count, error) {
		return boltquota.Commit(tx, id, actual, at)
	})
}

// Release implements [shortener.Store].
func (s *Store) Release(ctx context.Context, id string, at time.Time) (quota.Reservation, error) {
	return s.settleReservation(ctx, id, at, func(tx *bbolt.Tx) (quota.Reservation, []quota.Count, error) {
		return boltquota.Release(tx, id, at)
	})
}

func (s *Store) settleReservation(ctx context.Context, id string, at time.Time, become func(*bbolt.Tx) (quota.Reservation, []quota.Count, error)) (settled quota.Reservation, err error) {
	err = s.submit(ctx, func(tx *bbolt.Tx) error {
		before, err := boltquota.Reservation(tx, id)
		if err != nil {
			return err
		}
		var counts []quota.Count
		if settled, counts, err = become(tx); err != nil {
			if decided(err) {
				return err
			}
			return torn(err)
		}
		if before.Settled() {
			return errUnchanged
		}
		return torn(putReservationNotices(tx, before, settled, counts, at))
	})
	if err = changed(err); err != nil {
		return quota.Reservation{}, err // what the writer may still be at is left alone
	}
	return settled, nil
}

func putReservationNotices(tx *bbolt.Tx, before, r quota.Reservation, counts []quota.Count, at time.Time) error {
	for _, n := range shortener.ReservationNotices(before, r, counts, at) {
		if err := putNotice(tx, n); err != nil {
			return fmt.Errorf("put notice: %w", err)
		}
	}
	return nil
}

// Reservations implements [shortener.Store].
func (s *Store) Reservations(ctx context.Context, n int) (list []quota.Reservation, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		list, err = boltquota.List(tx, n)
		return err
	})
	return list, shortener.Uncounted(err)
}

// SettleExpired implements [shortener.Store].
func (s *Store) SettleExpired(ctx context.Context, now time.Time, n int) (more bool, err error) {
	err = s.submitLesser(ctx, func(tx *bbolt.Tx) (err error) {
		more, err = boltquota.SettleExpired(tx, now, n, func(r quota.Reservation, counts []quota.Count) error {
			return putReservationNotices(tx, r.Unsettled(), r, counts, now)
		})
		switch {
		case err == nil && !more:
			return errUnchanged
		case errors.Is(err, quota.ErrCannotCount): // nothing was done
			return err
		}
		return torn(err)
	}, nil)
	if err = changed(err); err != nil {
		return false, err
	}
	return more, nil
}
