package pgstore

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"snip/shortener"
)

const (
	// queueLength bounds the operations that wait; a full queue refuses at once.
	queueLength = 1024
	// batchLength bounds how long one transaction, and so each of its waiters, takes.
	batchLength = 512
	// patience is how long an operation waits for its outcome.
	patience = 10 * time.Second
)

// waiting is an operation that waits for its turn. Either its request withdraws it
// or the queue claims it, never both, so a request that has gone away leaves
// nothing half done and an outcome is reported exactly once.
type waiting[T any] struct {
	operation T
	taken     atomic.Bool // by whoever was first: withdrawn or claimed
	result    chan error  // receives the outcome of a claimed operation
	queued    time.Time
}

func (w *waiting[T]) take() bool { return w.taken.CompareAndSwap(false, true) }

// queue hands operations over in batches, one batch after the other: whatever has
// queued while one was committed is the next.
type queue[T any] struct {
	handle   func([]T) ([]error, error) // returns how each fared, or the error of all
	patience time.Duration
	waiting  chan *waiting[T]
	closing  chan struct{}
	done     chan struct{}
	health   *commits
}

func newQueue[T any](health *commits, patience time.Duration, handle func([]T) ([]error, error)) *queue[T] {
	q := &queue[T]{
		handle:   handle,
		patience: patience,
		waiting:  make(chan *waiting[T], queueLength),
		closing:  make(chan struct{}),
		done:     make(chan struct{}),
		health:   health,
	}
	go q.run()
	return q
}

// close lets what has queued finish.
func (q *queue[T]) close() {
	close(q.closing)
	<-q.done
}

// do queues the operation and waits for its outcome. The error of a withdrawn
// operation is the context's or wraps [shortener.ErrUnavailable].
func (q *queue[T]) do(ctx context.Context, operation T) error {
	w := &waiting[T]{operation: operation, result: make(chan error, 1), queued: time.Now()}
	select {
	case q.waiting <- w:
	default:
		q.health.turnedAway.Add(1)
		return fmt.Errorf("%w: %d writes are waiting already", shortener.ErrUnavailable, queueLength)
	}
	timer := time.NewTimer(q.patience)
	defer timer.Stop()
	var why error
	select {
	case err := <-w.result:
		return err
	case <-ctx.Done():
		why = ctx.Err()
	case <-q.done:
		why = fmt.Errorf("%w: the store is closed", shortener.ErrUnavailable)
	case <-timer.C:
		why = fmt.Errorf("%w: the write was not begun within %v", shortener.ErrUnavailable, q.patience)
		timer.Reset(0) // the wait is over for a claimed operation, too
	}
	if w.take() {
		return why
	}
	select {
	case err := <-w.result:
		return err
	case <-timer.C:
		return fmt.Errorf("%w: the write was not finished within %v, its outcome is unknown", shortener.ErrUnavailable, q.patience)
	}
}

func (q *queue[T]) run() {
	defer close(q.done)
	for {
		select {
		case first := <-q.waiting:
			q.commit(q.gather(first))
		case <-q.closing:
			for {
				select {
				case first := <-q.waiting:
					q.commit(q.gather(first))
				default:
					return
				}
			}
		}
	}
}

// gather takes whatever has queued behind the first operation. It yields for as
// long as that brings more, so that requests which are ready to queue do so: on one
// core a queue and a single request can otherwise hand the core back and forth
// while all others starve.
func (q *queue[T]) gather(first *waiting[T]) []*waiting[T] {
	for queued := -1; len(q.waiting) > queued; {
		queued = len(q.waiting)
		runtime.Gosched()
	}
	batch := []*waiting[T]{first}
	for len(batch) < batchLength {
		select {
		case w := <-q.waiting:
			batch = append(batch, w)
		default:
			return batch
		}
	}
	return batch
}

// commit hands over those of the batch that were not withdrawn, and tells each its
// outcome.
func (q *queue[T]) commit(batch []*waiting[T]) {
	begun := time.Now()
	var claimed []*waiting[T]
	var operations []T
	for _, w := range batch {
		if w.take() {
			claimed, operations = append(claimed, w), append(operations, w.operation)
			q.health.waited.Observe(begun.Sub(w.queued))
		}
	}
	if len(claimed) == 0 {
		return
	}
	q.health.operations.Add(int64(len(claimed)))
	results, err := q.safely(operations)
	for i, w := range claimed {
		if err != nil {
			w.result <- err
		} else {
			w.result <- results[i]
		}
	}
}

// safely makes a panic a failed write, not the end of the queue.
func (q *queue[T]) safely(operations []T) (results []error, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic while writing: %v\n%s", shortener.ErrUnavailable, p, debug.Stack())
		}
	}()
	return q.handle(operations)
}
