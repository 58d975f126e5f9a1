package pgquota

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"snip/quota"
)

// Secrets calls use with the secret of each period that has one.
func Secrets(ctx context.Context, q Querier, use func(period string, secret quota.Secret) error) error {
	var period string
	var raw []byte
	return each(ctx, q, "read secrets", `SELECT period, secret FROM quota_secrets`, []any{&period, &raw}, func() error {
		secret, err := secretOf(period, raw)
		if err != nil {
			return err
		}
		return use(period, secret)
	})
}

// AllCounts calls use with every counter and what it holds.
func AllCounts(ctx context.Context, q Querier, use func(quota.Counter, quota.Count) error) error {
	var c quota.Counter
	var subject []byte
	var count quota.Count
	return each(ctx, q, "read counters", `SELECT period, level, subject, used, held FROM quota_counters`,
		[]any{&c.Period, (*string)(&c.Level), &subject, &count.Used, &count.Held}, func() error {
			c.Subject = quota.Subject(subject)
			if err := valid(c, count); err != nil {
				return err
			}
			return use(c, count)
		})
}

func each(ctx context.Context, q Querier, what, sql string, into []any, use func() error) error {
	rows, err := q.Query(ctx, sql)
	if err == nil {
		_, err = pgx.ForEachRow(rows, into, use)
	}
	if err != nil {
		return cannot(what, err)
	}
	return nil
}

// Reservations calls use with every reservation.
func Reservations(ctx context.Context, q Querier, use func(quota.Reservation) error) error {
	rows, err := q.Query(ctx, allReservations)
	if err != nil {
		return cannot("read reservations", err)
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanReservation(rows)
		if err == nil {
			err = r.wrong
		}
		if err == nil {
			err = use(r.now)
		}
		if err != nil {
			return cannot("read reservations", err)
		}
	}
	if err := rows.Err(); err != nil {
		return cannot("read reservations", err)
	}
	return nil
}

// PutCounts stores counters that are not there yet, such as another store has kept.
func PutCounts(ctx context.Context, tx pgx.Tx, counters []quota.Counter, counts []quota.Count) error {
	k, err := keysOf(counters)
	if err != nil {
		return err
	}
	var used, held []int64
	for _, c := range counts {
		used, held = append(used, c.Used), append(held, c.Held)
	}
	if _, err := tx.Exec(ctx, `INSERT INTO quota_counters (period, level, subject, used, held)
		SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bigint[], $5::bigint[])`, k.periods, k.levels, k.subjects, used, held); err != nil {
		return cannot("put counters", err)
	}
	return nil
}

// PutReservations stores reservations that are not there yet, pending or settled, as
// they are: what they hold is part of the counters that are put.
func PutReservations(ctx context.Context, tx pgx.Tx, reservations []quota.Reservation) error {
	l := &Ledger{reservations: map[string]*reservation{}}
	if err := l.lockReservations(ctx, tx, Wanted{Reserve: reservations}); err != nil {
		return cannot("put reservations", err)
	}
	for _, r := range reservations {
		row := l.reservations[r.ID]
		if row == nil || !row.isNew {
			return cannot("put reservations", fmt.Errorf("%q is there already, or cannot be stored", r.ID))
		}
		row.now, row.changed = own(r), true
	}
	return l.Write(ctx, tx)
}
