package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"snip/shortener"
)

// visit is one that is counted, in a batch with others.
type visit struct {
	slug   shortener.Slug
	target shortener.Target // the queue's, until the outcome is known
}

// Visit implements [shortener.Store].
func (s *Store) Visit(ctx context.Context, slug shortener.Slug) (shortener.Target, error) {
	// A look first, which may refuse: a link that is used up costs no write.
	link, err := s.link(ctx, slug)
	if err == nil {
		err = link.visitable()
	}
	if err != nil {
		return shortener.Target{}, err
	}
	if link.MaxVisits == 0 {
		return link.Target(), nil
	}
	v := &visit{slug: slug}
	if err := s.visits.do(ctx, v); err != nil {
		return shortener.Target{}, err
	}
	return v.target, nil
}

// visitable returns why a visit does not lead on.
func (l visitedLink) visitable() error {
	if err := l.changeable(); err != nil {
		return err
	}
	if l.MaxVisits > 0 && l.visited >= l.MaxVisits {
		return shortener.ErrGone
	}
	return nil
}

// changeable returns why a link cannot be changed.
func (l visitedLink) changeable() error {
	switch {
	case l.Deleted:
		return shortener.ErrGone
	case l.TakenDown != "":
		return shortener.ErrTakenDown
	}
	return nil
}

// commitVisits counts visits in one transaction and returns the results.
func (s *Store) commitVisits(visits []*visit) (results []error, err error) {
	var slugs []string
	for _, v := range visits {
		slugs = append(slugs, string(v.slug))
	}
	err = s.writers[1].transact(func(ctx context.Context, tx pgx.Tx) error {
		links, err := lockLinks(ctx, tx, slugs)
		if err != nil {
			return err
		}
		results = results[:0]
		counted := map[shortener.Slug]int64{}
		for _, v := range visits {
			link, there := links[v.slug]
			err := error(shortener.ErrNotFound)
			if there {
				err = link.visitable()
			}
			if v.target = link.Target(); err == nil && link.MaxVisits > 0 {
				link.visited++
				links[v.slug], counted[v.slug] = link, link.visited
			}
			results = append(results, err)
		}
		if len(counted) == 0 {
			return errNothing
		}
		var changed []string
		var visited []int64
		for slug, n := range counted {
			changed, visited = append(changed, string(slug)), append(visited, n)
		}
		_, err = tx.Exec(ctx, `UPDATE links l SET visited = w.visited FROM unnest($1::text[], $2::bigint[]) AS w(slug, visited)
			WHERE l.slug = w.slug`, changed, visited)
		return err
	})
	return results, err
}

// lockLinks locks links in their order and returns those that are there.
func lockLinks(ctx context.Context, tx pgx.Tx, slugs []string) (map[shortener.Slug]visitedLink, error) {
	rows, err := tx.Query(ctx, `SELECT `+linkColumns+` FROM links WHERE slug = ANY($1) ORDER BY slug FOR UPDATE`, slugs)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, scanLink)
	links := make(map[shortener.Slug]visitedLink, len(found))
	for _, link := range found {
		links[link.Slug] = link
	}
	return links, err
}

// Visited implements [shortener.Store].
func (s *Store) Visited(ctx context.Context, slug shortener.Slug) (int64, error) {
	link, err := s.link(ctx, slug)
	if errors.Is(err, shortener.ErrNotFound) {
		err = nil
	}
	return link.visited, err
}

// possibleOf returns those of the slugs of which there can be links, in their order.
func possibleOf(slugs ...shortener.Slug) []string {
	texts := []string{}
	for _, slug := range slugs {
		if possible(slug) {
			texts = append(texts, string(slug))
		}
	}
	slices.Sort(texts)
	return texts
}

// AddVisits implements [shortener.Store].
func (s *Store) AddVisits(ctx context.Context, visits map[shortener.Slug]shortener.Visits) error {
	return s.update(ctx, "add visits", func(tx pgx.Tx) error { return addVisits(ctx, tx, visits) })
}

