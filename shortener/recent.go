package shortener

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// RecentLinks is how many of the links made last are remembered.
const RecentLinks = 50

// recent is what this process made last. It is for an operator's eyes, so memory
// is enough: a file would have to be written for it with every link.
type recent struct {
	mu    sync.Mutex
	slugs []Slug // the newest last
}

func (r *recent) add(l Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.slugs) == RecentLinks {
		r.slugs = slices.Delete(r.slugs, 0, 1)
	}
	r.slugs = append(r.slugs, l.Slug)
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
