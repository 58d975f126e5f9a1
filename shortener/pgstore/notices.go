package pgstore

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/quota/pgquota"
	"snip/shortener"
)

// Post implements [shortener.Store].
func (s *Store) Post(ctx context.Context, n shortener.Notice) error {
	if err := storableText(n.ID, n.Kind, n.Text); err != nil {
		return err
	}
	return s.update(ctx, "keep a notice", func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		if err := queueNotices(batch, []shortener.Notice{n}); err != nil {
			return err
		}
		return tx.SendBatch(ctx, batch).Close()
	})
}

// queueNotices keeps notices unless one of the same ID was kept, and forgets those
// that were delivered the day before yesterday or earlier.
func queueNotices(batch *pgx.Batch, notices []shortener.Notice) error {
	notices = slices.SortedFunc(slices.Values(notices), func(a, b shortener.Notice) int { return cmp.Compare(a.ID, b.ID) })
	for _, n := range notices {
		day, _, _ := strings.Cut(n.ID, "/")
		oldest, err := quota.DayBefore(day)
		if err != nil {
			return err
		}
		// It waits for nobody, as the other removals.
		batch.Queue(`DELETE FROM outbox WHERE id = ANY(ARRAY(SELECT id FROM outbox WHERE delivered AND id < $1 FOR UPDATE SKIP LOCKED))`, oldest)
		batch.Queue(`INSERT INTO outbox (id, at, kind, message) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, n.ID, n.At, n.Kind, n.Text)
	}
	return nil
}

// Notices implements [shortener.Store].
func (s *Store) Notices(ctx context.Context, n int) ([]shortener.Notice, error) {
	return query(ctx, s, "read notices", func(row pgx.CollectableRow) (n shortener.Notice, err error) {
		err = row.Scan(&n.ID, &n.At, &n.Kind, &n.Text)
		n.At = n.At.UTC()
		return n, err
	}, `SELECT id, at, kind, message FROM outbox WHERE NOT delivered ORDER BY at, id LIMIT $1`, n)
}

// Delivered implements [shortener.Store].
func (s *Store) Delivered(ctx context.Context, id string) error {
	if storableText(id) != nil {
		return nil // no notice has it
	}
	return s.update(ctx, "deliver a notice", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE outbox SET delivered = true, kind = '', message = '' WHERE id = $1`, id)
		return err
	})
}

// Tally implements [shortener.Store].
func (s *Store) Tally(ctx context.Context) ([]shortener.DayRecord, error) { return tally(ctx, s.pool) }

func tally(ctx context.Context, q pgquota.Querier) (records []shortener.DayRecord, err error) {
	err = pgquota.Sums(ctx, q, quota.LevelClient, func(sum pgquota.Sum) {
		if quota.IsDay(sum.Period) {
			records = append(records, shortener.DayRecord{Day: sum.Period, Created: sum.Used, Clients: sum.Subjects, Busiest: sum.Most})
		}
	})
	return records, err
}

// Busiest implements [shortener.Store].
func (s *Store) Busiest(ctx context.Context, day string, level quota.Level, n int) (counts []shortener.Count, err error) {
	err = pgquota.Each(ctx, s.pool, level, day, func(subject quota.Subject, used int64) {
		counts = append(counts, shortener.Count{Subject: subject, Used: used})
	})
	slices.SortFunc(counts, shortener.BusiestFirst)
	return counts[:min(n, len(counts))], err
}

const selectHistory = `SELECT day, created, clients, busiest, refused, hours FROM history `

func scanDay(row pgx.CollectableRow) (r shortener.DayRecord, err error) {
	var hours []int64
	err = row.Scan(&r.Day, &r.Created, &r.Clients, &r.Busiest, &r.Refused, &hours)
	copy(r.Hours[:], hours)
	return r, err
}

// AddHistory implements [shortener.Store].
func (s *Store) AddHistory(ctx context.Context, r shortener.DayRecord) error {
	return s.update(ctx, "keep the history of a day", func(tx pgx.Tx) error { return addHistory(ctx, tx, r) })
}

func addHistory(ctx context.Context, tx pgx.Tx, r shortener.DayRecord) error {
	if _, err := tx.Exec(ctx, `INSERT INTO history (day) VALUES ($1) ON CONFLICT DO NOTHING`, r.Day); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, selectHistory+`WHERE day = $1 FOR UPDATE`, r.Day)
	if err != nil {
		return err
	}
	sum, err := pgx.CollectExactlyOneRow(rows, scanDay)
	if err != nil {
		return err
	}
	sum = sum.Add(r)
	refused, err := json.Marshal(sum.Refused)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE history SET created = $2, clients = $3, busiest = $4, refused = $5, hours = $6 WHERE day = $1`,
		r.Day, sum.Created, sum.Clients, sum.Busiest, refused, sum.Hours[:])
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM history WHERE day = ANY(ARRAY(SELECT day FROM history
			WHERE day < (SELECT min(day) FROM (SELECT day FROM history ORDER BY day DESC LIMIT $1) latest)
			FOR UPDATE SKIP LOCKED))`, shortener.HistoryDays)
	return err
}

// History implements [shortener.Store].
func (s *Store) History(ctx context.Context, n int) ([]shortener.DayRecord, error) {
	return query(ctx, s, "read the history", scanDay, selectHistory+`ORDER BY day DESC LIMIT $1`, n)
}
