package pgstore

import (
	"context"
	"math"

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
func (s *Store) Act(ctx context.Context, act shortener.Act) error {
	if err := storableText(act.Reason); err != nil {
		return err
	}
	err := s.update(ctx, "act", func(tx pgx.Tx) error {
		// One act after the other: so their lines are numbered without gaps, and what
		// was found about an entry stays so.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockAct); err != nil {
			return err
		}
		for _, c := range act.Entries {
			if err := changeEntry(ctx, tx, c); err != nil {
				return err
			}
		}
		if err := actOnLinks(ctx, tx, act); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO audit (number, at, action, target, reason, note)
			SELECT coalesce(max(number), 0) + 1, $1, $2, $3, $4, $5 FROM audit`,
			act.Line.At, []byte(act.Line.Action), []byte(act.Line.Target), []byte(act.Line.Reason), []byte(act.Line.Note))
		return err
	})
	s.changed(act.Links...)
	return err
}

func changeEntry(ctx context.Context, tx pgx.Tx, c shortener.EntryChange) error {
	sql, otherwise := `INSERT INTO entries (kind, name, value) VALUES ($1, $2, $3) ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value`, error(nil)
	switch c.Verb {
	case shortener.AddEntry:
		sql, otherwise = `INSERT INTO entries (kind, name, value) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, shortener.ErrEntryExists
	case shortener.ReplaceEntry:
		sql, otherwise = `UPDATE entries SET value = $3 WHERE kind = $1 AND name = $2`, shortener.ErrNoEntry
	case shortener.RemoveEntry:
		sql, otherwise = `DELETE FROM entries WHERE kind = $1 AND name = $2 AND $3::bytea IS NOT NULL`, shortener.ErrNoEntry
	}
	tag, err := tx.Exec(ctx, sql, string(c.Kind), []byte(c.Name), []byte(c.Value))
	if err == nil && tag.RowsAffected() == 0 {
		err = refusal{otherwise}
	}
	return err
}

func actOnLinks(ctx context.Context, tx pgx.Tx, act shortener.Act) error {
	found, err := lockLinks(ctx, tx, possibleOf(act.Links...))
	if err != nil {
		return err
	}
	var links []visitedLink
	for _, link := range found {
		switch {
		case link.Deleted:
			continue
		case act.Delete:
			link.Link = link.Tombstone()
		default:
			link.TakenDown = act.Reason
		}
		links = append(links, link)
	}
	if len(links) == 0 {
		return nil
	}
	return put(ctx, tx, links)
}

// Audit implements [shortener.Store].
func (s *Store) Audit(ctx context.Context, before uint64, n int) ([]shortener.AuditLine, error) {
	if before == 0 || before > math.MaxInt64 {
		before = math.MaxInt64
	}
	return query(ctx, s, "read the audit log", scanAct,
		`SELECT number, at, action, target, reason, note FROM audit WHERE number < $1 ORDER BY number DESC LIMIT $2`, int64(before), n)
}

func scanAct(row pgx.CollectableRow) (l shortener.AuditLine, err error) {
	var action, target, reason, note []byte
	err = row.Scan(&l.Number, &l.At, &action, &target, &reason, &note)
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
func (s *Store) Scan(ctx context.Context, mark string, n int) (links []shortener.Link, next string, err error) {
	links, err = s.links(ctx, `WHERE slug > $1 ORDER BY slug LIMIT $2`, mark, n+1)
	if len(links) > n {
		links = links[:n]
		next = string(links[n-1].Slug)
	}
	return links, next, err
}

func (s *Store) links(ctx context.Context, which string, args ...any) ([]shortener.Link, error) {
	return query(ctx, s, "read links", func(row pgx.CollectableRow) (shortener.Link, error) {
		link, err := scanLink(row)
		return link.Link, err
	}, `SELECT `+linkColumns+` FROM links `+which, args...)
}
