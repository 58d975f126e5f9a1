// Package memstore is the shortest correct store: the executable specification
// of [shortener.Store]. Package storetest compares random operations on it, as on
// every store, with a plain map. It keeps nothing over a restart; use boltstore for that.
package memstore

import (
	"context"
	"fmt"
	"sync"

	"snip/quota"
	"snip/shortener"
)

// Store keeps everything in maps under one lock.
type Store struct {
	mu      sync.Mutex
	links   map[shortener.Slug]shortener.Link
	visited map[shortener.Slug]int64
	visits  map[shortener.Slug]shortener.Visits
	counts  map[quota.Counter]quota.Count
	answers map[shortener.AnswerRef]shortener.Answer
	held    map[string]quota.Reservation
	secrets map[string]quota.Secret
	entries map[entryName]shortener.Entry
	audit   []shortener.AuditLine
	notices map[string]shortener.Notice // by their IDs; zero once delivered
	history map[string]shortener.DayRecord
	newest  string // the newest day that has a counted link
}

var _ shortener.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	return &Store{
		links:   make(map[shortener.Slug]shortener.Link),
		visited: make(map[shortener.Slug]int64),
		visits:  make(map[shortener.Slug]shortener.Visits),
		counts:  make(map[quota.Counter]quota.Count),
		answers: make(map[shortener.AnswerRef]shortener.Answer),
		held:    make(map[string]quota.Reservation),
		secrets: make(map[string]quota.Secret),
		entries: make(map[entryName]shortener.Entry),
		notices: make(map[string]shortener.Notice),
		history: make(map[string]shortener.DayRecord),
	}
}

// Secret implements [shortener.Store].
func (s *Store) Secret(ctx context.Context, day string) (quota.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	secret, ok := s.secrets[day]
	if !ok {
		return quota.Secret{}, fmt.Errorf("secret of %s: %w", day, shortener.ErrNotFound)
	}
	return secret, nil
}

// EnsureSecret implements [shortener.Store].
func (s *Store) EnsureSecret(ctx context.Context, day string) (quota.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := quota.CheckClock(day, s.newest); err != nil {
		return quota.Secret{}, err
	}
	secret, ok := s.secrets[day]
	if !ok {
		secret = quota.NewSecret()
		s.secrets[day] = secret
	}
	return secret, nil
}

// NewSlug implements [shortener.Store].
func (s *Store) NewSlug() shortener.Slug { return shortener.RandomSlug() }

// Counts implements [shortener.Store].
func (s *Store) Counts(ctx context.Context, counters []quota.Counter) ([]quota.Count, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make([]quota.Count, len(counters))
	for i, c := range counters {
		counts[i] = s.counts[c]
	}
	return counts, nil
}

// Create implements [shortener.Store].
func (s *Store) Create(ctx context.Context, c shortener.Creation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := quota.CheckClock(c.Day, s.newest); err != nil {
		return fmt.Errorf("%w: %w", shortener.ErrUnavailable, err)
	}
	if a, ok := s.replay(c); ok {
		return &shortener.ReplayError{Answer: a}
	}
	counts := s.countsOf(c.Charges)
	usages, err := quota.Decide(c.Charges, quota.Taken(counts))
	if err != nil {
		return shortener.Uncounted(err)
	}
	var taken []shortener.Slug
	for _, link := range c.Links {
		if _, there := s.links[link.Slug]; there {
			taken = append(taken, link.Slug)
		}
	}
	if taken != nil {
		return &shortener.SlugTakenError{Slugs: taken}
	}
	for i, charge := range c.Charges {
		counts[i].Used += charge.Cost
	}
	s.putCounts(c.Charges, counts)
	if c.Answer != nil {
		s.answers[c.Answer.AnswerRef] = ownAnswer(*c.Answer)
	}
	for _, link := range c.Links {
		s.links[link.Slug] = link
	}
	if n, ok := shortener.BudgetNotice(c, usages); ok {
		if err := s.post(n); err != nil {
			return err
		}
	}
	s.newest = max(s.newest, c.Day)
	return s.sweep()
}

