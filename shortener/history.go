package shortener

import (
	"context"
	"fmt"
	"maps"

	"snip/quota"
)

// DayRecord is what is kept of a day when its counters are gone, so that limits can
// be chosen anew from what they have done.
type DayRecord struct {
	Day     string                // such as "2026-11-29"
	Created int64                 // links
	Clients int64                 // that made at least one
	Busiest int64                 // links of the client that made most
	Refused map[quota.Level]int64 // creations, by the level that refused
}

// HistoryDays is how many days are kept.
const HistoryDays = 400

// KeepHistory writes down what is known of today. It is called now and then, and
// after the last request: what was refused meanwhile is added.
func (s *Service) KeepHistory(ctx context.Context) error {
	s.historyMu.Lock()
	defer s.historyMu.Unlock()
	day := quota.DayOf(s.instant()).Label
	record, err := s.store.Tally(ctx, day)
	if err != nil {
		return fmt.Errorf("tally %s: %w", day, err)
	}
	refused := s.Outcomes().Refused
	record.Day, record.Refused = day, map[quota.Level]int64{}
	for level, n := range refused {
		if added := n - s.historyRefused[level]; added > 0 {
			record.Refused[level] = added
		}
	}
	if record.Created == 0 && len(record.Refused) == 0 {
		return nil
	}
	if err := s.store.AddHistory(ctx, record); err != nil {
		return fmt.Errorf("history of %s: %w", day, err)
	}
	s.historyRefused = refused
	return nil
}

// History returns up to n days, the latest first.
func (s *Service) History(ctx context.Context, n int) ([]DayRecord, error) {
	return s.store.History(ctx, n)
}

// Add returns the record with another of the same day taken in: what was refused is
// added, and the rest only grows within a day.
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
	return r
}
