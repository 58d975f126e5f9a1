package shortener

import (
	"sync/atomic"
	"time"
)

// HistogramBounds are the upper bounds of a histogram's buckets, inclusive; the last bucket
// has none. They span a redirect from memory to a write that has waited its longest.
var HistogramBounds = [...]time.Duration{
	25 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// Histogram counts durations by bucket. It is safe for concurrent use, takes no lock and
// allocates nothing: a redirect is too short for more. The zero value has counted nothing.
type Histogram struct {
	counts [len(HistogramBounds) + 1]atomic.Int64
	sum    atomic.Int64 // in nanoseconds
}

// Observe counts a duration.
func (h *Histogram) Observe(d time.Duration) {
	i := 0
	for i < len(HistogramBounds) && d > HistogramBounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

// HistogramCounts is what a histogram has counted.
type HistogramCounts struct {
	Count  int64
	Sum    time.Duration
	Within [len(HistogramBounds)]int64 // how many took at most each bound
}

// Counts returns what was counted so far. A duration that is counted meanwhile may be in the
// counts and not yet in the sum.
func (h *Histogram) Counts() HistogramCounts {
	c := HistogramCounts{Sum: time.Duration(h.sum.Load())}
	for i := range h.counts {
		c.Count += h.counts[i].Load()
		if i < len(c.Within) {
			c.Within[i] = c.Count
		}
	}
	return c
}
