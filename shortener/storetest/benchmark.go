package storetest

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"snip/quota"
	"snip/shortener"
)

// Benchmark measures what a server does most: durable creations by one and by
// many at once, reading a link, and the look that refuses a full client.
func Benchmark(b *testing.B, open Open) {
	for _, writers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("create/%d", writers), func(b *testing.B) { benchmarkCreate(b, open(b), writers) })
	}
	b.Run("follow", func(b *testing.B) {
		m := maker{b, open(b)[0], quota.Policy{}}
		if err := m.create(host(1, 1), noon, "bench"); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.store.Follow(context.Background(), "bench"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("used", func(b *testing.B) {
		m := maker{b, open(b)[0], policy}
		if err := m.create(host(1, 1), noon, "bench"); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			m.used(host(1, 1), noon)
		}
	})
}

func benchmarkCreate(b *testing.B, stores []shortener.Store, writers int) {
	const enough = math.MaxInt64 / 2
	m := maker{b, stores[0], quota.Policy{Client: enough, Network: enough, Service: enough}}
	var next atomic.Int64
	b.SetParallelism(writers) // times GOMAXPROCS goroutines; RunParallel has no finer scale
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := int(next.Add(1))
			if err := m.create(host(n%1000, n%7), noon, string(m.store.NewSlug())); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "links/s")
}
