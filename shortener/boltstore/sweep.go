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
		answers, err := sweepAnswers(tx, keep.Label, sweepChunk)
		if err != nil {
			return err
		}
		counters, err := boltquota.Sweep(tx, keep.Start, sweepChunk)
		if more = answers || counters; err == nil && !more {
			return errNothingToCommit
		}
		return err
	})
	if err != nil {
		more = false
		if !errors.Is(err, errNothingToCommit) {
			s.options.Log.Error("old counters could not be removed", "store", s.path, "err", err)
		}
	}
	return more
}