// addVisits locks the links for reading, so that none is deleted meanwhile, and then
// what is known of their visits.
func addVisits(ctx context.Context, tx pgx.Tx, visits map[shortener.Slug]shortener.Visits) error {
	wanted := possibleOf(slices.Collect(maps.Keys(visits))...)
	if len(wanted) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `SELECT slug FROM links WHERE slug = ANY($1) AND NOT deleted ORDER BY slug FOR SHARE`, wanted)
	if err != nil {
		return err
	}
	living, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(living) == 0 {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO clicks (slug) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING`, living); err != nil {
		return err
	}
	rows, err = tx.Query(ctx, `SELECT slug, visits FROM clicks WHERE slug = ANY($1) ORDER BY slug FOR UPDATE`, living)
	if err != nil {
		return err
	}
	var slugs []string
	var sums [][]byte
	var slug string
	var raw []byte
	_, err = pgx.ForEachRow(rows, []any{&slug, &raw}, func() error {
		var sum shortener.Visits
		if json.Unmarshal(raw, &sum) != nil {
			return nil // what cannot be read is left for the operator to look at
		}
		sum.Add(visits[shortener.Slug(slug)])
		added, err := json.Marshal(sum)
		slugs, sums = append(slugs, slug), append(sums, added)
		return err
	})
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE clicks c SET visits = w.visits FROM unnest($1::text[], $2::bytea[]) AS w(slug, visits)
		WHERE c.slug = w.slug`, slugs, sums)
	return err
}

// Visits implements [shortener.Store].
func (s *Store) Visits(ctx context.Context, slug shortener.Slug) (v shortener.Visits, err error) {
	found, err := query(ctx, s, "read the visits of a link", pgx.RowTo[[]byte], `SELECT visits FROM clicks WHERE slug = ANY($1)`, possibleOf(slug))
	if err == nil && len(found) > 0 {
		err = unavailable("read the visits of a link", json.Unmarshal(found[0], &v))
	}
	return v, err
}

// Change implements [shortener.Store].
func (s *Store) Change(ctx context.Context, slug shortener.Slug, change shortener.Change) (shortener.Link, error) {
	return s.replace(ctx, slug, func(l shortener.Link) shortener.Link { return l.Change(change) })
}

// Delete implements [shortener.Store].
func (s *Store) Delete(ctx context.Context, slug shortener.Slug) error {
	_, err := s.replace(ctx, slug, shortener.Link.Tombstone)
	return err
}

// replace puts another link in the place of one that may be changed.
func (s *Store) replace(ctx context.Context, slug shortener.Slug, by func(shortener.Link) shortener.Link) (link shortener.Link, err error) {
	err = s.update(ctx, "change a link", func(tx pgx.Tx) error {
		links, err := lockLinks(ctx, tx, possibleOf(slug))
		if err != nil {
			return err
		}
		before, there := links[slug]
		if !there {
			return refusal{shortener.ErrNotFound}
		}
		if err := before.changeable(); err != nil {
			return refusal{err}
		}
		link = by(before.Link)
		return put(ctx, tx, []visitedLink{{link, before.visited}})
	})
	s.changed(slug)
	if err != nil {
		return shortener.Link{}, err
	}
	return link, nil
}

// changed is to be called when links may have changed, before anybody is told.
func (s *Store) changed(slugs ...shortener.Slug) {
	if s.cache != nil {
		s.cache.invalidate(slugs...)
	}
}

// put puts links in the place of what they were before, and tells other programs.
// They are locked.
func put(ctx context.Context, tx pgx.Tx, links []visitedLink) error {
	var columns linkArrays
	var deleted []string
	for _, link := range links {
		if link.Deleted {
			link.visited = 0
			deleted = append(deleted, string(link.Slug))
		}
		columns.add(link)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM clicks WHERE slug = ANY($1)`, deleted); err != nil {
		return err
	}
	if err := notify(ctx, tx, columns.slugs); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE links l SET destination = w.destination, expires_at = w.expires_at, max_visits = w.max_visits,
			forward_query = w.forward_query, shows_target = w.shows_target, direct_redirect = w.direct_redirect, taken_down = w.taken_down, deleted = w.deleted, visited = w.visited
		FROM `+rows+` AS w(`+linkColumns+`) WHERE l.slug = w.slug`, columns.arguments()...)
	return err
}
