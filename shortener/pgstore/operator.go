package pgstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/shortener"
)

// Entries implements [shortener.Store].
func (s *Store) Entries(ctx context.Context, kind shortener.EntryKind) ([]shortener.Entry, error) {
	return query(ctx, s, "read entries", func(row pgx.CollectableRow) (shortener.Entry, error) {
		var name, value []byte
		err := row.Scan(&name, &value)
		return shortener.Entry{Kind: kind, Name: string(name), Value: string(value)}, err
	}, `SELECT name, value FROM entries WHERE kind = $1 ORDER BY name`, string(kind))
}

// Act implements [shortener.Store].
func (s *Store) Act(ctx context.Context, act shortener.Act) (shortener.Done, error) {
	if err := storableText(act.Reason); err != nil {
		return shortener.Done{}, err
	}
	for _, m := range act.Import {
		if err := storable(m.Link); err != nil {
			return shortener.Done{}, err
		}
	}
	var done shortener.Done
	err := s.update(ctx, "act", func(tx pgx.Tx) (err error) {
		done, err = doAct(ctx, tx, act)
		if err == nil && act.Nothing(done) {
			err = refusal{errSettled}
		}
		return err
	})
	s.changed(act.Links...)
	if s.cache != nil {
		for _, m := range act.Import {
			s.cache.born(m.Link.Slug)
		}
	}
	if err != nil && !errors.Is(err, errSettled) {
		return shortener.Done{}, shortener.Uncounted(err)
	}
	return done, nil
}

func doAct(ctx context.Context, tx pgx.Tx, act shortener.Act) (done shortener.Done, err error) {
	if act.AcceptClock != "" { // before all else, as everywhere
		if done.Forgotten, err = acceptClock(ctx, tx, act.AcceptClock); err != nil {
			return done, err
		}
	}
	// One act after the other: so their lines are numbered without gaps, and what
	// was found about an entry stays so.
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockAct); err != nil {
		return done, err
	}
	if err := checkEntries(ctx, tx, act.If); err != nil {
		return done, err
	}
	for _, c := range act.Entries {
		if err := changeEntry(ctx, tx, c); err != nil {
			return done, err
		}
	}
	if done.Links, err = actOnLinks(ctx, tx, act); err != nil {
		return done, err
	}
	if err := importLinks(ctx, tx, act.Import); err != nil {
		return done, err
	}
	done.Links += len(act.Import)
	line := act.LineOf(done)
	_, err = tx.Exec(ctx, `INSERT INTO audit (number, at, action, target, reason, note, links)
		SELECT coalesce(max(number), 0) + 1, $1, $2, $3, $4, $5, $6 FROM audit`,
		line.At, []byte(line.Action), []byte(line.Target), []byte(line.Reason), []byte(line.Note), line.Links)
	return done, err
}

func acceptClock(ctx context.Context, tx pgx.Tx, day string) (forgotten string, err error) {
	newest, err := newestDay(ctx, tx, "FOR UPDATE")
	if err != nil {
		return "", err
	}
	if err := quota.CheckClock(day, newest); err == nil {
		return "", nil
	} else if !errors.Is(err, quota.ErrClock) {
		return "", refusal{err}
	}
	_, err = tx.Exec(ctx, `UPDATE state SET newest = ''`)
	return newest, err
}

