package shortener

import (
	"fmt"
	"time"

	"snip/quota"
)

// KindOverrun is the kind of a notice that work has cost more than was reserved for it.
const KindOverrun = "overrun"

// moneyShares are the parts of the day's money for checks that operators are told
// of, in %.
var moneyShares = [...]int64{100, 80}

// ReservationNotice returns what operators are to be told when a reservation has
// been committed at an instant and its counters hold the counts: that a level holds
// more than its maximum, or else the highest share of the money for checks that it
// has reached. A store keeps it in the commit that counts, unless one of the same ID
// was kept before.
func ReservationNotice(r quota.Reservation, counts []quota.Count, at time.Time) (Notice, bool) {
	if r.State != quota.Committed {
		return Notice{}, false
	}
	over := r.Overruns(counts)
	if len(over) == 0 {
		return moneyNotice(r, counts, at)
	}
	day := quota.DayOf(at).Label
	return Notice{
		ID:   fmt.Sprintf("%s/%s/%s", day, KindOverrun, over[0].Level),
		At:   at,
		Kind: KindOverrun,
		Text: fmt.Sprintf("More was paid than reserved: %d of %d are used at level %s until %s.",
			over[0].Used, over[0].Max, over[0].Level, over[0].ResetAt.Format(time.RFC3339)),
	}, true
}

func moneyNotice(r quota.Reservation, counts []quota.Count, at time.Time) (Notice, bool) {
	for i, c := range r.Charges {
		if c.Counter.Level != LevelCheckBudget {
			continue
		}
		// The last of a budget that no whole call fits into counts as used.
		usable := c.Max
		if c.Cost > 0 {
			usable -= c.Max % c.Cost
		}
		for _, share := range moneyShares {
			reached := usable/100*share + usable%100*share/100
			if counts[i].Used < reached || counts[i].Used-r.Actual[i] >= reached {
				continue
			}
			return Notice{
				ID:   fmt.Sprintf("%s/%s/%d", c.Counter.Period, LevelCheckBudget, share),
				At:   at,
				Kind: KindBudget,
				Text: fmt.Sprintf("%d %% of the money of %s for checks of destinations is spent: %s of %s. The day ends at %s.",
					share, c.Counter.Period, Units(counts[i].Used), Units(c.Max), c.ResetAt.Format(time.RFC3339)),
			}, true
		}
	}
	return Notice{}, false
}
