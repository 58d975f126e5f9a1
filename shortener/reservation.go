package shortener

import (
	"fmt"
	"time"

	"snip/quota"
)

// KindOverrun is the kind of a notice that work has cost more than was reserved for it.
const KindOverrun = "overrun"

// ReservationNotice returns what operators are to be told when a reservation has
// been committed at an instant and its counters hold the counts: that a level holds
// more than its maximum. A store keeps it in the commit that counts, unless one of
// the same ID was kept before.
func ReservationNotice(r quota.Reservation, counts []quota.Count, at time.Time) (Notice, bool) {
	if r.State != quota.Committed {
		return Notice{}, false
	}
	over := r.Overruns(counts)
	if len(over) == 0 {
		return Notice{}, false
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
