package shortener

import (
	"context"
	"time"

	"snip/quota"
)

// CheckReport is how the checks of destinations are, for whoever watches.
type CheckReport struct {
	Checks
	Money, Called quota.Count // today's, of the service: micro-units, and calls

	Ended     map[CheckOutcome]int64 // calls since the process began, by how they ended
	Cached    int64                  // destinations that needed no call of their own
	Unsettled int64                  // calls whose reservations are settled later
	Unchecked int64                  // destinations that could not be checked, whatever became of their links

	PausedUntil time.Time // when the service is asked again; zero where it is asked
}

// CheckReport returns nil where destinations are not checked. The error is the
// store's.
func (s *Service) CheckReport(ctx context.Context) (*CheckReport, error) {
	c := s.checker
	if c == nil {
		return nil, nil
	}
	now := s.instant()
	day := quota.DayOf(now).Label
	counts, err := s.store.Counts(ctx, []quota.Counter{{Level: LevelCheckBudget, Period: day}, {Level: LevelCheckCalls, Period: day}})
	if err != nil {
		return nil, refusalOf(err)
	}
	r := &CheckReport{
		Checks: c.Checks, Money: counts[0], Called: counts[1],
		Ended: make(map[CheckOutcome]int64, len(CheckOutcomes)), Cached: c.cached.Load(), Unsettled: c.unsettled.Load(), Unchecked: c.unchecked.Load(),
		PausedUntil: c.circuit.openUntil(now),
	}
	for i, outcome := range CheckOutcomes {
		r.Ended[outcome] = c.ended[i].Load()
	}
	return r, nil
}

// Reservations returns up to n reservations, those that are pending before those that
// are settled. The error is the store's.
func (s *Service) Reservations(ctx context.Context, n int) ([]quota.Reservation, error) {
	list, err := s.store.Reservations(ctx, n)
	return list, refusalOf(err)
}

// Unchecked is how many destinations could not be checked since the process began.
type Unchecked struct {
	Number int64
	Made   bool  // whether their links were made all the same
	Cause  error // of the last; nil where there is none
}

// Unchecked returns what could not be checked.
func (s *Service) Unchecked() Unchecked {
	c := s.checker
	if c == nil {
		return Unchecked{}
	}
	u := Unchecked{Number: c.unchecked.Load(), Made: c.AllowOnFailure}
	if why := c.why.Load(); why != nil {
		u.Cause = *why
	}
	return u
}

// SettleExpired settles every reservation that has expired, each as it says itself.
// The error is the store's.
func (s *Service) SettleExpired(ctx context.Context) error {
	for more := true; more; {
		var err error
		if more, err = s.store.SettleExpired(ctx, s.instant(), settledAtOnce); err != nil {
			return err
		}
	}
	return nil
}

// settledAtOnce bounds the reservations that are settled in one commit.
const settledAtOnce = 100
