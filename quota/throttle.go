package quota

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of a [ThrottleConfig]. A pace slower than one a day is a quota's work:
// a throttle forgets it with the process. The largest table takes 1.7 GiB, so a
// slip of the finger does not end the program for want of memory.
const (
	maxEvery   = 24 * time.Hour
	maxClients = 1 << 24
)

// ThrottleConfig sets the pace that a [Throttle] keeps.
type ThrottleConfig struct {
	Every   time.Duration    // one demand per Every, for each client; above zero, at most 24 hours
	Burst   int              // how many may come at once after a pause; at least 1
	Clients int              // how many clients are told apart at once; 1 to 16,777,216, rounded up to whole sets of 64
	Now     func() time.Time // must carry a monotonic reading in production, as time.Now does
}

// validate reports every setting that is out of bounds.
func (c ThrottleConfig) validate() error {
	var errs []error
	if c.Every <= 0 || c.Every > maxEvery {
		errs = append(errs, fmt.Errorf("throttle Every: %v must be above 0s and at most %v", c.Every, maxEvery))
	}
	if c.Burst < 1 {
		errs = append(errs, fmt.Errorf("throttle Burst: %d must be at least 1", c.Burst))
	}
	if c.Clients < 1 || c.Clients > maxClients {
		errs = append(errs, fmt.Errorf("throttle Clients: %d must be between 1 and %d", c.Clients, maxClients))
	}
	if c.Now == nil {
		errs = append(errs, errors.New("throttle Now: nil must be a clock, such as time.Now"))
	}
	return errors.Join(errs...)
}

// Throttle is a brake on how fast each client may come: a token bucket per
// client, in memory. It protects work (parsing, checks, the store) and promises
// that a client which is told apart gets at most Burst + t/Every admissions in
// any span t. It is not a budget: each process has its own, and a restart fills
// every bucket. [Decide] counts what must not be overdrawn.
//
// Clients live in a fixed table of sets of 64 slots. A hash keyed anew in each
// Throttle picks the set by the client's network, so nobody can aim at a set,
// and a network, however many addresses it has, holds slots in no set but its own,
// and at most 16 of the 64 there. A slot
// is given to another client only when its bucket is full again, and so holds
// nothing that could be forgotten; a client that finds no slot shares the set's
// overflow bucket, of the same pace and burst. Every call looks at one set:
// there is no sweep to pay for, and no list to grow.
//
// What that bounds: a client's stays in slots begin and, but for the last, end
// with a full bucket, so together they admit no more than one bucket does; with
// the overflow bucket a client that moves between the two gets at most twice
// Burst + t/Every. The clients of one network together get at most 17 times, and
// those of one set at most 65 times Burst + t/Every, since buckets change hands
// but are never made again.
//
// Memory is about 107 bytes a slot, 6.7 MiB for 65,536 clients, of which 1.6 MiB
// are taken at the start and the rest as slots come into use.
//
// A nil *Throttle is one that is turned off. The methods may be called at once.
type Throttle struct {
	pace  rate.Limit
	burst int
	now   func() time.Time
	seed  maphash.Seed
	sets  []throttleSet

	refused, overflowed atomic.Int64
}

// ThrottleStats are for whoever watches.
type ThrottleStats struct {
	Clients    int64 // that have a slot
	Refused    int64 // demands
	Overflowed int64 // demands that found no slot
}

// Stats returns what has been counted. A nil Throttle has counted nothing.
func (t *Throttle) Stats() (s ThrottleStats) {
	if t == nil {
		return s
	}
	s.Refused, s.Overflowed = t.refused.Load(), t.overflowed.Load()
	for i := range t.sets {
		t.sets[i].mu.Lock()
		s.Clients += int64(t.sets[i].used)
		t.sets[i].mu.Unlock()
	}
	return s
}

// NewThrottle returns a throttle, or an error that names every setting that is
// out of bounds.
func NewThrottle(c ThrottleConfig) (*Throttle, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Throttle{
		pace:  rate.Every(c.Every),
		burst: c.Burst,
		now:   c.Now,
		seed:  maphash.MakeSeed(),
		sets:  make([]throttleSet, (c.Clients+slotsPerSet-1)/slotsPerSet),
	}, nil
}

