package boltstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
)

// BenchmarkSweep removes a day with a million counters while links are made, and
// reports how long creations take meanwhile and afterwards, and in a file without
// such a day, in milliseconds. Its time is that of the whole sweep.
func BenchmarkSweep(b *testing.B) {
	const counters = 1_000_000
	for b.Loop() {
		b.StopTimer()
		fresh := newStore(b, Options{})
		mustCreate(b, fresh, noon, 1, "first")
		without := makeUntil(b, fresh, noon, func(made int) bool { return made < 5000 })
		s := newStore(b, Options{})
		fillDay(b, s, "2026-11-01", counters)
		mustCreate(b, s, noon, 1, "first")
		b.StartTimer()
		// The day is swept once the newest day has moved on.
		later := noon.AddDate(0, 0, 2)
		during := makeUntil(b, s, later, func(int) bool { return hasDay(b, s, "2026-11-01") })
		b.StopTimer()
		after := makeUntil(b, s, later, func(made int) bool { return made < 5000 })
		for _, phase := range []struct {
			name  string
			times []time.Duration
		}{{"without", without}, {"during", during}, {"after", after}} {
			slices.Sort(phase.times)
			n := len(phase.times)
			b.ReportMetric(phase.times[n/2].Seconds()*1e3, phase.name+"-p50-ms")
			b.ReportMetric(phase.times[n*99/100].Seconds()*1e3, phase.name+"-p99-ms")
			b.ReportMetric(phase.times[n-1].Seconds()*1e3, phase.name+"-most-ms")
		}
		b.StartTimer()
	}
}

func fillDay(b *testing.B, s *Store, day string, counters int) {
	b.Helper()
	const atOnce = 10_000
	for first := 0; first < counters; first += atOnce {
		err := s.submit(b.Context(), func(tx *bbolt.Tx) error {
			for i := first; i < first+atOnce; i++ {
				_, err := boltquota.Apply(tx, []quota.Charge{{
					Counter: quota.Counter{Level: quota.LevelClient, Subject: quota.Subject(fmt.Sprintf("%016x", uint64(i)*0x9e3779b97f4a7c15)), Period: day},
					Cost:    1, Max: 50,
				}})
				if err != nil {
					return torn(err)
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func hasDay(b *testing.B, s *Store, day string) (there bool) {
	b.Helper()
	err := s.view(func(tx *bbolt.Tx) error {
		there = tx.Bucket([]byte("days")).Bucket([]byte(day)) != nil
		return nil
	})
	if err != nil {
		b.Error(err)
	}
	return there
}

// makeUntil has 16 clients make links one after the other for as long as it is
// told to, and returns how long each took.
func makeUntil(b *testing.B, s *Store, now time.Time, more func(made int) bool) []time.Duration {
	b.Helper()
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		times []time.Duration
		made  atomic.Int64
	)
	for maker := range 16 {
		group.Go(func() {
			for more(int(made.Add(1))) {
				c := creation(b, s, now, maker, string(s.NewSlug()))
				c.Charges[0].Max, c.Charges[1].Max, c.Charges[2].Max = 1<<40, 1<<40, 1<<40
				begin := time.Now()
				if err := s.Create(context.Background(), c); err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				times = append(times, time.Since(begin))
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return times
}
