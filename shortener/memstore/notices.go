package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"snip/quota"
	"snip/shortener"
)

// Post implements [shortener.Store].
func (s *Store) Post(ctx context.Context, n shortener.Notice) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.post(n)
}

func (s *Store) post(n shortener.Notice) error {
	day, _, _ := strings.Cut(n.ID, "/")
	oldest, err := quota.DayBefore(day)
	if err != nil {
		return err
	}
	maps.DeleteFunc(s.notices, func(id string, n shortener.Notice) bool { return id < oldest && n.ID == "" })
	if _, kept := s.notices[n.ID]; !kept {
		s.notices[n.ID] = n
	}
	return nil
}

// Notices implements [shortener.Store].
func (s *Store) Notices(ctx context.Context, n int) ([]shortener.Notice, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var waiting []shortener.Notice
	for _, notice := range s.notices {
		if notice.ID != "" {
			waiting = append(waiting, notice)
		}
	}
	slices.SortFunc(waiting, shortener.OldestFirst)
	return waiting[:min(n, len(waiting))], nil
}

// Delivered implements [shortener.Store].
func (s *Store) Delivered(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, kept := s.notices[id]; kept {
		s.notices[id] = shortener.Notice{}
	}
	return nil
}

// Tally implements [shortener.Store].
func (s *Store) Tally(ctx context.Context) ([]shortener.DayRecord, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tally(), nil
}

func (s *Store) tally() []shortener.DayRecord {
	days := map[string]shortener.DayRecord{}
	for c, count := range s.counts {
		if c.Level == quota.LevelClient && quota.IsDay(c.Period) && count.Used > 0 {
			r := days[c.Period]
			r.Day, r.Created, r.Clients, r.Busiest = c.Period, r.Created+count.Used, r.Clients+1, max(r.Busiest, count.Used)
			days[c.Period] = r
		}
	}
	return slices.SortedFunc(maps.Values(days), func(a, b shortener.DayRecord) int { return cmp.Compare(a.Day, b.Day) })
}

// Busiest implements [shortener.Store].
func (s *Store) Busiest(ctx context.Context, day string, level quota.Level, n int) ([]shortener.Count, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var counts []shortener.Count
	for c, count := range s.counts {
		if c.Period == day && c.Level == level {
			counts = append(counts, shortener.Count{Subject: c.Subject, Used: count.Used})
		}
	}
	slices.SortFunc(counts, shortener.BusiestFirst)
	return counts[:min(n, len(counts))], nil
}

// AddHistory implements [shortener.Store].
func (s *Store) AddHistory(ctx context.Context, r shortener.DayRecord) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addHistory(r)
	return nil
}

func (s *Store) addHistory(r shortener.DayRecord) {
	s.history[r.Day] = shortener.DayRecord{Day: r.Day}.Add(s.history[r.Day]).Add(r)
	days := slices.Sorted(maps.Keys(s.history))
	for _, day := range days[:max(0, len(days)-shortener.HistoryDays)] {
		delete(s.history, day)
	}
}

// History implements [shortener.Store].
func (s *Store) History(ctx context.Context, n int) ([]shortener.DayRecord, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	days := slices.Sorted(maps.Keys(s.history))
	slices.Reverse(days)
	var records []shortener.DayRecord
	for _, day := range days[:min(n, len(days))] {
		records = append(records, s.history[day])
	}
	return records, nil
}
