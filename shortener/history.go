package shortener

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"snip/quota"
)

// DayRecord is what is kept of a day when its counters are gone, so that limits can
// be chosen from what they have done.
type DayRecord struct {
	Day     string                // such as "2026-11-29"
	Created int64                 // links
	Clients int64                 // that made at least one
	Busiest int64                 // links of the client that made most
	Refused map[quota.Level]int64 // creations, by the level that refused
	Hours   Hours                 // links, by the hour in UTC; less than Created by what a killed process had not written
}

// Hours are numbers of links by the hour of a UTC day.
type Hours [24]int64

func (h Hours) minus(other Hours) (difference Hours) {
	for i := range h {
		difference[i] = h[i] - other[i]
	}
	return difference
}

// HistoryDays is how many days are kept.
const HistoryDays = 400

// Add returns the record with another of the same day taken in: what was refused and the
// hours are added, and the rest only grows within a day.
func (r DayRecord) Add(other DayRecord) DayRecord {
	r.Created, r.Clients, r.Busiest = max(r.Created, other.Created), max(r.Clients, other.Clients), max(r.Busiest, other.Busiest)
	refused := maps.Clone(r.Refused)
	if refused == nil {
		refused = map[quota.Level]int64{}
	}
	for level, n := range other.Refused {
		refused[level] += n
	}
	r.Refused = refused
	for i, n := range other.Hours {
		r.Hours[i] += n
	}
	return r
}

// empty reports whether the record adds nothing to one that holds the tally already.
func (r DayRecord) empty(tally DayRecord) bool {
	return r.Created <= tally.Created && r.Clients <= tally.Clients && r.Busiest <= tally.Busiest && len(r.Refused) == 0 &&
		r.Hours == Hours{}
}

// dayCounts counts in memory what no counter of the store holds, by the day on which
// it happened. It is safe for concurrent use; the zero value counts from nothing.
type dayCounts struct {
	latest atomic.Pointer[dayCount] // spares the lock until the day changes
	mu     sync.Mutex
	all    map[string]*dayCount
}

// dayCount is what happened on a day since the process began.
type dayCount struct {
	day     string
	refused [len(Levels)]atomic.Int64
	hours   [24]atomic.Int64 // links made
}

// count counts a creation that a level refused on a day, and no other error.
func (c *dayCounts) count(err error, day string) {
	if exceeded, ok := errors.AsType[*quota.ExceededError](err); ok && slices.Contains(Levels[:], exceeded.Usage.Level) {
		add(&c.of(day).refused, exceeded.Usage.Level)
	}
}

// countMade counts links that were made at an instant.
func (c *dayCounts) countMade(n int, at time.Time) {
	c.of(quota.DayOf(at).Label).hours[at.UTC().Hour()].Add(int64(n))
}

func (c *dayCounts) of(day string) *dayCount {
	if d := c.latest.Load(); d != nil && d.day == day {
		return d
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.all[day]
	if d == nil {
		d = &dayCount{day: day}
		if c.all == nil {
			c.all = map[string]*dayCount{}
		}
		c.all[day] = d
	}
	c.latest.Store(d)
	return d
}

// records returns what happened on each day since the process began.
func (c *dayCounts) records() map[string]DayRecord {
	c.mu.Lock()
	defer c.mu.Unlock()
	records := make(map[string]DayRecord, len(c.all))
	for day, d := range c.all {
		r := DayRecord{Day: day, Refused: map[quota.Level]int64{}}
		for i, level := range Levels {
			if n := d.refused[i].Load(); n > 0 {
				r.Refused[level] = n
			}
		}
		for hour := range d.hours {
			r.Hours[hour] = d.hours[hour].Load()
		}
		records[day] = r
	}
	return records
}

// historyBook knows what this process has written into the history.
type historyBook struct {
	mu      sync.Mutex           // held while it is written
	written map[string]DayRecord // by day: the tally as it was last, and all that was added of what was refused
}

// KeepHistory writes down the days of which something is known that was not written
// before: what was made is read from the store's counters, and what this process
// refused is added. It is called now and then, and after the last request. A day is
// that of the decision and not of the call, so the last seconds of a day are written
// into its record after midnight.
func (s *Service) KeepHistory(ctx context.Context) error {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	tallies, err := s.store.Tally(ctx)
	if err != nil {
		return fmt.Errorf("tally: %w", err)
	}
	days := s.days.records()
	for _, tally := range tallies {
		tally.Refused, tally.Hours = days[tally.Day].Refused, days[tally.Day].Hours
		days[tally.Day] = tally
	}
	for _, day := range slices.Sorted(maps.Keys(days)) {
		written, total := s.history.written[day], days[day]
		added := total
		added.Refused = map[quota.Level]int64{}
		for level, n := range total.Refused {
			if more := n - written.Refused[level]; more > 0 {
				added.Refused[level] = more
			}
		}
		added.Hours = total.Hours.minus(written.Hours)
		if added.empty(written) {
			continue
		}
		if err := s.store.AddHistory(ctx, added); err != nil {
			return fmt.Errorf("history of %s: %w", day, err)
		}
		if s.history.written == nil {
			s.history.written = map[string]DayRecord{}
		}
		s.history.written[day] = total
	}
	return nil
}

// History returns up to n days, the latest first.
func (s *Service) History(ctx context.Context, n int) ([]DayRecord, error) {
	return s.store.History(ctx, n)
}

// MadeByHour returns how many links all servers made in each hour of the UTC day that holds t.
// What another server made in the last minute may be missing. The error is the store's.
func (s *Service) MadeByHour(ctx context.Context, t time.Time) (Hours, error) {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	day := quota.DayOf(t).Label
	made := s.days.records()[day].Hours.minus(s.history.written[day].Hours)
	records, err := s.store.History(ctx, HistoryDays)
	if err != nil {
		return Hours{}, refusalOf(err)
	}
	for _, r := range records {
		if r.Day == day {
			for hour, n := range r.Hours {
				made[hour] += n
			}
		}
	}
	return made, nil
}
