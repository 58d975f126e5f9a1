package pgstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/quota/pgquota"
	"snip/shortener"
)

// operation is a demand that is decided on in a batch with others.
type operation struct {
	wants    pgquota.Wanted
	creation *shortener.Creation // nil for a reservation's
	decide   func(*work) error   // checks first and changes last; may run again, on other work
}

// work is a batch under way: what its operations decide on, each in view of those
// before it, and what is to be written.
type work struct {
	ledger  *pgquota.Ledger
	newest  string
	taken   map[shortener.Slug]bool
	answers map[shortener.AnswerRef]shortener.Answer

	links    []shortener.Link
	kept     map[shortener.AnswerRef]shortener.Answer
	outdated []shortener.AnswerRef // to make room for what is kept
	notices  []shortener.Notice
}

// Create implements [shortener.Store].
func (s *Store) Create(ctx context.Context, c shortener.Creation) error {
	for _, link := range c.Links {
		if err := storable(link); err != nil {
			return err
		}
	}
	c.Links = slices.Clone(c.Links) // the caller's may change while a withdrawn one is on its way
	return shortener.Uncounted(s.creations.do(ctx, creating(c)))
}

func creating(c shortener.Creation) operation {
	return operation{
		wants:    pgquota.Wanted{Charges: c.Charges},
		creation: &c,
		decide:   func(w *work) error { return w.create(c) },
	}
}

// create is the one place where a link and its count meet. Nothing is changed
// before everything has been checked.
func (w *work) create(c shortener.Creation) error {
	if err := quota.CheckClock(c.Day, w.newest); err != nil {
		return err
	}
	if c.Answer != nil {
		for _, ref := range c.Replays {
			if a, ok := w.answers[ref]; ok && a.Holds(c.Answer.At) {
				return &shortener.ReplayError{Answer: a}
			}
		}
	}
	var taken []shortener.Slug
	for _, link := range c.Links {
		if w.taken[link.Slug] {
			taken = append(taken, link.Slug)
		}
	}
	if taken != nil {
		// Whoever has no quota left cannot learn which slugs exist.
		if _, err := w.ledger.Check(c.Charges); err != nil {
			return err
		}
		return &shortener.SlugTakenError{Slugs: taken}
	}
	usages, err := w.ledger.Apply(c.Charges)
	if err != nil {
		return err
	}
	for _, link := range c.Links {
		w.taken[link.Slug] = true
		w.links = append(w.links, link)
	}
	if c.Answer != nil {
		ref := c.Answer.AnswerRef
		if _, there := w.answers[ref]; there {
			w.outdated = append(w.outdated, ref)
		}
		w.answers[ref], w.kept[ref] = *c.Answer, *c.Answer
	}
	if n, ok := shortener.BudgetNotice(c, usages); ok {
		w.notices = append(w.notices, n)
	}
	w.newest = max(w.newest, c.Day)
	return nil
}

// commit decides on the operations in one transaction and returns the results.
func (s *Store) commit(operations []operation) (results []error, err error) {
	newDay := false
	lock := "FOR SHARE" // creations of one day do not wait for each other here
	err = s.writers[0].transact(func(ctx context.Context, tx pgx.Tx) error {
		w, err := begin(ctx, tx, operations, lock)
		if err != nil {
			return err
		}
		before := w.newest
		results = results[:0]
		done := false
		for _, op := range operations {
			err := op.decide(w)
			results, done = append(results, err), done || err == nil
		}
		if !done {
			return errNothing
		}
		if newDay = w.newest != before; newDay && lock != "FOR UPDATE" {
			lock = "FOR UPDATE"
			return errAgain
		}
		return w.write(ctx, tx, newDay)
	})
	if s.cache != nil {
		for _, op := range operations {
			if op.creation != nil {
				for _, link := range op.creation.Links {
					s.cache.born(link.Slug)
				}
			}
		}
	}
	if err == nil && newDay {
		s.sweepSoon()
	}
	return results, err
}

// begin locks and reads what the operations decide on. The order of the locks is
// the same for everybody: the newest day, reservations, counters, links, answers,
// notices.
func begin(ctx context.Context, tx pgx.Tx, operations []operation, lock string) (*work, error) {
	w := &work{
		taken:   map[shortener.Slug]bool{},
		answers: map[shortener.AnswerRef]shortener.Answer{}, kept: map[shortener.AnswerRef]shortener.Answer{},
	}
	var wanted pgquota.Wanted
	var slugs []string
	var refs answerArrays
	creating := false
	for _, op := range operations {
		wanted.Charges = append(wanted.Charges, op.wants.Charges...)
		wanted.Reserve = append(wanted.Reserve, op.wants.Reserve...)
		wanted.Settle = append(wanted.Settle, op.wants.Settle...)
		if op.creation == nil {
			continue
		}
		creating = true
		for _, link := range op.creation.Links {
			slugs = append(slugs, string(link.Slug))
		}
		refs.refer(op.creation.Replays...)
		if op.creation.Answer != nil {
			refs.refer(op.creation.Answer.AnswerRef)
		}
	}
	var err error
	if creating {
		if w.newest, err = newestDay(ctx, tx, lock); err != nil {
			return nil, fmt.Errorf("%w: read the newest day: %w", quota.ErrCannotCount, err)
		}
	}
	if w.ledger, err = pgquota.Lock(ctx, tx, wanted); err != nil {
		return nil, err
	}
	if !creating {
		return w, nil
	}
	batch := &pgx.Batch{}
	batch.Queue(`SELECT slug FROM links WHERE slug = ANY($1)`, slugs).Query(func(rows pgx.Rows) error {
		var slug string
		_, err := pgx.ForEachRow(rows, []any{&slug}, func() error {
			w.taken[shortener.Slug(slug)] = true
			return nil
		})
		return err
	})
	if refs.ids != nil {
		batch.Queue(selectAnswers, refs.days, refs.ids).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, scanAnswer)
			for _, a := range found {
				w.answers[a.AnswerRef] = a
			}
			return err
		})
	}
	return w, tx.SendBatch(ctx, batch).Close()
}

// write stores what was decided. Where somebody else has taken a slug or given an
// answer since it was read, all is decided again, in view of that.
func (w *work) write(ctx context.Context, tx pgx.Tx, newDay bool) error {
	if err := w.ledger.Write(ctx, tx); err != nil {
		return err
	}
	batch := &pgx.Batch{}
	if len(w.links) > 0 {
		slices.SortFunc(w.links, func(a, b shortener.Link) int { return cmp.Compare(a.Slug, b.Slug) })
		var columns linkArrays
		for _, link := range w.links {
			columns.add(visitedLink{Link: link})
		}
		queueAll(batch, len(w.links), insertLinks, columns.arguments()...)
	}
	queueAnswers(batch, w.kept, w.outdated)
	if err := queueNotices(batch, w.notices); err != nil {
		return err
	}
	if newDay {
		batch.Queue(`UPDATE state SET newest = $1`, w.newest)
	}
	return tx.SendBatch(ctx, batch).Close()
}

// insertLinks stores links and returns the slugs of those that it has stored: of the
// others, the slugs are taken.
const insertLinks = `INSERT INTO links (` + linkColumns + `) SELECT * FROM ` + rows + ` ON CONFLICT DO NOTHING RETURNING slug`

// queueAll queues a statement that returns a row for each of n that it has stored.
// Those that it has not are somebody else's by now.
func queueAll(batch *pgx.Batch, n int, sql string, args ...any) {
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		stored := 0
		for rows.Next() {
			stored++
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if stored != n {
			return errAgain
		}
		return nil
	})
}
