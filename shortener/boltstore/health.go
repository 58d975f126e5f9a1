package boltstore

import (
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"snip/shortener"
)

// commits are counted for whoever watches.
type commits struct {
	number, operations, turnedAway atomic.Int64
	took, last, waited             atomic.Int64 // in nanoseconds
}

func (c *commits) add(took time.Duration) {
	c.number.Add(1)
	c.took.Add(int64(took))
	c.last.Store(int64(took))
}

// Health implements [shortener.Store].
func (s *Store) Health() shortener.Health {
	h := shortener.Health{
		Commits:    s.commits.number.Load(),
		Operations: s.commits.operations.Load(),
		CommitTime: time.Duration(s.commits.took.Load()),
		LastCommit: time.Duration(s.commits.last.Load()),
		WaitTime:   time.Duration(s.commits.waited.Load()),
		Waiting:    len(s.queue) + len(s.lesser),
		TurnedAway: s.commits.turnedAway.Load(),
	}
	if t := s.trouble.Load(); t != nil {
		h.Trouble = t.cause.Error()
	}
	// Where the file cannot be read there is nothing to say of its size.
	_ = s.view(func(tx *bbolt.Tx) error {
		h.Bytes = tx.Size()
		return nil
	})
	return h
}
