// Package pgquota keeps the counters and reservations of package quota inside a
// PostgreSQL transaction of the caller's, so that whatever must not be overdrawn
// and the count that allows it are one commit, for any number of processes.
//
// It promises that [Apply] and [Reserve] count every charge or change nothing, and
// that what cannot be read is never taken for zero. All rows that a transaction
// counts with are locked before anything is decided, in one order that is the same
// for everybody, so that transactions wait for each other and never in a circle.
// Locks are taken in the order reservations, counters: whoever locks rows of other
// tables before these must not lock them after these elsewhere.
//
// It opens, begins and commits nothing: the transaction and its failure are the
// caller's. Call [Init] once, then [Apply] inside each transaction, before the
// caller's own writes. To decide on many demands in one transaction, use a
// [Ledger].
//
// An error that is none of quota's refusals wraps [quota.ErrCannotCount] and the
// driver's: then the transaction must be rolled back, and may be tried again where
// PostgreSQL says that it could not be serialised.
package pgquota

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"snip/quota"
)

//go:embed schema.sql
var schema string

// Init creates the tables and columns that are missing in the connection's schema.
func Init(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, schema)
	return err
}

// Querier reads: a connection, a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Counts returns what the counters hold, in order, and locks nothing: it may be
// used to refuse, never to admit. A missing counter holds nothing; one that cannot
// be read is [quota.ErrCannotCount].
func Counts(ctx context.Context, q Querier, counters []quota.Counter) ([]quota.Count, error) {
	k, err := keysOf(counters)
	if err != nil {
		return nil, err
	}
	counts := make([]quota.Count, len(counters))
	rows, err := q.Query(ctx, `SELECT w.at, c.used, c.held
		FROM unnest($1::text[], $2::text[], $3::bytea[]) WITH ORDINALITY AS w(period, level, subject, at)
		JOIN quota_counters c ON c.period = w.period AND c.level = w.level AND c.subject = w.subject`,
		k.periods, k.levels, k.subjects)
	if err != nil {
		return nil, cannot("read counters", err)
	}
	var at int
	var c quota.Count
	_, err = pgx.ForEachRow(rows, []any{&at, &c.Used, &c.Held}, func() error {
		counts[at-1] = c
		return valid(counters[at-1], c)
	})
	if err != nil {
		return nil, cannot("read counters", err)
	}
	return counts, nil
}

// Check decides as [Apply] would, but on what it reads without a lock, and changes
// nothing. It may be used to refuse, never to admit.
func Check(ctx context.Context, q Querier, charges []quota.Charge) ([]quota.Usage, error) {
	counts, err := Counts(ctx, q, countersIn(charges))
	if err != nil {
		return nil, err
	}
	return quota.Decide(charges, quota.Taken(counts))
}

// Apply decides on the charges by [quota.Decide] and counts them, or returns an
// error and counts nothing.
func Apply(ctx context.Context, tx pgx.Tx, charges []quota.Charge) ([]quota.Usage, error) {
	l, err := Lock(ctx, tx, Wanted{Charges: charges})
	if err != nil {
		return nil, err
	}
	usages, err := l.Apply(charges)
	if err != nil {
		return nil, err
	}
	return usages, l.Write(ctx, tx)
}

// Each calls use with what is used of every counter of one level in a period, in
// the order of their subjects, leaving out those of which nothing is used.
func Each(ctx context.Context, q Querier, level quota.Level, period string, use func(quota.Subject, int64)) error {
	c := quota.Counter{Level: level, Period: period}
	if err := storable(c); err != nil {
		return err
	}
	rows, err := q.Query(ctx, `SELECT subject, used, held FROM quota_counters
		WHERE period = $1 AND level = $2 AND used <> 0 ORDER BY subject`, period, string(level))
	if err != nil {
		return cannot("read counters", err)
	}
	var subject []byte
	var count quota.Count
	_, err = pgx.ForEachRow(rows, []any{&subject, &count.Used, &count.Held}, func() error {
		if err := valid(c, count); err != nil {
			return err
		}
		use(quota.Subject(subject), count.Used)
		return nil
	})
	if err != nil {
		return cannot("read counters", err)
	}
	return nil
}

// Sum is what the counters of one level hold in a period, added up.
type Sum struct {
	Period   string
	Used     int64
	Subjects int64 // of which something is used
	Most     int64 // that is used of one subject
}

// Sums calls use with the sum of each period in which something of a level is used, in
// the order of their labels.
func Sums(ctx context.Context, q Querier, level quota.Level, use func(Sum)) error {
	if err := storable(quota.Counter{Level: level}); err != nil {
		return err
	}
	rows, err := q.Query(ctx, `SELECT period, sum(used)::bigint, count(*), max(used) FROM quota_counters
		WHERE level = $1 AND used > 0 GROUP BY period ORDER BY period`, string(level))
	if err != nil {
		return cannot("add up counters", err)
	}
	var sum Sum
	_, err = pgx.ForEachRow(rows, []any{&sum.Period, &sum.Used, &sum.Subjects, &sum.Most}, func() error {
		use(sum)
		return nil
	})
	if err != nil {
		return cannot("add up counters", err)
	}
	return nil
}

// keys are counters as columns.
type keys struct {
	periods, levels []string
	subjects        [][]byte
}

func (k *keys) add(c quota.Counter) {
	k.periods, k.levels = append(k.periods, c.Period), append(k.levels, string(c.Level))
	k.subjects = append(k.subjects, []byte(c.Subject))
}

func keysOf(counters []quota.Counter) (k keys, err error) {
	for _, c := range counters {
		if err := storable(c); err != nil {
			return k, err
		}
		k.add(c)
	}
	return k, nil
}

func countersIn(charges []quota.Charge) []quota.Counter {
	counters := make([]quota.Counter, len(charges))
	for i, c := range charges {
		counters[i] = c.Counter
	}
	return counters
}

// storable returns an error for what PostgreSQL would refuse as text, which would
// end the transaction for all that is in it.
func storable(c quota.Counter) error {
	for _, text := range []string{string(c.Level), c.Period} {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return fmt.Errorf("%w: %q cannot be stored", quota.ErrInvalidCharge, text)
		}
	}
	return nil
}

// valid returns an error for a stored count that cannot be.
func valid(c quota.Counter, count quota.Count) error {
	if count.Used < 0 || count.Held < 0 || count.Taken() < 0 {
		return fmt.Errorf("%w: the counter at level %s holds %d and %d, which cannot be", quota.ErrCannotCount, c.Level, count.Used, count.Held)
	}
	return nil
}

// cannot makes every fault of the database a kind of [quota.ErrCannotCount].
func cannot(what string, err error) error {
	return fmt.Errorf("%w: %s: %w", quota.ErrCannotCount, what, err)
}
