// Package quota says how much a client may use and how fast.
//
// A quota is a durable, exact allowance per calendar window, kept with the data
// it protects: a [Policy] becomes [Charge] values, a store reads the counters
// inside its own transaction, asks [Decide], and writes counters and data in one
// commit. A [Throttle] is something else: an approximate brake, in memory, per
// process, that protects work rather than a budget. A rate cannot stand in for a
// daily budget nor the other way round: one link per 10 seconds is 8,640 a day,
// and 1,000 a day would be one per 86 seconds.
//
// The package promises that no decision is made anywhere but in [Decide], and
// that a subject never holds an address that could be read back. It knows no
// HTTP, no links and no storage; boltquota and pgquota keep counters in
// a bbolt or PostgreSQL transaction of the caller's.
//
// Start with [Policy.Charges] and [Decide].
package quota

import (
	"errors"
	"fmt"
	"time"
)

// Level names one of the circles that pay for the same demand.
type Level string

// The levels from the widest to the narrowest.
const (
	LevelService Level = "service" // everyone
	LevelNetwork Level = "network" // an IPv4 /24 or an IPv6 /48
	LevelClient  Level = "client"  // an IPv4 address or an IPv6 /64
)

// MaxLevel bounds the name of a level, in bytes.
const MaxLevel = 32

// Subject is who is charged at a level: masked and keyed, never a raw address
// or header. See [Secret.Subject]. The service level has the empty subject.
type Subject string

// Counter identifies one stored number.
type Counter struct {
	Level   Level
	Subject Subject
	Period  string // the label of a window, such as "2026-11-29"
}

// Charge is one demand on one counter, and all that a store needs to know.
type Charge struct {
	Counter  Counter
	Cost     int64     // how many units are demanded, at least 1
	Max      int64     // the most the counter may hold; overrides are already applied
	Reserved int64     // the part of Max that is open to newcomers only; see Decide
	DryRun   bool      // whether it is counted without ever refusing
	ResetAt  time.Time // when the window ends
}

// Usage is what a counter holds, in units of its limit.
type Usage struct {
	Level     Level
	Used, Max int64
	ResetAt   time.Time
}

// Remaining is how many units are left, never below zero: a limit may have been
// lowered under what was already used.
func (u Usage) Remaining() int64 { return max(0, u.Max-u.Used) }

// ErrInvalidCharge means that a demand or a stored count makes no sense, so
// nothing can be decided. Callers treat it as "cannot count", never as zero.
var ErrInvalidCharge = errors.New("invalid charge")

// ErrCannotCount means that a counter could not be read or written. It is
// neither an admission nor a refusal for want of quota.
var ErrCannotCount = errors.New("cannot count")

// ErrClock means that the clock lies more than a day behind what was already
// counted. It is a kind of [ErrCannotCount].
var ErrClock = fmt.Errorf("%w: the clock went back", ErrCannotCount)

// ErrExceeded is what every [ExceededError] unwraps to.
var ErrExceeded = errors.New("quota exceeded")

// ExceededError says which level refused a demand.
type ExceededError struct {
	Usage Usage // as it stands, without the refused demand
}

func (e *ExceededError) Error() string {
	return fmt.Sprintf("%s quota exceeded: %d of %d used until %s",
		e.Usage.Level, e.Usage.Used, e.Usage.Max, e.Usage.ResetAt.Format(time.RFC3339))
}

// Unwrap returns [ErrExceeded].
func (e *ExceededError) Unwrap() error { return ErrExceeded }
