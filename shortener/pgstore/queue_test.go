package pgstore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"snip/shortener"
)

var errOdd = errors.New("odd numbers are refused")

// hand is a queue of numbers, of which a negative one panics, with a handle that
// waits where it is told to.
type hand struct {
	*queue[int]
	health  commits
	wait    chan struct{} // closed where it does not wait
	batches [][]int
}

func newHand() *hand {
	h := &hand{wait: make(chan struct{})}
	h.queue = newQueue(&h.health, patience, func(numbers []int) ([]error, error) {
		h.batches = append(h.batches, numbers)
		<-h.wait
		results := make([]error, len(numbers))
		for i, n := range numbers {
			if n < 0 {
				panic("a negative number")
			}
			if n%2 == 1 {
				results[i] = errOdd
			}
		}
		return results, nil
	})
	return h
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHand()
		var group sync.WaitGroup
		told := make([]error, queueLength+2)
		for i := range told {
			group.Go(func() { told[i] = h.do(t.Context(), i) })
			synctest.Wait()
		}
		if err := told[queueLength+1]; !errors.Is(err, shortener.ErrUnavailable) || h.health.turnedAway.Load() != 1 {
			t.Errorf("one too many: got error %v", err)
		}
		close(h.wait)
		group.Wait()
		for i, err := range told[:queueLength+1] {
			if want := [...]error{nil, errOdd}[i%2]; !errors.Is(err, want) {
				t.Errorf("number %d: got error %v, want %v", i, err, want)
			}
		}
		if n := len(h.batches); n != 3 { // the first alone, then as many as a batch holds
			t.Errorf("%d batches", n)
		}
		h.close()
	})
}

func TestQueueWithdraws(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHand()
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { // claimed, so its outcome is awaited
			if err := h.do(ctx, 2); err != nil {
				t.Errorf("a claimed operation: %v", err)
			}
		})
		synctest.Wait()
		group.Go(func() {
			if err := h.do(ctx, 4); !errors.Is(err, context.Canceled) {
				t.Errorf("a withdrawn operation: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(h.wait)
		group.Wait()
		if err := h.do(t.Context(), 6); err != nil {
			t.Error(err)
		}
		h.close()
		for _, batch := range h.batches {
			for _, n := range batch {
				if n == 4 {
					t.Error("a withdrawn operation was handled")
				}
			}
		}
		if err := h.do(t.Context(), 8); !errors.Is(err, shortener.ErrUnavailable) {
			t.Errorf("after it was closed: %v", err)
		}
	})
}

func TestQueueIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHand()
		begun := time.Now()
		var group sync.WaitGroup
		for i, want := range []string{"outcome is unknown", "not begun"} {
			group.Go(func() {
				if err := h.do(t.Context(), i); !errors.Is(err, shortener.ErrUnavailable) || !strings.Contains(err.Error(), want) {
					t.Errorf("got error %v, want %q", err, want)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		if took := time.Since(begun); took != patience {
			t.Errorf("it took %v", took)
		}
		close(h.wait)
		h.close()
	})
}

func TestQueueSurvivesAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHand()
		close(h.wait)
		if err := h.do(t.Context(), -1); !errors.Is(err, shortener.ErrUnavailable) {
			t.Errorf("a panic: %v", err)
		}
		if err := h.do(t.Context(), 2); err != nil {
			t.Errorf("after a panic: %v", err)
		}
		h.close()
	})
}
