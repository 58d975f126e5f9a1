package quota

import (
	"runtime"
	"testing"
	"time"
)

func BenchmarkThrottleAllow(b *testing.B) {
	run := func(name string, clients int, setUp func(*Throttle), client func(i int) Client) {
		b.Run(name, func(b *testing.B) {
			throttle, err := NewThrottle(ThrottleConfig{Every: 10 * time.Second, Burst: 3, Clients: clients, Now: time.Now})
			if err != nil {
				b.Fatal(err)
			}
			setUp(throttle)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				throttle.Allow(client(i))
			}
		})
	}
	run("hit", 65536, func(*Throttle) {}, func(int) Client { return ipv4(1) })
	run("distinct", 65536, func(*Throttle) {}, func(i int) Client { return ipv4(i << 8) })
	// The most that a call can cost: 64 other keys and 64 hungry buckets.
	run("full set", 64, func(t *Throttle) {
		for i := range 64 {
			t.Allow(ipv4(i))
		}
	}, func(i int) Client { return ipv4(64 + i) })
}

// BenchmarkThrottleMemory sends a million clients to a table of the default size
// and reports what the heap holds for each slot.
func BenchmarkThrottleMemory(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		throttle, _ := paced(b, 65536)
		for i := range 1_000_000 {
			throttle.Allow(ipv4(i << 8))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/65536, "B/slot")
		runtime.KeepAlive(throttle)
	}
}
