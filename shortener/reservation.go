package shortener

import (
	"fmt"
	"time"

	"snip/quota"
)

// Kinds of notices about reservations.
const (
	KindOverrun = "overrun"   // work has cost more than was reserved for it, and than there was room for
	KindLate    = "late-cost" // more was paid than its expired reservation was charged for
)

// ReservationNotices returns what operators are to be told when a reservation, which
// was before as it says, has been settled at an instant and its counters hold the
// counts: of a level that holds more than its maximum because of that, of a cost that
// came after the expiry, and the highest share of the money for checks that was
// reached. A store keeps them in the commit that counts, but for those of whose IDs one
// was kept before.
func ReservationNotices(before, r quota.Reservation, counts []quota.Count, at time.Time) []Notice {
	if r.State != quota.Committed {
		return nil
	}
	day := quota.DayOf(at).Label
	var notices []Notice
	if over := r.Overruns(before, counts); len(over) > 0 {
		notices = append(notices, Notice{
			ID:   fmt.Sprintf("%s/%s/%s", day, KindOverrun, over[0].Level),
			At:   at,
			Kind: KindOverrun,
			Text: fmt.Sprintf("More was paid than reserved: %d of %d are used or held at level %s until %s.",
				over[0].Used, over[0].Max, over[0].Level, over[0].ResetAt.Format(time.RFC3339)),
		})
	}
	for i, c := range r.Charges {
		late := r.Actual[i] - before.Stands(i).Used
		if before.Expired && late > 0 {
			notices = append(notices, Notice{
				ID:   fmt.Sprintf("%s/%s/%s", day, KindLate, c.Counter.Level),
				At:   at,
				Kind: KindLate,
				Text: fmt.Sprintf("A cost came after its reservation had expired at %s: %d more than was charged then are counted at level %s.",
					r.ExpiresAt.Format(time.RFC3339), late, c.Counter.Level),
			})
			break // the widest level says it for all
		}
	}
	if n, ok := moneyNotice(before, r, counts, at); ok {
		notices = append(notices, n)
	}
	return notices
}

func moneyNotice(before, r quota.Reservation, counts []quota.Count, at time.Time) (Notice, bool) {
	for i, c := range r.Charges {
		if c.Counter.Level != LevelCheckBudget {
			continue
		}
		// The last of a budget that no whole call fits into counts as used.
		usable := c.Max
		if c.Cost > 0 {
			usable -= c.Max % c.Cost
		}
		used := counts[i].Used
		earlier := used - (r.Actual[i] - before.Stands(i).Used)
		for _, share := range budgetShares {
			reached := usable/100*share + usable%100*share/100
			if used < reached || earlier >= reached {
				continue
			}
			return Notice{
				ID:   fmt.Sprintf("%s/%s/%d", c.Counter.Period, LevelCheckBudget, share),
				At:   at,
				Kind: KindBudget,
				Text: fmt.Sprintf("%d %% of the money of %s for checks of destinations is spent: %s of %s. The day ends at %s.",
					share, c.Counter.Period, Units(used), Units(c.Max), c.ResetAt.Format(time.RFC3339)),
			}, true
		}
	}
	return Notice{}, false
}
