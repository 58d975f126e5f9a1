package quota

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"
	"unsafe"
)

// These tests look inside the table: which client sits where is drawn anew for
// each throttle, so from outside it shows only by chance.

// bytesPerSlot and startBytesPerSlot are what the documentation of [Throttle] states.
const bytesPerSlot, startBytesPerSlot = 107, 26

func paced(t testing.TB, clients int) (*Throttle, *time.Time) {
	t.Helper()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	throttle, err := NewThrottle(ThrottleConfig{Every: 10 * time.Second, Burst: 3, Clients: clients, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return throttle, &now
}

// ipv4 returns the n-th address, 256 of them in each network.
func ipv4(n int) Client {
	return ClientOf(netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(n)))))
}

// ipv6 returns a client of the n-th /48.
func ipv6(network, subnet int) Client {
	b := binary.BigEndian.AppendUint32([]byte{0x26, 0x20}, uint32(network))
	b = binary.BigEndian.AppendUint16(b, uint16(subnet))
	return ClientOf(netip.AddrFrom16([16]byte(append(b, make([]byte, 8)...))))
}

// admit makes n demands and returns how many were admitted.
func admit(throttle *Throttle, c Client, n int) (admitted int) {
	for range n {
		if _, ok := throttle.Allow(c); ok {
			admitted++
		}
	}
	return admitted
}

func indexOf(throttle *Throttle, c Client) int {
	s := throttle.setOf(c)
	for i := range throttle.sets {
		if s == &throttle.sets[i] {
			return i
		}
	}
	panic("a set outside the table")
}

func TestThrottleSets(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ clients, sets int }{{1, 1}, {64, 1}, {65, 2}, {128, 2}, {129, 3}, {65536, 1024}} {
		throttle, _ := paced(t, row.clients)
		if got := len(throttle.sets); got != row.sets {
			t.Errorf("%d clients: %d sets, want %d", row.clients, got, row.sets)
		}
	}
	throttle, _ := paced(t, 65536)
	sets := map[*throttleSet]bool{}
	for i := range 65536 {
		if throttle.setOf(ipv6(7, i)) != throttle.setOf(ipv6(7, 0)) {
			t.Fatal("one /48 reaches two sets")
		}
		sets[throttle.setOf(ipv6(i, 0))] = true
	}
	// 64 networks for each set: that one stays empty has a chance of 1024 * e^-64.
	if len(sets) != 1024 {
		t.Errorf("65,536 networks reach %d of 1024 sets", len(sets))
	}
	other, _ := paced(t, 65536)
	alike := 0
	for i := range 1000 {
		if indexOf(throttle, ipv6(i, 0)) == indexOf(other, ipv6(i, 0)) {
			alike++
		}
	}
	if alike > 20 { // about 1 is expected
		t.Errorf("%d of 1000 networks have the same set in two throttles, so that it can be aimed at", alike)
	}
}

// A /48 goes through all of its 65,536 clients while the clients of 1,000 other
// networks come now and then.
func TestThrottleRotation(t *testing.T) {
	t.Parallel()
	throttle, _ := paced(t, 65536)
	attacked := throttle.setOf(ipv6(0, 0))
	admitted, sharing := 0, 0
	for subnet := range 65536 {
		admitted += admit(throttle, ipv6(0, subnet), 1)
	}
	if admitted != 16+3 {
		t.Errorf("the /48 got %d admissions, want one for each of 16 slots and 3 of the overflow bucket", admitted)
	}
	for subnet := range 100 {
		admitted += admit(throttle, ipv6(0, subnet), 5)
	}
	if admitted != 17*3 {
		t.Errorf("the /48 got %d admissions at one instant, want 3 of each bucket it may use, 51", admitted)
	}
	for network := 1; network <= 1000; network++ {
		c := ipv6(network, 1)
		if throttle.setOf(c) == attacked {
			sharing++
		}
		if got := admit(throttle, c, 4); got != 3 {
			t.Errorf("network %d got %d admissions, want 3", network, got)
		}
	}
	if sharing > 20 { // about 1 is expected
		t.Errorf("%d of 1000 networks share the attacked set", sharing)
	}
}

// One set through its life: full, hungry, half recovered.
func TestThrottleEviction(t *testing.T) {
	t.Parallel()
	throttle, now := paced(t, 64)
	set := &throttle.sets[0]
	for i := range 64 {
		admit(throttle, ipv4(i<<8), 1)
	}
	admit(throttle, ipv4(0), 2) // the first is drained, the rest lack one of three
	slots, buckets := set.keys, set.buckets

	if got := admit(throttle, ipv4(1000<<8), 2) + admit(throttle, ipv4(1001<<8), 2); got != 3 {
		t.Errorf("two without a slot got %d admissions, want the 3 of the overflow bucket", got)
	}
	if wait := throttle.Wait(ipv4(1002 << 8)); wait != 10*time.Second {
		t.Errorf("a third is told to wait %v, want 10s", wait)
	}
	*now = now.Add(10*time.Second - 1)
	if admit(throttle, ipv4(1003<<8), 1); set.keys != slots {
		t.Error("a slot whose bucket was not full was given away")
	}
	*now = now.Add(1)
	if wait := throttle.Wait(ipv4(2000 << 8)); wait != 0 || set.keys != slots {
		t.Errorf("Wait said %v, or took a slot", wait)
	}
	if got := admit(throttle, ipv4(2000<<8), 4); got != 3 {
		t.Errorf("a newcomer got %d admissions, want 3 from a bucket that was full", got)
	}
	if set.keys == slots {
		t.Error("no slot was given away although 63 buckets were full")
	}
	for i := range 70 {
		admit(throttle, ipv4((3000+i)<<8), 3)
	}
	if set.keys[0] != slots[0] {
		t.Error("the hungry slot was given away")
	}
	if got := admit(throttle, ipv4(0), 3); got != 1 {
		t.Errorf("the drained client got %d after 10 s, want 1", got)
	}
	buckets[overflow] = set.buckets[overflow]
	if set.buckets != buckets {
		t.Error("a bucket was made anew, which would forgive")
	}
}

