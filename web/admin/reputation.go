package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"snip/quota"
	"snip/shortener"
)

// reputation is how the checks of destinations are. Money is in micro-units.
type reputation struct {
	OnFailure string `json:"on_failure"` // "refuse" or "allow"
	Price     int64  `json:"price_micros"`
	DayAtMost int64  `json:"day_at_most_micros"` // what a day can cost

	Spent int64 `json:"spent_micros"` // today
	Held  int64 `json:"held_micros"`  // beside it, by calls that are not settled
	Calls int64 `json:"calls"`        // today, with those that are not settled
	Limit int64 `json:"calls_limit"`

	Ended     map[shortener.CheckOutcome]int64 `json:"ended"` // calls since the start
	Cached    int64                            `json:"cached"`
	Unchecked int64                            `json:"unchecked"`
	Unsettled int64                            `json:"unsettled"`

	PausedUntil time.Time `json:"paused_until,omitzero"`
}

// viewReputation returns nil where destinations are not checked, or what was paid
// cannot be read.
func (s *server) viewReputation(ctx context.Context) *reputation {
	r, err := s.service.CheckReport(ctx)
	if r == nil || err != nil {
		return nil
	}
	v := &reputation{
		OnFailure: "refuse", Price: r.Price, DayAtMost: r.DayAtMost(),
		Spent: r.Money.Used, Held: r.Money.Held, Calls: r.Called.Taken(), Limit: r.DayCalls(),
		Ended: r.Ended, Cached: r.Cached, Unchecked: r.Unchecked, Unsettled: r.Unsettled, PausedUntil: r.PausedUntil,
	}
	if r.AllowOnFailure {
		v.OnFailure = "allow"
	}
	return v
}

// reservation is what is held, or was paid, for a call.
type reservation struct {
	ID        string        `json:"id"`
	State     quota.State   `json:"state"`
	Expired   bool          `json:"expired"`             // whether its expiry has settled it, and not its caller since
	CreatedAt time.Time     `json:"created_at,omitzero"` // absent is unknown
	UpdatedAt time.Time     `json:"updated_at,omitzero"`
	ExpiresAt time.Time     `json:"expires_at"`
	OnExpiry  quota.State   `json:"on_expiry"`
	Charges   []reservedSum `json:"charges"` // the widest level first
}

// reservedSum is a reservation's share of a counter. Money is in micro-units.
type reservedSum struct {
	Level    quota.Level `json:"level"`
	Window   string      `json:"window"`
	Reserved int64       `json:"reserved"`
	Paid     int64       `json:"paid"`
}

// mostReservations bounds how many one answer lists.
const mostReservations = 10_000

// listReservations lists what is pending, and what was settled and is kept still.
func (s *server) listReservations(w http.ResponseWriter, r *http.Request) error {
	limit, err := number(r, "limit", 100, mostReservations)
	if err != nil {
		return err
	}
	list, err := s.service.Reservations(r.Context(), int(limit)+1)
	if err != nil {
		return err
	}
	answer := struct {
		Reservations []reservation `json:"reservations"`
		More         bool          `json:"more"`
	}{[]reservation{}, len(list) > int(limit)}
	for _, r := range list[:min(len(list), int(limit))] {
		v := reservation{ID: r.ID, State: r.State, Expired: r.Expired, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, ExpiresAt: r.ExpiresAt, OnExpiry: r.OnExpiry}
		for i, c := range r.Charges {
			v.Charges = append(v.Charges, reservedSum{c.Counter.Level, c.Counter.Period, c.Cost, r.Stands(i).Used})
		}
		answer.Reservations = append(answer.Reservations, v)
	}
	return writeJSON(w, http.StatusOK, answer)
}

var (
	checksDesc     = desc("reputation_calls_total", "Calls to check a destination, by how they ended.", "outcome")
	cachedDesc     = desc("reputation_cached_total", "Destinations that were checked without a call of their own.")
	uncheckedDesc  = desc("reputation_unchecked_total", "Destinations that could not be checked, whatever became of their links.")
	unsettledDesc  = desc("reputation_unsettled_total", "Calls that could not be paid for at once, and are charged later.")
	spentDesc      = desc("reputation_spent_micros", "What the calls of today have cost, in millionths.")
	heldDesc       = desc("reputation_held_micros", "What is held for calls that are not settled, in millionths.")
	dayAtMostDesc  = desc("reputation_day_at_most_micros", "What the calls of a day can cost, in millionths.")
	callsDesc      = desc("reputation_calls_today", "Calls of today, with those that are not settled.")
	callsLimitDesc = desc("reputation_calls_limit", "Calls that may be made a day.")
	pausedDesc     = desc("reputation_paused", "Whether nobody is asked now, because calls have failed.")
)

// collect counts and gauges what there is of checks.
func (r *reputation) collect(count, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	if r == nil {
		return
	}
	for outcome, n := range r.Ended {
		count(checksDesc, float64(n), string(outcome))
	}
	count(cachedDesc, float64(r.Cached))
	count(uncheckedDesc, float64(r.Unchecked))
	count(unsettledDesc, float64(r.Unsettled))
	gauge(spentDesc, float64(r.Spent))
	gauge(heldDesc, float64(r.Held))
	gauge(dayAtMostDesc, float64(r.DayAtMost))
	gauge(callsDesc, float64(r.Calls))
	gauge(callsLimitDesc, float64(r.Limit))
	gauge(pausedDesc, truth(!r.PausedUntil.IsZero()))
}
