package shortener_test

import (
	"testing"
	"time"

	"snip/shortener"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	var h shortener.Histogram
	for _, d := range []time.Duration{0, 25 * time.Microsecond, 25*time.Microsecond + 1, time.Millisecond, 10 * time.Second, time.Hour} {
		h.Observe(d)
	}
	got := h.Counts()
	if got.Count != 6 || got.Sum != time.Hour+10*time.Second+time.Millisecond+50*time.Microsecond+1 {
		t.Errorf("%d in %v", got.Count, got.Sum)
	}
	for i, bound := range shortener.HistogramBounds {
		want := int64(2)
		switch {
		case bound >= 10*time.Second:
			want = 5
		case bound >= time.Millisecond:
			want = 4
		case bound >= 50*time.Microsecond:
			want = 3
		}
		if got.Within[i] != want {
			t.Errorf("%d took at most %v, want %d", got.Within[i], bound, want)
		}
	}
}

func TestHistogramAllocatesNothing(t *testing.T) {
	var h shortener.Histogram
	if n := testing.AllocsPerRun(100, func() { h.Observe(time.Millisecond) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHistogram(b *testing.B) {
	var h shortener.Histogram
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			h.Observe(time.Millisecond)
		}
	})
}