// Three times as many clients as there are slots, each of another network, under
// a clock that lets slots be taken over and then stands still.
func TestThrottleCrowd(t *testing.T) {
	t.Parallel()
	throttle, now := paced(t, 65536)
	for i := range 200_000 {
		if i < 30_000 {
			*now = now.Add(10 * time.Millisecond)
		}
		throttle.Allow(ipv4(i << 8))
	}
	buckets := 0
	for i := range throttle.sets {
		for _, b := range throttle.sets[i].buckets {
			if b != nil {
				buckets++
			}
		}
	}
	if len(throttle.sets) != 1024 || buckets != 1024*65 {
		t.Errorf("%d sets with %d buckets, want 1024 with 65 each", len(throttle.sets), buckets)
	}
	start := len(throttle.sets) * int(unsafe.Sizeof(throttle.sets[0]))
	whole := start + buckets*int(unsafe.Sizeof(*throttle.sets[0].buckets[0]))
	if start > startBytesPerSlot*65536 || whole > bytesPerSlot*65536 {
		t.Errorf("%d bytes at the start and %d in the end, more than documented", start, whole)
	}
}

// A call reads the clock once and touches one set, whoever comes: no call pays
// for others.
func TestThrottleWorkIsBounded(t *testing.T) {
	t.Parallel()
	readings := 0
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	throttle, err := NewThrottle(ThrottleConfig{Every: time.Hour, Burst: 1, Clients: 640, Now: func() time.Time {
		readings++
		now = now.Add(time.Microsecond)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		c := ipv4(i << 8)
		throttle.Allow(c)
		touched := 0
		for j := range throttle.sets {
			if throttle.sets[j].last.Equal(now) {
				touched++
			}
		}
		if touched != 1 || readings != i+1 {
			t.Fatalf("call %d touched %d sets and read the clock %d times in all", i, touched, readings)
		}
	}
}

// TestThrottleAllocations is not parallel: the runtime counts allocations of the
// whole process, and AllocsPerRun insists.
func TestThrottleAllocations(t *testing.T) {
	throttle, _ := paced(t, 640)
	clients := make([]Client, 5000)
	for i := range clients {
		clients[i] = ipv4(i << 8)
		throttle.Allow(clients[i])
	}
	next := 0
	if got := testing.AllocsPerRun(10_000, func() {
		c := clients[next%len(clients)]
		throttle.Allow(c)
		throttle.Wait(c)
		next++
	}); got != 0 {
		t.Errorf("%v allocations for each call, want none", got)
	}
}

// The wall clock steps back an hour while the monotonic one runs on: nobody is
// locked out and nobody gains.
func TestThrottleWallClockStepsBack(t *testing.T) {
	t.Parallel()
	base := time.Now()
	var elapsed, wallStep time.Duration
	throttle, err := NewThrottle(ThrottleConfig{Every: 10 * time.Second, Burst: 3, Clients: 1, Now: func() time.Time {
		return stepWall(t, base.Add(elapsed), wallStep)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := admit(throttle, ipv4(1), 5); got != 3 {
		t.Fatalf("%d admitted at first, want 3", got)
	}
	wallStep = -time.Hour
	if wait, ok := throttle.Allow(ipv4(1)); ok || wait != 10*time.Second {
		t.Errorf("after the step: admitted %v, wait %v, want 10s", ok, wait)
	}
	elapsed = 10 * time.Second
	if got := admit(throttle, ipv4(1), 5); got != 1 {
		t.Errorf("%d admitted 10 s later, want 1", got)
	}
	wallStep, elapsed = time.Hour, 20*time.Second
	if got := admit(throttle, ipv4(1), 5); got != 1 {
		t.Errorf("%d admitted after a step forward and 10 s, want 1", got)
	}
}

// stepWall moves the wall reading of an instant and leaves its monotonic one,
// which only the operating system can do otherwise. In such an instant the wall
// reading is kept in the first word, in seconds above the lowest 30 bits.
func stepWall(t *testing.T, instant time.Time, step time.Duration) time.Time {
	t.Helper()
	stepped := instant
	*(*uint64)(unsafe.Pointer(&stepped)) += uint64(int64(step/time.Second) << 30)
	if got := time.Duration(stepped.UnixNano() - instant.UnixNano()); got != step || stepped.Sub(instant) != 0 {
		t.Fatalf("the layout of time.Time has changed: stepped by %v and %v", got, stepped.Sub(instant))
	}
	return stepped
}
