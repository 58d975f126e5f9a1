package boltstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"snip/shortener"
)

const (
	// queueLength bounds the creations that wait; a full queue refuses at once.
	queueLength = 1024
	// batchLength bounds how long one transaction, and so each of its waiters, takes.
	batchLength = 512
	// patience is how long a creation waits for its outcome.
	patience = 10 * time.Second
)

// operation is one write that waits for its turn. Either its request withdraws
// it or the writer claims it, never both, so a request that has gone away leaves
// nothing half done and an outcome is reported exactly once.
type operation struct {
	apply  func(*bbolt.Tx) error // checks first and writes last; see torn
	taken  atomic.Bool           // by whoever was first: withdrawn or claimed
	result chan error            // receives the outcome of a claimed operation
	after  func()                // runs after the commit and before the outcome is told; may be nil
	queued time.Time
}

func (op *operation) withdraw() bool { return op.taken.CompareAndSwap(false, true) }
func (op *operation) claim() bool    { return op.taken.CompareAndSwap(false, true) }

// tornError marks a failure after the first write of an operation: the
// transaction holds half of it and must be rolled back as a whole.
type tornError struct{ error }

func (e tornError) Unwrap() error { return e.error }

func torn(err error) error {
	if err == nil {
		return nil
	}
	return tornError{err}
}

// submit queues the operation and waits for its outcome. The error of a
// withdrawn operation is the context's or wraps [shortener.ErrUnavailable].
func (s *Store) submit(ctx context.Context, apply func(*bbolt.Tx) error) error {
	return s.enqueue(ctx, s.queue, &operation{apply: apply})
}

// submitLesser is submit for what is served after creations.
func (s *Store) submitLesser(ctx context.Context, apply func(*bbolt.Tx) error, after func()) error {
	return s.enqueue(ctx, s.lesser, &operation{apply: apply, after: after})
}

func (s *Store) enqueue(ctx context.Context, queue chan<- *operation, op *operation) error {
	if t := s.trouble.Load(); t != nil && t.reopen {
		return fmt.Errorf("%w: %w", shortener.ErrUnavailable, t.cause)
	}
	op.result, op.queued = make(chan error, 1), time.Now()
	select {
	case queue <- op:
	default:
		s.commits.turnedAway.Add(1)
		return fmt.Errorf("%w: %d writes are waiting already", shortener.ErrUnavailable, queueLength)
	}
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	var why error
	select {
	case err := <-op.result:
		return err
	case <-ctx.Done():
		why = ctx.Err()
	case <-s.done:
		why = fmt.Errorf("%w: the store is closed", shortener.ErrUnavailable)
	case <-timer.C:
		why = fmt.Errorf("%w: the write was not begun within %v", shortener.ErrUnavailable, s.patience)
		timer.Reset(0) // the wait is over for a claimed operation, too
	}
	if op.withdraw() {
		return why
	}
	select {
	case err := <-op.result:
		return err
	case <-timer.C:
		return fmt.Errorf("%w: the write was not finished within %v, its outcome is unknown", shortener.ErrUnavailable, s.patience)
	}
}

// write is the only goroutine that changes the file.
func (s *Store) write() {
	defer close(s.done)
	retry := time.NewTicker(s.options.retryEvery)
	defer retry.Stop()
	sweeping := true // days may have ended while the store was closed
	for {
		select {
		case op := <-s.queue:
			sweeping = s.commit(s.gather(op)) || sweeping
			continue
		case op := <-s.lesser: // which takes the creations that wait along
			sweeping = s.commit(s.gather(op)) || sweeping
			continue
		default:
		}
		if sweeping && s.trouble.Load() == nil {
			sweeping = s.sweep()
			continue
		}
		select {
		case op := <-s.queue:
			sweeping = s.commit(s.gather(op)) || sweeping
		case op := <-s.lesser:
			sweeping = s.commit(s.gather(op)) || sweeping
		case <-retry.C:
			s.recover()
		case <-s.closing:
			s.drain()
			return
		}
	}
}

