package pgquota

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"snip/quota"
)

// Wanted is what a transaction is going to decide on.
type Wanted struct {
	Charges []quota.Charge      // of all calls of Apply
	Reserve []quota.Reservation // of all calls of Reserve
	Settle  []string            // the ids of all calls of Commit and Release
}

// Ledger is the counters and reservations of one transaction, locked and read.
// Demands are decided on it one after the other, each in view of those before it,
// without a round trip to the database; then [Ledger.Write] writes each row that
// has changed once. So a transaction may decide on many demands of which some are
// refused, and a refusal leaves the others alone.
//
// Nothing is stored before Write. If that fails, the transaction must be rolled
// back.
type Ledger struct {
	counters     map[quota.Counter]*counter
	reservations map[string]*reservation
}

// counter is a row of counters.
type counter struct {
	stored, now quota.Count
	wrong       error // why it cannot be read
}

// Lock locks and reads what is wanted. Counters that are missing are put there at
// zero first, and reservations as new, since what is not there cannot be locked.
// What cannot be stored or read is refused when it is asked for, without harm to
// the rest.
func Lock(ctx context.Context, tx pgx.Tx, w Wanted) (*Ledger, error) {
	l := &Ledger{counters: map[quota.Counter]*counter{}, reservations: map[string]*reservation{}}
	if err := l.lockReservations(ctx, tx, w); err != nil {
		return nil, cannot("lock reservations", err)
	}
	if err := l.lockCounters(ctx, tx, w); err != nil {
		return nil, cannot("lock counters", err)
	}
	return l, nil
}

func (l *Ledger) lockCounters(ctx context.Context, tx pgx.Tx, w Wanted) error {
	charged, known := map[quota.Counter]bool{}, map[quota.Counter]bool{}
	want := func(into map[quota.Counter]bool, charges []quota.Charge) {
		for _, c := range charges {
			if storable(c.Counter) == nil {
				into[c.Counter] = true
			}
		}
	}
	want(charged, w.Charges)
	for _, r := range w.Reserve {
		if r.Validate() == nil {
			want(charged, r.Charges)
		}
	}
	maps.Copy(known, charged)
	for _, r := range l.reservations {
		want(known, r.now.Charges) // missing ones were swept, and stay so
	}
	if len(known) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	if len(charged) > 0 {
		k := sorted(charged)
		batch.Queue(`INSERT INTO quota_counters (period, level, subject)
			SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[]) ON CONFLICT DO NOTHING`, k.periods, k.levels, k.subjects)
	}
	k := sorted(known)
	batch.Queue(`SELECT c.period, c.level, c.subject, c.used, c.held
		FROM unnest($1::text[], $2::text[], $3::bytea[]) AS w(period, level, subject)
		JOIN quota_counters c ON c.period = w.period AND c.level = w.level AND c.subject = w.subject
		ORDER BY c.period, c.level, c.subject
		FOR UPDATE OF c`, k.periods, k.levels, k.subjects).Query(func(rows pgx.Rows) error {
		var c quota.Counter
		var subject []byte
		var count quota.Count
		_, err := pgx.ForEachRow(rows, []any{&c.Period, (*string)(&c.Level), &subject, &count.Used, &count.Held}, func() error {
			c.Subject = quota.Subject(subject)
			l.counters[c] = &counter{stored: count, now: count, wrong: valid(c, count)}
			return nil
		})
		return err
	})
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	for c := range charged {
		if l.counters[c] == nil {
			return fmt.Errorf("the counter at level %s was removed meanwhile", c.Level)
		}
	}
	return nil
}

// sorted returns counters in the order in which they are locked.
func sorted(counters map[quota.Counter]bool) (k keys) {
	order := func(a, b quota.Counter) int {
		return cmp.Or(cmp.Compare(a.Period, b.Period), cmp.Compare(a.Level, b.Level), cmp.Compare(a.Subject, b.Subject))
	}
	for _, c := range slices.SortedFunc(maps.Keys(counters), order) {
		k.add(c)
	}
	return k
}

// counts returns what the counters of the charges hold now.
func (l *Ledger) counts(charges []quota.Charge) ([]quota.Count, error) {
	counts := make([]quota.Count, len(charges))
	for i, c := range charges {
		if err := storable(c.Counter); err != nil {
			return nil, err
		}
		row := l.counters[c.Counter]
		if row == nil {
			return nil, errNotLocked
		}
		if row.wrong != nil {
			return nil, row.wrong
		}
		counts[i] = row.now
	}
	return counts, nil
}

var errNotLocked = fmt.Errorf("%w: it was not asked for when the ledger was locked", quota.ErrCannotCount)

// Check decides as [Ledger.Apply] would and counts nothing.
func (l *Ledger) Check(charges []quota.Charge) ([]quota.Usage, error) {
	counts, err := l.counts(charges)
	if err != nil {
		return nil, err
	}
	return quota.Decide(charges, quota.Taken(counts))
}

// Apply decides on the charges by [quota.Decide] and counts them, or returns an
// error and counts nothing.
func (l *Ledger) Apply(charges []quota.Charge) ([]quota.Usage, error) {
	usages, err := l.Check(charges)
	if err != nil {
		return nil, err
	}
	for _, c := range charges {
		l.counters[c.Counter].now.Used += c.Cost
	}
	return usages, nil
}

// Write writes what has changed. It is called once, after the last demand.
func (l *Ledger) Write(ctx context.Context, tx pgx.Tx) error {
	batch := &pgx.Batch{}
	l.queueCounters(batch)
	l.queueReservations(batch)
	if batch.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return cannot("write counters", err)
	}
	return nil
}

// queueCounters writes each counter that has changed where it holds what it held
// when it was locked. Nobody else can have changed it, so a row that is passed over
// is a fault, and fails the transaction.
func (l *Ledger) queueCounters(batch *pgx.Batch) {
	var k keys
	var used, held, wasUsed, wasHeld []int64
	for c, row := range l.counters {
		if row.now == row.stored {
			continue
		}
		k.add(c)
		used, held = append(used, row.now.Used), append(held, row.now.Held)
		wasUsed, wasHeld = append(wasUsed, row.stored.Used), append(wasHeld, row.stored.Held)
	}
	if used == nil {
		return
	}
	queueExactly(batch, len(used), `UPDATE quota_counters c SET used = w.used, held = w.held
		FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
			AS w(period, level, subject, used, held, was_used, was_held)
		WHERE c.period = w.period AND c.level = w.level AND c.subject = w.subject
			AND c.used = w.was_used AND c.held = w.was_held`,
		k.periods, k.levels, k.subjects, used, held, wasUsed, wasHeld)
}

var errRowsDiffer = errors.New("rows have changed under their locks")

// queueExactly queues a statement that must meet n rows.
func queueExactly(batch *pgx.Batch, n int, sql string, args ...any) {
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		rows.Close()
		if err := rows.Err(); err != nil {
			return err
		}
		if rows.CommandTag().RowsAffected() != int64(n) {
			return errRowsDiffer
		}
		return nil
	})
}