// checkEntries refuses an act when an entry is not as it was read.
func checkEntries(ctx context.Context, tx pgx.Tx, entries []shortener.Entry) error {
	for _, e := range entries {
		var same bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM entries WHERE kind = $1 AND name = $2 AND value = $3)`,
			string(e.Kind), []byte(e.Name), []byte(e.Value)).Scan(&same)
		if err == nil && !same {
			err = refusal{shortener.ErrChanged}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func changeEntry(ctx context.Context, tx pgx.Tx, c shortener.EntryChange) error {
	const insert = `INSERT INTO entries (kind, name, value) VALUES ($1, $2, $3) ON CONFLICT `
	sql, otherwise := insert+`(kind, name) DO UPDATE SET value = excluded.value`, error(nil)
	switch c.Verb {
	case shortener.AddEntry:
		sql, otherwise = insert+`DO NOTHING`, shortener.ErrEntryExists
	case shortener.ReplaceEntry:
		sql, otherwise = `UPDATE entries SET value = $3 WHERE kind = $1 AND name = $2`, shortener.ErrNoEntry
	case shortener.RemoveEntry, shortener.DropEntry:
		sql = `DELETE FROM entries WHERE kind = $1 AND name = $2 AND $3::bytea IS NOT NULL`
		if c.Verb == shortener.RemoveEntry {
			otherwise = shortener.ErrNoEntry
		}
	}
	tag, err := tx.Exec(ctx, sql, string(c.Kind), []byte(c.Name), []byte(c.Value))
	if err == nil && tag.RowsAffected() == 0 && otherwise != nil {
		err = refusal{otherwise}
	}
	return err
}

// actOnLinks returns how many links have been changed.
func actOnLinks(ctx context.Context, tx pgx.Tx, act shortener.Act) (int, error) {
	if len(act.Links) == 0 {
		return 0, nil
	}
	found, err := lockLinks(ctx, tx, possibleOf(act.Links...))
	if err != nil {
		return 0, err
	}
	var links []visitedLink
	for _, link := range found {
		if act.Means(link.Link) {
			link.Link = act.Apply(link.Link)
			links = append(links, link)
		}
	}
	if len(links) == 0 {
		return 0, nil
	}
	return len(links), put(ctx, tx, links)
}

// importLinks stores links with the visits that they come with, or returns a refusal
// that names all slugs that are taken.
func importLinks(ctx context.Context, tx pgx.Tx, imported []shortener.Managed) error {
	if len(imported) == 0 {
		return nil
	}
	// In the order in which creations store them: so none waits for another in a circle.
	imported = slices.Clone(imported)
	slices.SortFunc(imported, func(a, b shortener.Managed) int { return cmp.Compare(a.Link.Slug, b.Link.Slug) })
	var columns linkArrays
	visits := map[shortener.Slug]shortener.Visits{}
	for _, m := range imported {
		columns.add(visitedLink{m.Link, m.Visited})
		if m.Visits.Any() {
			visits[m.Link.Slug] = m.Visits
		}
	}
	rows, err := tx.Query(ctx, insertLinks, columns.arguments()...)
	if err != nil {
		return err
	}
	stored, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var taken []shortener.Slug
	for _, slug := range columns.slugs {
		if !slices.Contains(stored, slug) {
			taken = append(taken, shortener.Slug(slug))
		}
	}
	if taken != nil {
		return refusal{&shortener.SlugTakenError{Slugs: taken}}
	}
	return addVisits(ctx, tx, visits)
}

// Audit implements [shortener.Store].
func (s *Store) Audit(ctx context.Context, before uint64, n int) ([]shortener.AuditLine, error) {
	if before == 0 || before > math.MaxInt64 {
		before = math.MaxInt64
	}
	return query(ctx, s, "read the audit log", scanAct,
		`SELECT number, at, action, target, reason, note, links FROM audit WHERE number < $1 ORDER BY number DESC LIMIT $2`, int64(before), n)
}

func scanAct(row pgx.CollectableRow) (l shortener.AuditLine, err error) {
	var action, target, reason, note []byte
	err = row.Scan(&l.Number, &l.At, &action, &target, &reason, &note, &l.Links)
	l.At, l.Action, l.Target, l.Reason, l.Note = l.At.UTC(), string(action), string(target), string(reason), string(note)
	return l, err
}

// LinksOf implements [shortener.Store].
func (s *Store) LinksOf(ctx context.Context, key quota.KeyID, before shortener.Slug, n int) ([]shortener.Link, error) {
	behind, args := "", []any{int64(key), n}
	if before != "" {
		link, err := s.Get(ctx, before)
		if err != nil {
			return nil, err
		}
		if link.Key != key {
			return nil, shortener.ErrNotFound
		}
		behind, args = `AND (created_at, slug) < ($3, $4)`, append(args, link.CreatedAt, string(before))
	}
	return s.links(ctx, `WHERE key = $1 AND key <> 0 AND NOT deleted `+behind+` ORDER BY created_at DESC, slug DESC LIMIT $2`, args...)
}

// Scan implements [shortener.Store]. The mark is the last link's slug.
func (s *Store) Scan(ctx context.Context, mark string, n int) (links []shortener.Managed, next string, err error) {
	links, err = query(ctx, s, "read links", scanManaged, `SELECT `+linkColumns+`,
			(SELECT visits FROM clicks WHERE clicks.slug = links.slug)
		FROM links WHERE slug > $1 ORDER BY slug LIMIT $2`, mark, n+1)
	if len(links) > n {
		links = links[:n]
		next = string(links[n-1].Link.Slug)
	}
	return links, next, err
}

func scanManaged(row pgx.CollectableRow) (m shortener.Managed, err error) {
	var raw []byte
	link, err := scanLinkWith(row, &raw)
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &m.Visits)
	}
	m.Link, m.Visited = link.Link, link.visited
	return m, err
}

func (s *Store) links(ctx context.Context, which string, args ...any) ([]shortener.Link, error) {
	return query(ctx, s, "read links", func(row pgx.CollectableRow) (shortener.Link, error) {
		link, err := scanLink(row)
		return link.Link, err
	}, `SELECT `+linkColumns+` FROM links `+which, args...)
}
