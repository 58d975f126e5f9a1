package boltstore

import (
	"errors"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
)

// sweepChunk bounds the counters removed in one transaction, and so how long a
// creation can wait behind it.
const sweepChunk = 1000

// sweep removes a chunk of the days that are over: those older than the day
// before the newest that has a counted link, whatever the clock shows. It returns
// whether there may be more. A failure is logged and left for the next day:
// old counters take space and decide nothing.
func (s *Store) sweep() (more bool) {
	var tallied string
	err := s.transact(func(tx *bbolt.Tx) error {
		newest, err := newestDay(tx)
		if err != nil {
			return err
		}
		if newest == "" {
			return errNothingToCommit
		}
		keep, err := quota.PreviousDay(newest)
		if err != nil {
			return err
		}
		if keep.Label != s.tallied {
			if err := s.closeDays(tx, keep.Label); err != nil {
				return err
			}
		}
		answers, err := sweepAnswers(tx, keep.Label, sweepChunk)
		if err != nil {
			return err
		}
		counters, err := boltquota.Sweep(tx, keep.Start, sweepChunk)
		if more = answers || counters; err == nil && !more {
			return errNothingToCommit
		}
		tallied = keep.Label
		return err
	})
	if err == nil {
		s.tallied = tallied
	} else {
		more = false
		if !errors.Is(err, errNothingToCommit) {
			s.options.Log.Error("old counters could not be removed", "store", s.path, "err", err)
		}
	}
	return more
}

// closeDays writes the tallies of the days that are to be swept into the history, in
// the transaction that begins to sweep them: no link can be counted there any more. A
// day that cannot be read is logged, and swept all the same.
func (s *Store) closeDays(tx *bbolt.Tx, keep string) error {
	records, err := tally(tx)
	if err != nil {
		s.options.Log.Error("a day could not be written down", "store", s.path, "err", err)
	}
	for _, r := range records {
		if r.Day < keep {
			if err := addHistory(tx, r); err != nil {
				return err
			}
		}
	}
	return nil
}
