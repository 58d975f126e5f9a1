package quota

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Decide is the only place where limits are compared. used[i] is what of the
// counter of charges[i] is taken now, by reservations too; charges go from the
// widest level to the narrowest. Either every charge is admitted, and the usages after it are
// returned, or none is: then the error is an [*ExceededError] that names the
// widest level that refuses, or wraps [ErrInvalidCharge].
//
// The last Reserved units of a counter are for newcomers: a demand of one unit
// whose every narrower counter still stands at zero. The widest level alone
// cannot tell a newcomer, so without a narrower charge there is none.
//
// A charge that is a dry run is counted and refuses nothing, so its counter may
// come to hold more than Max.
func Decide(charges []Charge, used []int64) ([]Usage, error) {
	if err := validate(charges, used); err != nil {
		return nil, err
	}
	usages := make([]Usage, len(charges))
	for i, c := range charges {
		open := c.Max
		if c.Reserved > 0 && !newcomer(charges[i:], used[i:]) {
			open -= c.Reserved
		}
		usages[i] = Usage{Level: c.Counter.Level, Used: used[i], Max: c.Max, ResetAt: c.ResetAt}
		// Subtracting keeps clear of the overflow that used+cost could bring.
		if used[i] > open-c.Cost && !c.DryRun {
			return nil, &ExceededError{Usage: usages[i]}
		}
		usages[i].Used += c.Cost
	}
	return usages, nil
}

// WouldRefuse returns the levels that would refuse the charges if they were not a
// dry run. The arguments are those of [Decide].
func WouldRefuse(charges []Charge, used []int64) []Level {
	var levels []Level
	for i, c := range charges {
		if !c.DryRun {
			continue
		}
		real := slices.Clone(charges[i:])
		real[0].DryRun = false
		for j := range real[1:] {
			real[j+1].DryRun = true
		}
		if _, err := Decide(real, used[i:]); errors.Is(err, ErrExceeded) {
			levels = append(levels, c.Counter.Level)
		}
	}
	return levels
}

// newcomer reports whether the demand on charges[0] is a first one at every
// narrower level.
func newcomer(charges []Charge, used []int64) bool {
	if charges[0].Cost != 1 || len(charges) == 1 {
		return false
	}
	for _, n := range used[1:] {
		if n != 0 {
			return false
		}
	}
	return true
}

func validate(charges []Charge, used []int64) error {
	if len(charges) != len(used) {
		return fmt.Errorf("%w: %d charges but %d counts", ErrInvalidCharge, len(charges), len(used))
	}
	for i, c := range charges {
		switch {
		case c.Counter.Level == "" || len(c.Counter.Level) > MaxLevel:
			return fmt.Errorf("%w: the level %q must have 1 to %d bytes", ErrInvalidCharge, c.Counter.Level, MaxLevel)
		case slices.ContainsFunc(charges[:i], func(other Charge) bool { return other.Counter == c.Counter }):
			return fmt.Errorf("%w: the counter at level %s is charged twice", ErrInvalidCharge, c.Counter.Level)
		case c.Cost < 1:
			return fmt.Errorf("%w: cost %d at level %s", ErrInvalidCharge, c.Cost, c.Counter.Level)
		case c.Max < 0, c.Reserved < 0, c.Reserved > c.Max:
			return fmt.Errorf("%w: %d reserved of %d at level %s", ErrInvalidCharge, c.Reserved, c.Max, c.Counter.Level)
		case used[i] < 0:
			return fmt.Errorf("%w: stored count %d at level %s", ErrInvalidCharge, used[i], c.Counter.Level)
		case c.DryRun && used[i] > math.MaxInt64-c.Cost:
			return fmt.Errorf("%w: stored count %d at level %s has no room", ErrInvalidCharge, used[i], c.Counter.Level)
		}
	}
	return nil
}
