package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"snip/quota"
	"snip/shortener"
)

// LinksOf implements [shortener.Store].
func (s *Store) LinksOf(ctx context.Context, key quota.KeyID, before shortener.Slug, n int) ([]shortener.Link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, ok := s.links[before]
	if before != "" && (!ok || first.Key != key) {
		return nil, shortener.ErrNotFound
	}
	var links []shortener.Link
	for _, link := range s.links {
		if link.Key == key && !link.Deleted && (before == "" || newestFirst(first, link) < 0) {
			links = append(links, link)
		}
	}
	slices.SortFunc(links, newestFirst)
	return links[:min(n, len(links))], nil
}

func newestFirst(a, b shortener.Link) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.Slug, a.Slug))
}

// Keys implements [shortener.Store].
func (s *Store) Keys(ctx context.Context) ([]shortener.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []shortener.Key
	for _, name := range slices.Sorted(maps.Keys(s.keys)) {
		keys = append(keys, s.keys[name])
	}
	return keys, nil
}

// CreateKey implements [shortener.Store].
func (s *Store) CreateKey(ctx context.Context, key shortener.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.keys[key.Name]; taken {
		return shortener.ErrKeyTaken
	}
	s.keys[key.Name] = key
	return nil
}

// ChangeKey implements [shortener.Store].
func (s *Store) ChangeKey(ctx context.Context, name string, daily int64) (shortener.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, ok := s.keys[name]
	if !ok {
		return shortener.Key{}, shortener.ErrNoKey
	}
	key.Daily = daily
	s.keys[name] = key
	return key, nil
}

// DeleteKey implements [shortener.Store].
func (s *Store) DeleteKey(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.keys[name]; !ok {
		return shortener.ErrNoKey
	}
	delete(s.keys, name)
	return nil
}
