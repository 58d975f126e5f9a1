package quota_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snip/quota"
)

// clock is what a throttle reads; set moves it, also back.
type clock struct{ nanos atomic.Int64 }

var clockStart = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func (c *clock) now() time.Time              { return clockStart.Add(time.Duration(c.nanos.Load())) }
func (c *clock) set(since time.Duration)     { c.nanos.Store(int64(since)) }
func (c *clock) advance(after time.Duration) { c.nanos.Add(int64(after)) }

// newThrottle returns the default pace of one per 10 seconds, burst 3, for a
// number of clients, and the clock it reads.
func newThrottle(t testing.TB, clients int) (*quota.Throttle, *clock) {
	t.Helper()
	c := &clock{}
	throttle, err := quota.NewThrottle(quota.ThrottleConfig{Every: 10 * time.Second, Burst: 3, Clients: clients, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return throttle, c
}

// nth returns the client of the i-th IPv4 address, all in different networks as
// long as i is below 16 million.
func nth(t testing.TB, i int) quota.Client {
	t.Helper()
	return client(t, fmt.Sprintf("%d.%d.%d.1", i>>16&0xff, i>>8&0xff, i&0xff))
}

// take makes n demands and returns how many were admitted.
func take(throttle *quota.Throttle, c quota.Client, n int) int {
	admitted := 0
	for range n {
		if _, ok := throttle.Allow(c); ok {
			admitted++
		}
	}
	return admitted
}

func TestNewThrottle(t *testing.T) {
	t.Parallel()
	good := quota.ThrottleConfig{Every: 10 * time.Second, Burst: 3, Clients: 65536, Now: time.Now}
	with := func(change func(*quota.ThrottleConfig)) quota.ThrottleConfig {
		c := good
		change(&c)
		return c
	}
	rows := []struct {
		name     string
		config   quota.ThrottleConfig
		problems []string
	}{
		{"the defaults", good, nil},
		{"the least of all", quota.ThrottleConfig{Every: 1, Burst: 1, Clients: 1, Now: time.Now}, nil},
		{"the slowest pace", with(func(c *quota.ThrottleConfig) { c.Every = 24 * time.Hour }), nil},
		{"no pace", with(func(c *quota.ThrottleConfig) { c.Every = 0 }),
			[]string{"throttle Every: 0s must be above 0s and at most 24h0m0s"}},
		{"a negative pace", with(func(c *quota.ThrottleConfig) { c.Every = -time.Second }),
			[]string{"throttle Every: -1s must be above 0s"}},
		{"slower than a day", with(func(c *quota.ThrottleConfig) { c.Every = 24*time.Hour + 1 }),
			[]string{"and at most 24h0m0s"}},
		{"no burst", with(func(c *quota.ThrottleConfig) { c.Burst = 0 }),
			[]string{"throttle Burst: 0 must be at least 1"}},
		{"no clients", with(func(c *quota.ThrottleConfig) { c.Clients = 0 }),
			[]string{"throttle Clients: 0 must be between 1 and 16777216"}},
		{"more clients than memory", with(func(c *quota.ThrottleConfig) { c.Clients = math.MaxInt }),
			[]string{"must be between 1 and 16777216"}},
		{"no clock", with(func(c *quota.ThrottleConfig) { c.Now = nil }),
			[]string{"throttle Now: nil must be a clock"}},
		{"everything wrong at once", quota.ThrottleConfig{},
			[]string{"Every: 0s", "Burst: 0", "Clients: 0", "Now: nil"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			throttle, err := quota.NewThrottle(row.config)
			if len(row.problems) == 0 {
				if err != nil || throttle == nil {
					t.Fatalf("got %v and %v, want a throttle", throttle, err)
				}
				return
			}
			if err == nil || throttle != nil {
				t.Fatalf("got %v and %v, want an error alone", throttle, err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(row.problems) {
				t.Fatalf("got %d problems, want %d:\n%v", len(lines), len(row.problems), err)
			}
			for i, want := range row.problems {
				if !strings.Contains(lines[i], want) {
					t.Errorf("problem %d is %q, want %q in it", i, lines[i], want)
				}
			}
		})
	}
}

func TestThrottleOff(t *testing.T) {
	t.Parallel()
	var off *quota.Throttle
	if got := take(off, nth(t, 1), 1000); got != 1000 || off.Wait(nth(t, 1)) != 0 {
		t.Errorf("a nil throttle admitted %d of 1000 and waits %v", got, off.Wait(nth(t, 1)))
	}
}

// Forty at once with the clock standing still.
func TestThrottleBurst(t *testing.T) {
	t.Parallel()
	throttle, _ := newThrottle(t, 65536)
	var admitted atomic.Int64
	var group sync.WaitGroup
	for range 40 {
		group.Go(func() { admitted.Add(int64(take(throttle, nth(t, 1), 1))) })
	}
	group.Wait()
	if got := admitted.Load(); got != 3 {
		t.Errorf("%d of 40 at once were admitted, want the burst of 3", got)
	}
	for name, other := range map[string]quota.Client{
		"a neighbour":             client(t, "0.0.1.2"),
		"another network":         nth(t, 2),
		"an IPv6 client":          client(t, "::1"),
		"the zero client":         {},
		"the same number in IPv6": client(t, "0:0:0:101::"),
		"another /64 of its /48":  client(t, "0:0:0:102::"),
	} {
		if got := take(throttle, other, 4); got != 3 {
			t.Errorf("%s got %d admissions, want 3 of its own", name, got)
		}
	}
}

func TestThrottlePace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name        string
		step, until time.Duration // a demand every step, the last one before until
		want        int
	}{
		{"the first minute", time.Second, time.Minute, 8},
		{"the first minute, impatient", 50 * time.Millisecond, time.Minute, 8},
		{"a day: far more than any budget", time.Second, 24*time.Hour + 1, 3 + 8640},
		{"a day at the pace itself", 10 * time.Second, 24*time.Hour + 1, 8641},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			throttle, clock := newThrottle(t, 64)
			got := 0
			for now := time.Duration(0); now < row.until; now += row.step {
				clock.set(now)
				got += take(throttle, nth(t, 1), 1)
			}
			if got != row.want {
				t.Errorf("%d were admitted, want %d", got, row.want)
			}
		})
	}
}

