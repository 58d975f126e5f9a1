package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/quota/pgquota"
)

const (
	// sweepChunk bounds the counters removed in one transaction.
	sweepChunk = 1000
	// sweepEvery is how often a program looks for what others have left.
	sweepEvery = time.Minute
)

// sweepSoon says that a day has ended.
func (s *Store) sweepSoon() {
	select {
	case s.sweep <- struct{}{}:
	default: // it has been said
	}
}

// keepSweeping removes the days that are over: those older than the day before the
// newest that has a counted link, whatever the clock shows. Of several programs the
// one that comes first does it; should it die, another goes on within a minute. A
// failure is logged and left for the next time: old counters take space and decide
// nothing.
func (s *Store) keepSweeping() {
	s.sweepSoon() // days may have ended while no program ran
	again := time.NewTicker(sweepEvery)
	defer again.Stop()
	for {
		select {
		case <-s.closing.Done():
			return
		case <-s.sweep:
		case <-again.C:
		}
		for more := true; more && s.closing.Err() == nil; {
			err := within(s.closing, s.patience, func(ctx context.Context) (err error) {
				more, err = s.sweepSome(ctx)
				return err
			})
			if err != nil && s.closing.Err() == nil {
				s.log.Error("old counters could not be removed", "err", err)
				more = false
			}
		}
	}
}

// sweepSome removes a chunk, and returns whether there may be more.
func (s *Store) sweepSome(ctx context.Context) (more bool, err error) {
	var tallied string
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, lockSweep).Scan(&mine); err != nil || !mine {
			return err
		}
		// The row of a program that was killed; one that runs writes its own anew.
		if _, err := tx.Exec(ctx, `DELETE FROM writers WHERE id = ANY(ARRAY(SELECT id FROM writers WHERE at < now() - interval '1 day' FOR UPDATE SKIP LOCKED))`); err != nil {
			return err
		}
		newest, err := newestDay(ctx, tx, "")
		if err != nil || newest == "" {
			return err
		}
		keep, err := quota.PreviousDay(newest)
		if err != nil {
			return err
		}
		if closed := s.tallied.Load(); closed == nil || *closed != keep.Label {
			// Before they go: no link can be counted there any more.
			records, err := tally(ctx, tx)
			if err != nil {
				return err
			}
			for _, r := range records {
				if r.Day >= keep.Label {
					break
				}
				if err := addHistory(ctx, tx, r); err != nil {
					return err
				}
			}
			tallied = keep.Label
		}
		answers, err := sweepAnswers(ctx, tx, keep.Label, sweepChunk)
		if err != nil {
			return err
		}
		counters, err := pgquota.Sweep(ctx, tx, keep.Start, sweepChunk)
		more = answers > 0 || counters
		return err
	})
	if err == nil && tallied != "" {
		s.tallied.Store(&tallied)
	}
	return more, err
}
