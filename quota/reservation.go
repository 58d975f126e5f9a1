package quota

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Count is what a counter holds, in units of its limit.
type Count struct {
	Used int64 // for good
	Held int64 // by reservations that are pending
}

// Taken is what stands against a limit.
func (c Count) Taken() int64 { return c.Used + c.Held }

// Taken returns what of each counter stands against its limit, as [Decide] wants it.
func Taken(counts []Count) []int64 {
	taken := make([]int64, len(counts))
	for i, c := range counts {
		taken[i] = c.Taken()
	}
	return taken
}

// MaxReservationID bounds the id of a reservation, in bytes.
const MaxReservationID = 255

// State is how far a [Reservation] has come.
type State string

// The states. From pending it becomes one of the others, once; what expiry has settled
// is settled once more by its caller.
const (
	Pending   State = "pending"
	Committed State = "committed"
	Released  State = "released"
)

// Reservation holds units of several counters for work whose cost is known only
// when it is done: what the work may cost at most is held before it begins, and
// what it did cost is counted afterwards. At each level what is held and used
// together never exceeds the maximum, except where work has cost more than was
// reserved for it: that is counted as it is, and refuses whoever comes next.
//
// Money is counted in whole micro-units, a millionth of its unit, because
// fractions do not add up exactly.
type Reservation struct {
	ID        string    // by which a caller that tries again finds it; at most MaxReservationID bytes
	Charges   []Charge  // the most that is paid at each level, the widest first
	ExpiresAt time.Time // when it is settled for a caller that has not; in whole microseconds
	OnExpiry  State     // Released for work of one's own, Committed where an unknown outcome may have cost money
	State     State
	Actual    []int64 // what was paid for each of the charges, once it is committed

	// Expired is whether it was settled by its expiry, on an assumption, and not by its
	// caller since.
	Expired   bool
	CreatedAt time.Time // in whole microseconds; the zero time where nobody has said so
	UpdatedAt time.Time // when it was created or settled last; otherwise like CreatedAt
}

// Settled reports whether the outcome is final.
func (r Reservation) Settled() bool { return r.State != Pending && !r.Expired }

// Unsettled returns the reservation as it was before its expiry or its caller settled
// it for the first time, but for its times.
func (r Reservation) Unsettled() Reservation {
	r.State, r.Actual, r.Expired = Pending, nil, false
	return r
}

// Stands returns what of the counter of Charges[i] is the reservation's.
func (r Reservation) Stands(i int) Count {
	switch r.State {
	case Pending:
		return Count{Held: r.Charges[i].Cost}
	case Committed:
		return Count{Used: r.Actual[i]}
	}
	return Count{}
}

// Errors about reservations.
var (
	// ErrNoReservation means that no reservation has that id, or none any more.
	ErrNoReservation = errors.New("no such reservation")
	// ErrInvalidReservation means that a reservation makes no sense. Nothing is held.
	ErrInvalidReservation = errors.New("invalid reservation")
)

// Validate returns why nothing can be reserved: [ErrInvalidReservation], or
// [ErrInvalidCharge].
func (r Reservation) Validate() error {
	switch {
	case r.ID == "" || len(r.ID) > MaxReservationID:
		return fmt.Errorf("%w: its id has %d bytes, which must be 1 to %d", ErrInvalidReservation, len(r.ID), MaxReservationID)
	case len(r.Charges) == 0:
		return fmt.Errorf("%w: it has no charges", ErrInvalidReservation)
	case r.ExpiresAt.UnixMicro() <= 0:
		return fmt.Errorf("%w: it expires before 1970", ErrInvalidReservation)
	case r.OnExpiry != Committed && r.OnExpiry != Released:
		return fmt.Errorf("%w: on expiry it becomes %q", ErrInvalidReservation, r.OnExpiry)
	}
	for _, c := range r.Charges {
		// It would be forgotten, and its id be new again, while its window goes on.
		if c.ResetAt.IsZero() {
			return fmt.Errorf("%w: the window at level %s has no end", ErrInvalidCharge, c.Counter.Level)
		}
	}
	return validate(r.Charges, make([]int64, len(r.Charges)))
}

// ValidateStored is Validate for a reservation that was read: one that has been
// damaged must not be settled by guesswork.
func (r Reservation) ValidateStored() error {
	amounts := 0
	if r.State == Committed {
		amounts = len(r.Charges)
	}
	switch {
	case r.Expired && r.State == Pending:
		return fmt.Errorf("%w: it was settled by its expiry and is pending", ErrInvalidReservation)
	case r.State != Pending && r.State != Committed && r.State != Released:
		return fmt.Errorf("%w: its state is %q", ErrInvalidReservation, r.State)
	case len(r.Actual) != amounts:
		return fmt.Errorf("%w: it is %s and has %d amounts", ErrInvalidReservation, r.State, len(r.Actual))
	}
	return r.Validate()
}