// gather takes whatever has queued behind the first operation. It yields for as
// long as that brings more, so that requests which are ready to queue do so:
// without it, on one core, the writer and a single request were measured to hand
// the core back and forth while all others starved, and a single yield made
// batches a third smaller.
func (s *Store) gather(first *operation) []*operation {
	for queued := -1; len(s.queue)+len(s.lesser) > queued; {
		queued = len(s.queue) + len(s.lesser)
		runtime.Gosched()
	}
	batch := []*operation{first}
	for _, queue := range []chan *operation{s.queue, s.lesser} {
		for waiting := true; waiting && len(batch) < batchLength; {
			select {
			case op := <-queue:
				batch = append(batch, op)
			default:
				waiting = false
			}
		}
	}
	return batch
}

// drain finishes what was queued before closing.
func (s *Store) drain() {
	for {
		select {
		case op := <-s.queue:
			s.commit(s.gather(op))
		case op := <-s.lesser:
			s.commit(s.gather(op))
		default:
			return
		}
	}
}

// commit applies the operations in one transaction and reports to each. A
// refusal touches nobody else; a failed write fails all. It returns whether the
// newest day has changed, so that an old one may be swept.
func (s *Store) commit(batch []*operation) (newDay bool) {
	var claimed []*operation
	var results []error
	begun := time.Now()
	err := s.transact(func(tx *bbolt.Tx) error {
		before, err := newestDay(tx)
		if err != nil {
			return err
		}
		for _, op := range batch {
			if !op.claim() {
				continue
			}
			claimed = append(claimed, op)
			err := op.apply(tx)
			if errors.As(err, &tornError{}) {
				return err
			}
			results = append(results, err)
		}
		after, err := newestDay(tx)
		if err != nil {
			return err
		}
		newDay = after != before
		if !anySucceeded(results) {
			return errNothingToCommit
		}
		return nil
	})
	if errors.Is(err, errNothingToCommit) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", shortener.ErrUnavailable, err)
		// Those behind the one that broke the transaction fare as it did.
		for _, op := range batch {
			if op.claim() {
				claimed = append(claimed, op)
			}
		}
	}
	s.commits.operations.Add(int64(len(claimed)))
	for _, op := range claimed {
		s.commits.waited.Observe(begun.Sub(op.queued))
	}
	newDay = newDay && err == nil
	if newDay {
		s.today.invalidate() // before anybody hears of it
	}
	for i, op := range claimed {
		if err == nil && results[i] == nil && op.after != nil {
			op.after()
		}
		if err != nil {
			op.result <- err
		} else {
			op.result <- results[i]
		}
	}
	return newDay
}

// errNothingToCommit rolls a transaction of refusals back: committing one that
// changed nothing was measured to cost 250 µs of flushing against 2 µs.
var errNothingToCommit = errors.New("nothing to commit")

func anySucceeded(results []error) bool {
	for _, err := range results {
		if err == nil {
			return true
		}
	}
	return false
}

// transact runs the function in a transaction and commits it unless it returns
// an error. A panic is a failed write, not the end of the writer. When beginning
// or committing fails, the store is in trouble.
func (s *Store) transact(apply func(*bbolt.Tx) error) (err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.trouble.Load(); t != nil && t.reopen {
		return t.cause
	}
	if err := s.inPlace(); err != nil {
		s.fail(err, false)
		return err
	}
	var tx *bbolt.Tx
	committing := false
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while writing: %v\n%s", p, debug.Stack())
			if committing {
				s.fail(err, true)
			}
		}
		if tx != nil {
			_ = tx.Rollback() // after a commit it does nothing
		}
	}()
	if tx, err = s.db.Begin(true); err != nil {
		err = fmt.Errorf("begin: %w", err)
		s.fail(err, true)
		return err
	}
	if err := apply(tx); err != nil {
		return err
	}
	committing = true
	start := time.Now()
	err = tx.Commit()
	s.commits.add(time.Since(start))
	if err != nil {
		err = fmt.Errorf("commit: %w", err)
		s.fail(err, !noSpace(err))
		return err
	}
	s.trouble.Store(nil)
	return nil
}
