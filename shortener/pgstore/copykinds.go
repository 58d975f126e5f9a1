package pgstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/quota/pgquota"
	"snip/shortener"
)

// kindsOf is all that is copied, in this order.
func kindsOf(from shortener.Contents) []kind {
	return []kind{
		kindOf("links", from.Links, putLinks, readAll(`SELECT `+linkColumns+` FROM links`, scanKeptLink)),
		kindOf("visits", from.Visits, putAll(`INSERT INTO clicks (slug, visits) VALUES ($1, $2)`, visitsRow), readAll(`SELECT slug, visits FROM clicks`, scanVisits)),
		kindOf("secrets", from.Secrets, putSecrets, readSecrets),
		kindOf("counters", from.Counters, putCounters, readCounters),
		kindOf("reservations", from.Reservations, pgquota.PutReservations, pgquota.Reservations),
		kindOf("answers", from.Answers, putAll(`INSERT INTO answers (day, id, at, sealed) VALUES ($1, $2, $3, $4)`, answerRow),
			readAll(`SELECT day, id, at, sealed FROM answers`, scanAnswer)),
		kindOf("entries", from.Entries, putAll(`INSERT INTO entries (kind, name, value) VALUES ($1, $2, $3)`, entryRow),
			readAll(`SELECT kind, name, value FROM entries`, scanEntry)),
		kindOf("acts", from.Acts, putAll(`INSERT INTO audit (number, at, action, target, reason, note, links) VALUES ($1, $2, $3, $4, $5, $6, $7)`, actRow),
			readAll(`SELECT number, at, action, target, reason, note, links FROM audit`, scanAct)),
		kindOf("notices", from.Notices, putAll(`INSERT INTO outbox (id, at, kind, message, delivered) VALUES ($1, $2, $3, $4, $5)`, noticeRow),
			readAll(`SELECT id, at, kind, message, delivered FROM outbox`, scanKeptNotice)),
		kindOf("history", from.History, putAll(`INSERT INTO history (day, created, clients, busiest, refused, hours) VALUES ($1, $2, $3, $4, $5, $6)`, dayRow),
			readAll(selectHistory, scanDay)),
	}
}

// putAll returns what stores things by a statement for each.
func putAll[T any](sql string, row func(T) ([]any, error)) func(context.Context, pgx.Tx, []T) error {
	return func(ctx context.Context, tx pgx.Tx, things []T) error {
		batch := &pgx.Batch{}
		for _, thing := range things {
			values, err := row(thing)
			if err != nil {
				return err
			}
			batch.Queue(sql, values...)
		}
		return tx.SendBatch(ctx, batch).Close()
	}
}

// readAll returns what reads rows one after the other.
func readAll[T any](sql string, scan pgx.RowToFunc[T]) func(context.Context, pgquota.Querier, func(T) error) error {
	return func(ctx context.Context, q pgquota.Querier, use func(T) error) error {
		rows, err := q.Query(ctx, sql)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			thing, err := scan(rows)
			if err == nil {
				err = use(thing)
			}
			if err != nil {
				return err
			}
		}
		return rows.Err()
	}
}

func putLinks(ctx context.Context, tx pgx.Tx, links []shortener.KeptLink) error {
	var columns linkArrays
	for _, link := range links {
		if err := storable(link.Link); err != nil {
			return fmt.Errorf("link %s: %w", link.Slug, err)
		}
		columns.add(visitedLink{link.Link, link.Visited})
	}
	_, err := tx.Exec(ctx, `INSERT INTO links (`+linkColumns+`) SELECT * FROM `+rows, columns.arguments()...)
	return err
}

func scanKeptLink(row pgx.CollectableRow) (shortener.KeptLink, error) {
	link, err := scanLink(row)
	return shortener.KeptLink{Link: link.Link, Visited: link.visited}, err
}

func visitsRow(v shortener.KeptVisits) ([]any, error) {
	raw, err := json.Marshal(v.Visits)
	return []any{string(v.Slug), raw}, err
}

func scanVisits(row pgx.CollectableRow) (v shortener.KeptVisits, err error) {
	var raw []byte
	if err := row.Scan((*string)(&v.Slug), &raw); err != nil {
		return v, err
	}
	return v, json.Unmarshal(raw, &v.Visits)
}

func putSecrets(ctx context.Context, tx pgx.Tx, secrets []shortener.KeptSecret) error {
	for _, s := range secrets {
		if _, err := pgquota.PutSecret(ctx, tx, s.Period, s.Secret); err != nil {
			return err
		}
	}
	return nil
}

func readSecrets(ctx context.Context, q pgquota.Querier, use func(shortener.KeptSecret) error) error {
	return pgquota.Secrets(ctx, q, func(period string, secret quota.Secret) error {
		return use(shortener.KeptSecret{Period: period, Secret: secret})
	})
}

func putCounters(ctx context.Context, tx pgx.Tx, kept []shortener.KeptCounter) error {
	var counters []quota.Counter
	var counts []quota.Count
	for _, k := range kept {
		counters, counts = append(counters, k.Counter), append(counts, k.Count)
	}
	return pgquota.PutCounts(ctx, tx, counters, counts)
}

func readCounters(ctx context.Context, q pgquota.Querier, use func(shortener.KeptCounter) error) error {
	return pgquota.AllCounts(ctx, q, func(counter quota.Counter, count quota.Count) error {
		return use(shortener.KeptCounter{Counter: counter, Count: count})
	})
}

func answerRow(a shortener.Answer) ([]any, error) {
	return []any{a.Day, bytes.Clone(a.ID[:]), a.At, a.Sealed}, nil
}

func entryRow(e shortener.Entry) ([]any, error) {
	return []any{string(e.Kind), []byte(e.Name), []byte(e.Value)}, storableText(string(e.Kind))
}

func scanEntry(row pgx.CollectableRow) (e shortener.Entry, err error) {
	var name, value []byte
	err = row.Scan((*string)(&e.Kind), &name, &value)
	e.Name, e.Value = string(name), string(value)
	return e, err
}

func actRow(l shortener.AuditLine) ([]any, error) {
	if l.Number > math.MaxInt64 {
		return nil, fmt.Errorf("audit line %d has no such number", l.Number)
	}
	return []any{int64(l.Number), l.At, []byte(l.Action), []byte(l.Target), []byte(l.Reason), []byte(l.Note), l.Links}, nil
}

func noticeRow(n shortener.KeptNotice) ([]any, error) {
	return []any{n.ID, n.At, n.Kind, n.Text, n.Delivered}, storableText(n.ID, n.Kind, n.Text)
}

// scanKeptNotice leaves out what is left of one that was delivered.
func scanKeptNotice(row pgx.CollectableRow) (n shortener.KeptNotice, err error) {
	err = row.Scan(&n.ID, &n.At, &n.Kind, &n.Text, &n.Delivered)
	n.At = n.At.UTC()
	if n.Delivered {
		n.Notice = shortener.Notice{ID: n.ID}
	}
	return n, err
}

func dayRow(r shortener.DayRecord) ([]any, error) {
	refused := r.Refused
	if refused == nil {
		refused = map[quota.Level]int64{}
	}
	raw, err := json.Marshal(refused)
	return []any{r.Day, r.Created, r.Clients, r.Busiest, raw, r.Hours[:]}, err
}
