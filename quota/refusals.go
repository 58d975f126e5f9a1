package quota

import (
	"hash/maphash"
	"sync/atomic"
)

// refusalSlots bounds how many refused clients are remembered: some 3 MiB.
const refusalSlots = 1 << 14

// Refusals remembers which clients have been refused a demand of one unit, so
// that a script which goes on asking costs no look at the counters. Within a
// window counters only grow and limits stay, so whoever was refused once is
// refused until the window ends; whatever raises a limit must forget all, but for
// a key's own, which makes it another [Client].
//
// It refuses and never admits, and it may forget: a client's slot is its hash,
// keyed anew in each table, and goes to whoever was refused last. The methods may
// be called at once.
type Refusals struct {
	seed  maphash.Seed
	slots [refusalSlots]atomic.Pointer[remembered]
}

type remembered struct {
	client  Client
	period  string
	refusal *ExceededError
}

// NewRefusals returns an empty table.
func NewRefusals() *Refusals { return &Refusals{seed: maphash.MakeSeed()} }

// Add remembers that the client was refused one unit in the period.
func (r *Refusals) Add(c Client, period string, refusal *ExceededError) {
	r.slot(c).Store(&remembered{c, period, refusal})
}

// Find returns how the client was refused in the period, or nil.
func (r *Refusals) Find(c Client, period string) *ExceededError {
	if m := r.slot(c).Load(); m != nil && m.client == c && m.period == period {
		return m.refusal
	}
	return nil
}

func (r *Refusals) slot(c Client) *atomic.Pointer[remembered] {
	return &r.slots[maphash.Comparable(r.seed, keyOf(c))%refusalSlots]
}