// Allow takes a token for the client, or takes none and says how long it must
// wait for one. After that wait, exact or rounded up, the client is admitted; in
// a full set only unless it has to share the overflow bucket by then. A nil
// Throttle admits everyone.
func (t *Throttle) Allow(c Client) (wait time.Duration, ok bool) {
	if t == nil {
		return 0, true
	}
	s := t.setOf(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.instant(t.now)
	bucket := s.claim(keyOf(c), t, now)
	if bucket == s.buckets[overflow] {
		t.overflowed.Add(1)
	}
	if bucket.AllowN(now, 1) {
		return 0, true
	}
	t.refused.Add(1)
	return t.wait(bucket, 1, now), false
}

// Wait says how long the client must wait for its next token, zero if there is
// one, and takes none. A nil Throttle answers zero.
func (t *Throttle) Wait(c Client) time.Duration {
	if t == nil {
		return 0
	}
	s := t.setOf(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.instant(t.now)
	bucket := s.buckets[s.pick(keyOf(c), t, now)]
	if bucket == nil {
		return 0
	}
	return t.wait(bucket, 1, now)
}

func (t *Throttle) setOf(c Client) *throttleSet {
	h := maphash.Comparable(t.seed, networkKeyOf(c))
	return &t.sets[h%uint64(len(t.sets))]
}

// wait is how long after now the bucket will hold the tokens. A cancelled
// reservation would answer it too, but overlapping ones leave the bucket in debt:
// five were measured to leave -4 tokens.
func (t *Throttle) wait(bucket *rate.Limiter, tokens int, now time.Time) time.Duration {
	var wait time.Duration
	for {
		// AllowN cuts a shortage of tokens down to whole nanoseconds and admits
		// at zero; cutting likewise finds the first nanosecond at which it does.
		// Float error can leave one more to wait for after that, hence the loop.
		short := (float64(tokens) - bucket.TokensAt(now.Add(wait))) / float64(t.pace)
		step := time.Duration(short * float64(time.Second))
		if step <= 0 {
			return wait
		}
		wait += step
	}
}

const (
	slotsPerSet = 64
	// networkSlots are how many slots of its set one network may hold, so that it
	// leaves some to the networks that share the set.
	networkSlots = 16
	overflow     = slotsPerSet // the index of the bucket for those without a slot
)

// throttleSet holds the clients of the networks that hash to it. Slots come into
// use in order and are never given back, only passed on.
type throttleSet struct {
	mu      sync.Mutex
	last    time.Time // the newest instant seen
	used    int       // how many slots have a client
	hungry  time.Time // before this instant no bucket of a slot is full
	keys    [slotsPerSet]throttleKey
	buckets [slotsPerSet + 1]*rate.Limiter
}

// instant reads the clock, which the caller's lock puts in order, and never lets
// it go back: x/time/rate fed with the times t, t-10s and t admits one more than
// it should.
func (s *throttleSet) instant(now func() time.Time) time.Time {
	if t := now(); t.After(s.last) {
		s.last = t
	}
	return s.last
}

// pick returns the index of the bucket that serves k, and gives nothing away:
// k's own slot, else one never used, whose bucket is nil, else one whose bucket
// is full, else overflow, whose bucket is nil until it is needed.
func (s *throttleSet) pick(k throttleKey, t *Throttle, now time.Time) int {
	for i, key := range s.keys[:s.used] {
		if key == k {
			return i
		}
	}
	network, own := networkOf(k), 0
	for _, key := range s.keys[:s.used] {
		if networkOf(key) == network {
			own++
		}
	}
	if own >= networkSlots {
		return s.ownSlot(network, t, now)
	}
	if s.used < slotsPerSet {
		return s.used
	}
	// A look at 64 buckets in vain is remembered: it costs several times the rest
	// of the call, and demands only put off the instant at which one is full.
	if now.Before(s.hungry) {
		return overflow
	}
	fullest, most := 0, math.Inf(-1)
	for i, bucket := range s.buckets[:slotsPerSet] {
		tokens := bucket.TokensAt(now)
		if tokens >= float64(t.burst) {
			return i
		}
		if tokens > most {
			fullest, most = i, tokens
		}
	}
	s.hungry = now.Add(t.wait(s.buckets[fullest], t.burst, now))
	return overflow
}

// ownSlot is pick for a network that holds as many slots as it may: one of those
// whose bucket is full, else overflow.
func (s *throttleSet) ownSlot(network throttleKey, t *Throttle, now time.Time) int {
	for i, key := range s.keys[:s.used] {
		if networkOf(key) == network && s.buckets[i].TokensAt(now) >= float64(t.burst) {
			return i
		}
	}
	return overflow
}

// claim returns the bucket that serves k, and keeps a slot for k if there is one.
func (s *throttleSet) claim(k throttleKey, t *Throttle, now time.Time) *rate.Limiter {
	i := s.pick(k, t, now)
	if i != overflow {
		s.keys[i] = k
		s.used = max(s.used, i+1)
	}
	if s.buckets[i] == nil {
		s.buckets[i] = rate.NewLimiter(t.pace, t.burst)
	}
	return s.buckets[i]
}

// throttleKey is a client without the pointer that a netip.Addr has, so that a
// full table gives the garbage collector nothing to follow in its keys.
type throttleKey struct {
	high uint64 // IPv4: the address; IPv6: the upper half, all that a mask leaves; else the key's id
	bits uint8  // of the address family; 0 for nobody
}

// keyBits stands for a key, which has no address.
const keyBits = 1

func keyOf(c Client) throttleKey {
	if id := c.key.ID; id != 0 {
		return throttleKey{high: uint64(id), bits: keyBits}
	}
	return addrKeyOf(c.prefix.Addr())
}

// networkKeyOf is the network's; a key is its own.
func networkKeyOf(c Client) throttleKey {
	if c.key.ID != 0 {
		return keyOf(c)
	}
	return addrKeyOf(c.Network().Addr())
}

// networkOf is the network of a client's key; an API key is its own.
func networkOf(k throttleKey) throttleKey {
	switch k.bits {
	case 32:
		k.high >>= clientBits4 - networkBits4
	case 128:
		k.high >>= clientBits6 - networkBits6
	}
	return k
}

func addrKeyOf(addr netip.Addr) throttleKey {
	k := throttleKey{bits: uint8(addr.BitLen())}
	switch {
	case addr.Is4():
		b := addr.As4()
		k.high = uint64(binary.BigEndian.Uint32(b[:]))
	case addr.Is6():
		b := addr.As16()
		k.high = binary.BigEndian.Uint64(b[:8])
	}
	return k
}
