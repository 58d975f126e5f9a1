package pgstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/quota/pgquota"
	"snip/shortener"
)

// errSettled is the result of an operation that changes nothing, because the first
// outcome stands.
var errSettled = errors.New("settled already")

// Reserve implements [shortener.Store].
func (s *Store) Reserve(ctx context.Context, r quota.Reservation) (quota.Reservation, bool, error) {
	r.Charges = slices.Clone(r.Charges)
	var stored quota.Reservation // the queue's, until the outcome is known
	err := s.creations.do(ctx, operation{
		wants: pgquota.Wanted{Reserve: []quota.Reservation{r}},
		decide: func(w *work) (err error) {
			var already bool
			if stored, already, err = w.ledger.Reserve(r); already {
				err = errSettled
			}
			return err
		},
	})
	switch {
	case errors.Is(err, errSettled):
		return stored, true, nil
	case err != nil:
		return r, false, shortener.Uncounted(err)
	}
	return stored, false, nil
}

// Commit implements [shortener.Store].
func (s *Store) Commit(ctx context.Context, id string, actual []int64, at time.Time) (quota.Reservation, error) {
	actual = slices.Clone(actual)
	return s.settle(ctx, id, at, func(l *pgquota.Ledger) (quota.Reservation, []quota.Count, error) { return l.Commit(id, actual, at) })
}

// Release implements [shortener.Store].
func (s *Store) Release(ctx context.Context, id string, at time.Time) (quota.Reservation, error) {
	return s.settle(ctx, id, at, func(l *pgquota.Ledger) (quota.Reservation, []quota.Count, error) { return l.Release(id, at) })
}

func (s *Store) settle(ctx context.Context, id string, at time.Time, become func(*pgquota.Ledger) (quota.Reservation, []quota.Count, error)) (quota.Reservation, error) {
	var settled quota.Reservation // the queue's, until the outcome is known
	err := s.creations.do(ctx, operation{
		wants: pgquota.Wanted{Settle: []string{id}},
		decide: func(w *work) error {
			before, err := w.ledger.Reservation(id)
			if err != nil {
				return err
			}
			var counts []quota.Count
			if settled, counts, err = become(w.ledger); err != nil {
				return err
			}
			if before.Settled() {
				return errSettled
			}
			w.notices = append(w.notices, shortener.ReservationNotices(before, settled, counts, at)...)
			return nil
		},
	})
	if err != nil && !errors.Is(err, errSettled) {
		return quota.Reservation{}, shortener.Uncounted(err)
	}
	return settled, nil
}

// SettleExpired implements [shortener.Store].
func (s *Store) SettleExpired(ctx context.Context, now time.Time, n int) (more bool, err error) {
	err = s.update(ctx, "settle reservations", func(tx pgx.Tx) (err error) {
		batch := &pgx.Batch{}
		more, err = pgquota.SettleExpired(ctx, tx, now, n, func(r quota.Reservation, counts []quota.Count) error {
			return queueNotices(batch, shortener.ReservationNotices(r.Unsettled(), r, counts, now))
		})
		if err != nil {
			return err
		}
		return tx.SendBatch(ctx, batch).Close()
	})
	return more, err
}

// Reservations implements [shortener.Store].
func (s *Store) Reservations(ctx context.Context, n int) ([]quota.Reservation, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	list, err := pgquota.List(ctx, s.pool, n)
	return list, shortener.Uncounted(err)
}