// sweep drops every day older than the one before the newest.
func (s *Store) sweep() error {
	if s.newest == "" {
		return nil // nothing was counted
	}
	kept, err := quota.PreviousDay(s.newest)
	if err != nil {
		return err
	}
	for _, r := range s.tally() {
		if r.Day < kept.Label {
			s.addHistory(r)
		}
	}
	for c := range s.counts {
		if w, err := quota.ParseWindow(c.Period); err == nil && !w.End.After(kept.Start) {
			delete(s.counts, c)
		}
	}
	for ref := range s.answers {
		if ref.Day < kept.Label {
			delete(s.answers, ref)
		}
	}
	for day := range s.secrets {
		if day < kept.Label {
			delete(s.secrets, day)
		}
	}
	return nil
}

// Follow implements [shortener.Store].
func (s *Store) Follow(ctx context.Context, slug shortener.Slug) (shortener.Target, error) {
	link, err := s.Get(ctx, slug)
	return link.Target(), err
}

// Get implements [shortener.Store].
func (s *Store) Get(ctx context.Context, slug shortener.Slug) (shortener.Link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	link, ok := s.links[slug]
	if !ok {
		return shortener.Link{}, shortener.ErrNotFound
	}
	return link, nil
}

// Visit implements [shortener.Store].
func (s *Store) Visit(ctx context.Context, slug shortener.Slug) (shortener.Target, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	link, err := s.changeable(ctx, slug)
	if err != nil {
		return shortener.Target{}, err
	}
	if link.MaxVisits > 0 {
		if s.visited[slug] >= link.MaxVisits {
			return shortener.Target{}, shortener.ErrGone
		}
		s.visited[slug]++
	}
	return link.Target(), nil
}

// Visited implements [shortener.Store].
func (s *Store) Visited(ctx context.Context, slug shortener.Slug) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.visited[slug], nil
}

// AddVisits implements [shortener.Store].
func (s *Store) AddVisits(ctx context.Context, visits map[shortener.Slug]shortener.Visits) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addVisits(ctx, visits)
	return ctx.Err()
}

func (s *Store) addVisits(ctx context.Context, visits map[shortener.Slug]shortener.Visits) {
	for slug, added := range visits {
		if _, err := s.living(ctx, slug); err != nil {
			continue
		}
		var sum shortener.Visits
		sum.Add(s.visits[slug])
		sum.Add(added)
		s.visits[slug] = sum
	}
}

// Visits implements [shortener.Store].
func (s *Store) Visits(ctx context.Context, slug shortener.Slug) (shortener.Visits, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.visitsOf(slug), nil
}

// visitsOf returns visits that share no memory with the store.
func (s *Store) visitsOf(slug shortener.Slug) (sum shortener.Visits) {
	sum.Add(s.visits[slug])
	return sum
}

// Change implements [shortener.Store].
func (s *Store) Change(ctx context.Context, slug shortener.Slug, change shortener.Change) (shortener.Link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	link, err := s.changeable(ctx, slug)
	if err != nil {
		return shortener.Link{}, err
	}
	link = link.Change(change)
	s.links[slug] = link
	return link, nil
}

// Delete implements [shortener.Store].
func (s *Store) Delete(ctx context.Context, slug shortener.Slug) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	link, err := s.changeable(ctx, slug)
	if err == nil {
		s.bury(link)
	}
	return err
}

func (s *Store) bury(link shortener.Link) {
	s.links[link.Slug] = link.Tombstone()
	delete(s.visited, link.Slug)
	delete(s.visits, link.Slug)
}

// living returns the link unless it is deleted, or the context has ended.
func (s *Store) living(ctx context.Context, slug shortener.Slug) (shortener.Link, error) {
	link, ok := s.links[slug]
	switch {
	case ctx.Err() != nil:
		return link, ctx.Err()
	case !ok:
		return link, shortener.ErrNotFound
	case link.Deleted:
		return link, shortener.ErrGone
	}
	return link, nil
}

// changeable returns the link unless it is deleted or taken down.
func (s *Store) changeable(ctx context.Context, slug shortener.Slug) (shortener.Link, error) {
	link, err := s.living(ctx, slug)
	if err == nil && link.TakenDown != "" {
		err = shortener.ErrTakenDown
	}
	return link, err
}

// Health implements [shortener.Store].
func (s *Store) Health() shortener.Health { return shortener.Health{} }

// Ready implements [shortener.Store].
func (s *Store) Ready(ctx context.Context, day string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return quota.CheckClock(day, s.newest)
}
