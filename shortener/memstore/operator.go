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

// Scan implements [shortener.Store].
func (s *Store) Scan(ctx context.Context, mark string, n int) (links []shortener.Link, next string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, slug := range slices.Sorted(maps.Keys(s.links)) {
		if string(slug) <= mark {
			continue
		}
		if len(links) == n {
			return links, string(links[n-1].Slug), nil
		}
		links = append(links, s.links[slug])
	}
	return links, "", nil
}

// Entries implements [shortener.Store].
func (s *Store) Entries(ctx context.Context, kind shortener.EntryKind) ([]shortener.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var entries []shortener.Entry
	for name, e := range s.entries {
		if name.kind == kind {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b shortener.Entry) int { return cmp.Compare(a.Name, b.Name) })
	return entries, nil
}

// entryName is what an entry is found by.
type entryName struct {
	kind shortener.EntryKind
	name string
}

// Act implements [shortener.Store].
func (s *Store) Act(ctx context.Context, act shortener.Act) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := maps.Clone(s.entries)
	for _, c := range act.Entries {
		at := entryName{c.Kind, c.Name}
		_, there := entries[at]
		switch {
		case c.Verb == shortener.AddEntry && there:
			return shortener.ErrEntryExists
		case (c.Verb == shortener.ReplaceEntry || c.Verb == shortener.RemoveEntry) && !there:
			return shortener.ErrNoEntry
		case c.Verb == shortener.RemoveEntry:
			delete(entries, at)
		default:
			entries[at] = c.Entry
		}
	}
	s.entries = entries
	for _, slug := range act.Links {
		link, ok := s.links[slug]
		switch {
		case !ok || link.Deleted:
		case act.Delete:
			s.bury(link)
		default:
			link.TakenDown = act.Reason
			s.links[slug] = link
		}
	}
	act.Line.Number = uint64(len(s.audit) + 1)
	s.audit = append(s.audit, act.Line)
	return nil
}

// Audit implements [shortener.Store].
func (s *Store) Audit(ctx context.Context, before uint64, n int) ([]shortener.AuditLine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.audit
	if before > 0 && before <= uint64(len(lines)) {
		lines = lines[:before-1]
	}
	lines = slices.Clone(lines[max(0, len(lines)-n):])
	slices.Reverse(lines)
	return lines, nil
}
