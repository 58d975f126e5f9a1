package shortener

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// recentHours is today and yesterday.
	recentHours = 48
	// RecentLinks is how many of the links made last are remembered.
	RecentLinks = 50
)

// recent is what this process made lately. It is for an operator's eyes, so memory
// is enough: a file would have to be written for it with every link.
type recent struct {
	mu    sync.Mutex
	hours [recentHours]hourMade // each at its hour modulo their number
	slugs []Slug                // the newest last
}

type hourMade struct{ hour, made int64 }

// hourOf counts hours since 1970.
func hourOf(t time.Time) int64 { return t.Unix() / 3600 }

// slot has one for an hour before 1970, too.
func (r *recent) slot(hour int64) *hourMade { return &r.hours[uint64(hour)%recentHours] }

func (r *recent) add(l Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hour := hourOf(l.CreatedAt)
	h := r.slot(hour)
	if h.hour != hour {
		*h = hourMade{hour: hour}
	}
	h.made++
	if len(r.slugs) == RecentLinks {
		r.slugs = slices.Delete(r.slugs, 0, 1)
	}
	r.slugs = append(r.slugs, l.Slug)
}

// MadeByHour returns how many links this process made in each hour of the UTC day
// that holds t, which is today or yesterday.
func (s *Service) MadeByHour(t time.Time) (made [24]int64) {
	s.recent.mu.Lock()
	defer s.recent.mu.Unlock()
	y, m, d := t.UTC().Date()
	for i := range made {
		hour := hourOf(time.Date(y, m, d, i, 0, 0, 0, time.UTC))
		if h := s.recent.slot(hour); h.hour == hour {
			made[i] = h.made
		}
	}
	return made
}

// Newest returns up to [RecentLinks] links that this process made last and that are
// not deleted, the newest first. The error is the store's.
func (s *Service) Newest(ctx context.Context) ([]Link, error) {
	s.recent.mu.Lock()
	slugs := slices.Clone(s.recent.slugs)
	s.recent.mu.Unlock()
	slices.Reverse(slugs)
	var links []Link
	for _, slug := range slugs {
		link, err := s.store.Get(ctx, slug)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, refusalOf(err)
		}
		if err == nil && !link.Deleted {
			links = append(links, link)
		}
	}
	return links, nil
}
