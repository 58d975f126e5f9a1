package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"snip/quota"
	"snip/shortener"
)

func (s *Store) countsOf(charges []quota.Charge) []quota.Count {
	counts := make([]quota.Count, len(charges))
	for i, c := range charges {
		counts[i] = s.counts[c.Counter]
	}
	return counts
}

func (s *Store) putCounts(charges []quota.Charge, counts []quota.Count) {
	for i, c := range charges {
		s.counts[c.Counter] = counts[i]
	}
}

// replay returns the answer that the creation would get again.
func (s *Store) replay(c shortener.Creation) (shortener.Answer, bool) {
	for _, ref := range c.Replays {
		if a, ok := s.answers[ref]; ok && c.Answer != nil && a.Holds(c.Answer.At) {
			return ownAnswer(a), true
		}
	}
	return shortener.Answer{}, false
}

// Answer implements [shortener.Store].
func (s *Store) Answer(ctx context.Context, refs []shortener.AnswerRef) (shortener.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range refs {
		if a, ok := s.answers[ref]; ok {
			return ownAnswer(a), nil
		}
	}
	return shortener.Answer{}, shortener.ErrNotFound
}

// Reserve implements [shortener.Store].
func (s *Store) Reserve(ctx context.Context, r quota.Reservation) (quota.Reservation, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return r, false, err
	}
	if err := r.Validate(); err != nil {
		return r, false, shortener.Uncounted(err)
	}
	if found, ok := s.held[r.ID]; ok {
		return ownReservation(found), true, nil
	}
	r, counts, err := ownReservation(r).Reserve(s.countsOf(r.Charges))
	if err != nil {
		return r, false, shortener.Uncounted(err)
	}
	s.putCounts(r.Charges, counts)
	s.held[r.ID] = r
	return ownReservation(r), false, nil
}

// Commit implements [shortener.Store].
func (s *Store) Commit(ctx context.Context, id string, actual []int64, at time.Time) (quota.Reservation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settle(ctx, id, at, func(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
		return r.Commit(counts, actual, at)
	})
}

// Release implements [shortener.Store].
func (s *Store) Release(ctx context.Context, id string, at time.Time) (quota.Reservation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settle(ctx, id, at, func(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
		return r.Release(counts, at)
	})
}

// Reservations implements [shortener.Store].
func (s *Store) Reservations(ctx context.Context, n int) ([]quota.Reservation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []quota.Reservation
	for _, r := range s.held {
		list = append(list, ownReservation(r))
	}
	slices.SortFunc(list, func(a, b quota.Reservation) int {
		return cmp.Or(a.Due().Compare(b.Due()), cmp.Compare(a.ID, b.ID))
	})
	return list[:min(n, len(list))], nil
}

// SettleExpired implements [shortener.Store].
func (s *Store) SettleExpired(ctx context.Context, now time.Time, n int) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := 0
	for id, r := range s.held {
		if r.Due().After(now) {
			continue
		}
		if done == n {
			return true, nil
		}
		done++
		if r.State != quota.Pending {
			delete(s.held, id)
			continue
		}
		_, err := s.settle(ctx, id, now, func(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
			return r.Expire(counts, now)
		})
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

func (s *Store) settle(ctx context.Context, id string, at time.Time, become func(quota.Reservation, []quota.Count) (quota.Reservation, []quota.Count, error)) (quota.Reservation, error) {
	if err := ctx.Err(); err != nil {
		return quota.Reservation{}, err
	}
	r, ok := s.held[id]
	if !ok {
		return quota.Reservation{}, quota.ErrNoReservation
	}
	if r.Settled() {
		return ownReservation(r), nil
	}
	counts := s.countsOf(r.Charges)
	for i, c := range r.Charges {
		if _, there := s.counts[c.Counter]; !there { // its window was swept
			counts[i] = r.Stands(i)
		}
	}
	settled, after, err := become(r, counts)
	if err != nil {
		return r, shortener.Uncounted(err)
	}
	for i, c := range r.Charges {
		if _, there := s.counts[c.Counter]; there {
			s.counts[c.Counter] = after[i]
		}
	}
	s.held[id] = settled
	for _, n := range shortener.ReservationNotices(r, settled, after, at) {
		if err := s.post(n); err != nil {
			return settled, err
		}
	}
	return ownReservation(settled), nil
}

// ownAnswer shares no memory with the one given.
func ownAnswer(a shortener.Answer) shortener.Answer {
	a.Sealed = slices.Clone(a.Sealed)
	return a
}

// ownReservation shares no memory with the one given.
func ownReservation(r quota.Reservation) quota.Reservation {
	r.Charges, r.Actual = slices.Clone(r.Charges), slices.Clone(r.Actual)
	return r
}
