package boltstore

import (
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"snip/shortener"
)

// commits are counted for whoever watches.
type commits struct {
	operations, turnedAway atomic.Int64
	last                   atomic.Int64 // in nanoseconds
	took, waited           shortener.Histogram
}

func (c *commits) add(took time.Duration) {
	c.took.Observe(took)
	c.last.Store(int64(took))
}

// Health implements [shortener.Store].
func (s *Store) Health() shortener.Health {
	took := s.commits.took.Counts()
	h := shortener.Health{
		Commits:    took.Count,
		Operations: s.commits.operations.Load(),
		CommitTime: took,
		LastCommit: time.Duration(s.commits.last.Load()),
		WaitTime:   s.commits.waited.Counts(),
		Waiting:    len(s.queue) + len(s.lesser),
		TurnedAway: s.commits.turnedAway.Load(),
	}
	if t := s.trouble.Load(); t != nil {
		h.Trouble = t.cause.Error()
	}
	// Where the file cannot be read there is nothing to say of its size.
	_ = s.view(func(tx *bbolt.Tx) error {
		stats := tx.DB().Stats()
		h.Bytes, h.FreePages = tx.Size(), int64(stats.FreePageN+stats.PendingPageN)
		return nil
	})
	return h
}
