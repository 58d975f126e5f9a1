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
func (s *Store) Scan(ctx context.Context, mark string, n int) (links []shortener.Managed, next string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, slug := range slices.Sorted(maps.Keys(s.links)) {
		if string(slug) <= mark {
			continue
		}
		if len(links) == n {
			return links, string(links[n-1].Link.Slug), nil
		}
		links = append(links, shortener.Managed{Link: s.links[slug], Visited: s.visited[slug], Visits: s.visitsOf(slug)})
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
func (s *Store) Act(ctx context.Context, act shortener.Act) (done shortener.Done, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range act.If {
		if found, there := s.entries[entryName{e.Kind, e.Name}]; !there || found != e {
			return done, shortener.ErrChanged
		}
	}
	entries := maps.Clone(s.entries)
	for _, c := range act.Entries {
		at := entryName{c.Kind, c.Name}
		_, there := entries[at]
		switch {
		case c.Verb == shortener.AddEntry && there:
			return done, shortener.ErrEntryExists
		case (c.Verb == shortener.ReplaceEntry || c.Verb == shortener.RemoveEntry) && !there:
			return done, shortener.ErrNoEntry
		case c.Verb == shortener.RemoveEntry || c.Verb == shortener.DropEntry:
			delete(entries, at)
		default:
			entries[at] = c.Entry
		}
	}
	var taken []shortener.Slug
	for _, m := range act.Import {
		if _, there := s.links[m.Link.Slug]; there {
			taken = append(taken, m.Link.Slug)
		}
	}
	if taken != nil {
		return done, &shortener.SlugTakenError{Slugs: taken}
	}
	if act.AcceptClock != "" && quota.CheckClock(act.AcceptClock, s.newest) != nil {
		done.Forgotten = s.newest
	}
	var meant []shortener.Link
	for _, slug := range act.Links {
		if link, ok := s.links[slug]; ok && act.Means(link) {
			meant = append(meant, link)
		}
	}
	done.Links = len(meant) + len(act.Import)
	if act.Nothing(done) {
		return done, nil
	}
	s.entries = entries
	for _, link := range meant {
		if link = act.Apply(link); link.Deleted {
			s.bury(link)
		} else {
			s.links[link.Slug] = link
		}
	}
	for _, m := range act.Import {
		s.links[m.Link.Slug], s.visited[m.Link.Slug] = m.Link, m.Visited
		s.addVisits(ctx, map[shortener.Slug]shortener.Visits{m.Link.Slug: m.Visits})
	}
	if done.Forgotten != "" {
		s.newest = ""
	}
	line := act.LineOf(done)
	line.Number = uint64(len(s.audit) + 1)
	s.audit = append(s.audit, line)
	return done, nil
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
