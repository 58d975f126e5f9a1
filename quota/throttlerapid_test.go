package quota_test

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snip/quota"
)

// TestThrottleWaitProperties lets one client of any throttle come at any time and
// wait as it is told.
func TestThrottleWaitProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		clock := &clock{}
		every := time.Duration(rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, int64(24*time.Hour))).Draw(t, "every"))
		throttle, err := quota.NewThrottle(quota.ThrottleConfig{
			Every:   every,
			Burst:   rapid.IntRange(1, 5).Draw(t, "burst"),
			Clients: 1,
			Now:     clock.now,
		})
		if err != nil {
			t.Fatal(err)
		}
		c := quota.Client{}
		for range rapid.IntRange(1, 60).Draw(t, "demands") {
			clock.advance(time.Duration(rapid.Int64Range(0, int64(every)).Draw(t, "pause")))
			expected := throttle.Wait(c)
			wait, ok := throttle.Allow(c)
			// One admitted a nanosecond early is paid for by the next wait.
			if wait != expected || ok != (wait == 0) || wait < 0 || wait > every+1 {
				t.Fatalf("Wait said %v, Allow %v and %v, one per %v", expected, wait, ok, every)
			}
			if ok {
				continue
			}
			if rapid.Bool().Draw(t, "in whole seconds, as a header says it") {
				wait = (wait + time.Second - 1).Truncate(time.Second)
			}
			clock.advance(wait)
			if more, ok := throttle.Allow(c); !ok {
				t.Fatalf("told to wait %v, then %v more", wait, more)
			}
		}
	})
}

// TestThrottleBounds lets any clients of one set come at any time, by a clock
// that may step back, and holds them to what the documentation promises.
func TestThrottleBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		clock := &clock{}
		every := time.Duration(rapid.Int64Range(1, 1e6).Draw(t, "every"))
		burst := rapid.IntRange(1, 3).Draw(t, "burst")
		throttle, err := quota.NewThrottle(quota.ThrottleConfig{Every: every, Burst: burst, Clients: 1, Now: clock.now})
		if err != nil {
			t.Fatal(err)
		}
		// One population finds a slot for each, the other does not.
		population := rapid.SampledFrom([]int{1, 64, 80}).Draw(t, "clients")
		factor := 1
		if population > 64 {
			factor = 2
		}
		clients := make([]quota.Client, population)
		for i := range clients {
			clients[i] = quota.ClientOf(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
		}
		admitted := map[quota.Client]int{}
		var total int
		var newest time.Duration
		// AllowN admits when less than a nanosecond is missing.
		holds := func(n, buckets int) bool {
			return time.Duration(n-buckets*burst)*every <= time.Duration(buckets)*(newest+1)
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now := max(0, newest+time.Duration(rapid.Int64Range(-int64(every), int64(every)).Draw(t, "step")))
			clock.set(now)
			newest = max(newest, now)
			first := rapid.IntRange(0, population-1).Draw(t, "first")
			for _, c := range clients[first:min(population, first+20)] {
				n := take(throttle, c, 2)
				admitted[c] += n
				total += n
			}
		}
		for c, n := range admitted {
			if !holds(n, factor) {
				t.Fatalf("%v got %d admissions in %v, at one per %v and burst %d", c, n, newest, every, burst)
			}
		}
		if !holds(total, min(population, 65)) {
			t.Fatalf("the set gave %d admissions in %v, at one per %v and burst %d", total, newest, every, burst)
		}
	})
}