// Whoever waits as long as it was told is admitted, and was not told too long.
func TestThrottleWait(t *testing.T) {
	t.Parallel()
	throttle, clock := newThrottle(t, 64)
	c := nth(t, 1)
	for _, step := range []struct {
		after time.Duration
		wait  time.Duration // before the demand; zero is admitted
	}{
		{0, 0}, {0, 0}, {0, 0}, {0, 10 * time.Second},
		{2500 * time.Millisecond, 7500 * time.Millisecond},
		{7500*time.Millisecond - 1, 1},
		{1, 0},
		{0, 10 * time.Second},
		{time.Hour, 0}, {0, 0}, {0, 0}, {0, 10 * time.Second},
		{4 * time.Second, 6 * time.Second},
		{-3 * time.Second, 6 * time.Second}, // a clock that goes back stands still
		{3*time.Second + 1, 6*time.Second - 1},
	} {
		clock.advance(step.after)
		for range 3 {
			if got := throttle.Wait(c); got != step.wait {
				t.Fatalf("at %v: Wait is %v, want %v and no token taken", clock.now(), got, step.wait)
			}
		}
		if got, ok := throttle.Allow(c); got != step.wait || ok != (step.wait == 0) {
			t.Fatalf("at %v: Allow is %v and %v, want %v", clock.now(), got, ok, step.wait)
		}
	}
}

// A clock that jumps about, as one without a monotonic reading may, or as seen
// by goroutines that read it before they got the lock.
func TestThrottleClockSteps(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		times []time.Duration // one demand each
		want  int
	}{
		{"back and forth by 10 s", []time.Duration{100e9, 90e9, 100e9, 90e9, 100e9, 90e9, 100e9}, 3},
		{"an hour back, and an hour to return", []time.Duration{3600e9, 3600e9, 3600e9, 0, 10e9, 1800e9, 3600e9, 3609e9, 3610e9}, 4},
		{"a day back, for good", []time.Duration{0, 0, 0, -86400e9, -86390e9, -86380e9}, 3},
		{"forward, back, forward", []time.Duration{0, 0, 0, 10e9, 0, 10e9, 0, 20e9}, 5},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			throttle, clock := newThrottle(t, 64)
			got := 0
			for _, now := range row.times {
				clock.set(now)
				got += take(throttle, nth(t, 1), 1)
			}
			if got != row.want {
				t.Errorf("%d were admitted, want %d", got, row.want)
			}
		})
	}
}

// Many goroutines on a moving clock; run with the race detector.
func TestThrottleConcurrent(t *testing.T) {
	t.Parallel()
	throttle, clock := newThrottle(t, 1024)
	clients := []quota.Client{nth(t, 1), nth(t, 2), client(t, "2001:db8::1"), client(t, "2001:db8:0:1::1")}
	admitted := make([]atomic.Int64, len(clients))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 500 {
				clock.advance(10 * time.Millisecond)
				for i, c := range clients {
					admitted[i].Add(int64(take(throttle, c, 1)))
					throttle.Wait(c)
				}
			}
		})
	}
	group.Wait()
	// 8 goroutines move the clock by 40 seconds: three of the burst, four since.
	for i := range admitted {
		if got := admitted[i].Load(); got > 7 || got < 3 {
			t.Errorf("%v got %d admissions, want 3 to 7", clients[i], got)
		}
	}
}