// Reserve returns the reservation as pending, and what its counters hold with it,
// or the error of [Decide]. counts[i] belongs to Charges[i].
func (r Reservation) Reserve(counts []Count) (Reservation, []Count, error) {
	if err := r.Validate(); err != nil {
		return r, nil, err
	}
	if _, err := Decide(r.Charges, Taken(counts)); err != nil {
		return r, nil, err
	}
	after := slices.Clone(counts)
	for i, c := range r.Charges {
		after[i].Held += c.Cost
	}
	r.State, r.Actual, r.Expired, r.UpdatedAt = Pending, nil, false, r.CreatedAt
	return r, after, nil
}

// Commit returns the reservation as committed at an instant, and what its counters
// hold then. actual[i] is what was paid for Charges[i], which may be 0 and may be more
// than was reserved; nil is all that was reserved. A reservation that is settled stays
// as it is. Where its expiry has settled it, what that has charged is replaced by what
// was paid.
func (r Reservation) Commit(counts []Count, actual []int64, at time.Time) (Reservation, []Count, error) {
	if r.Settled() {
		return r, counts, nil
	}
	if actual == nil {
		for _, c := range r.Charges {
			actual = append(actual, c.Cost)
		}
	}
	if len(actual) != len(r.Charges) {
		return r, nil, fmt.Errorf("%w: %d charges but %d amounts", ErrInvalidCharge, len(r.Charges), len(actual))
	}
	after, err := r.without(counts)
	if err != nil {
		return r, nil, err
	}
	for i, paid := range actual {
		if paid < 0 || paid > math.MaxInt64-after[i].Taken() {
			return r, nil, fmt.Errorf("%w: %d were paid at level %s", ErrInvalidCharge, paid, r.Charges[i].Counter.Level)
		}
		after[i].Used += paid
	}
	r.State, r.Actual, r.Expired, r.UpdatedAt = Committed, slices.Clone(actual), false, at
	return r, after, nil
}

// Release returns the reservation as released at an instant, and what its counters
// hold then. A reservation that is settled stays as it is. Where its expiry has settled
// it, what that has charged is given back.
func (r Reservation) Release(counts []Count, at time.Time) (Reservation, []Count, error) {
	if r.Settled() {
		return r, counts, nil
	}
	after, err := r.without(counts)
	if err != nil {
		return r, nil, err
	}
	r.State, r.Actual, r.Expired, r.UpdatedAt = Released, nil, false, at
	return r, after, nil
}

// Expire does what was to be done when the reservation expires, unless it is no longer
// pending.
func (r Reservation) Expire(counts []Count, now time.Time) (settled Reservation, after []Count, err error) {
	switch {
	case r.State != Pending:
		return r, counts, nil
	case r.OnExpiry == Released:
		settled, after, err = r.Release(counts, now)
	default:
		settled, after, err = r.Commit(counts, nil, now)
	}
	settled.Expired = err == nil
	return settled, after, err
}

// without returns the counts without what is the reservation's.
func (r Reservation) without(counts []Count) ([]Count, error) {
	if len(counts) != len(r.Charges) {
		return nil, fmt.Errorf("%w: %d charges but %d counts", ErrInvalidCharge, len(r.Charges), len(counts))
	}
	after := slices.Clone(counts)
	for i, c := range r.Charges {
		mine := r.Stands(i)
		if after[i].Held -= mine.Held; after[i].Held < 0 {
			return nil, fmt.Errorf("%w: %d are held at level %s, less than the %d of a reservation", ErrCannotCount, counts[i].Held, c.Counter.Level, mine.Held)
		}
		if after[i].Used -= mine.Used; after[i].Used < 0 {
			return nil, fmt.Errorf("%w: %d are used at level %s, less than the %d of a reservation", ErrCannotCount, counts[i].Used, c.Counter.Level, mine.Used)
		}
	}
	return after, nil
}

// KeptUntil is when a settled reservation may be forgotten: none of its windows
// comes back, and whoever settles it once more has had a day to do so.
func (r Reservation) KeptUntil() time.Time {
	until := r.ExpiresAt
	for _, c := range r.Charges {
		if c.ResetAt.After(until) {
			until = c.ResetAt
		}
	}
	return until.AddDate(0, 0, 1)
}

// Due is when something is to be done about the reservation: settle it, or once it was
// settled, forget it.
func (r Reservation) Due() time.Time {
	if r.State == Pending {
		return r.ExpiresAt
	}
	return r.KeptUntil()
}

// Overruns returns the usages of the levels whose maximum was exceeded because more was
// paid than was reserved, or than was charged on expiry. before is the reservation
// before it was settled so, and counts are those after that. What is held counts as
// used, because it was admitted before. A maximum is the one that held when the units
// were reserved. Levels in a dry run, which may hold any number, are left out.
func (r Reservation) Overruns(before Reservation, counts []Count) []Usage {
	var over []Usage
	for i, c := range r.Charges {
		more := r.Stands(i).Taken() > before.Stands(i).Taken()
		if taken := counts[i].Taken(); more && taken > c.Max && !c.DryRun {
			over = append(over, Usage{Level: c.Counter.Level, Used: taken, Max: c.Max, ResetAt: c.ResetAt})
		}
	}
	return over
}
