package pgquota

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"snip/quota"
)

// reservation is a row of reservations. Where it has no state, it is new and is
// there only to be locked.
type reservation struct {
	now     quota.Reservation
	wrong   error // why it cannot be read
	isNew   bool  // as it is stored
	changed bool
	gone    bool // to be removed
}

// Reserve holds what the reservation may cost, by [quota.Reservation.Reserve], and
// returns it as pending. Where one of its id is there it returns that, pending or
// settled, with already true, and holds nothing more: whoever has lost the answer
// to a first attempt goes on with what it began. With an error nothing is held and
// nothing of it is left.
func Reserve(ctx context.Context, tx pgx.Tx, r quota.Reservation) (stored quota.Reservation, already bool, err error) {
	l, err := Lock(ctx, tx, Wanted{Reserve: []quota.Reservation{r}})
	if err != nil {
		return r, false, err
	}
	stored, already, err = l.Reserve(r)
	// A refusal has its row to remove.
	if writeErr := l.Write(ctx, tx); writeErr != nil {
		return stored, false, writeErr
	}
	return stored, already, err
}

// Commit counts what the work has cost, as [quota.Reservation.Commit] has it, in
// the windows in which it was reserved. What was settled before stays as it is, and
// is returned. counts are what the counters of its charges hold afterwards. Errors
// are as for [Reserve], and [quota.ErrNoReservation].
func Commit(ctx context.Context, tx pgx.Tx, id string, actual []int64, at time.Time) (r quota.Reservation, counts []quota.Count, err error) {
	return settle(ctx, tx, id, func(l *Ledger) (quota.Reservation, []quota.Count, error) { return l.Commit(id, actual, at) })
}

// Release gives back what was reserved. It is otherwise like [Commit].
func Release(ctx context.Context, tx pgx.Tx, id string, at time.Time) (quota.Reservation, []quota.Count, error) {
	return settle(ctx, tx, id, func(l *Ledger) (quota.Reservation, []quota.Count, error) { return l.Release(id, at) })
}

func settle(ctx context.Context, tx pgx.Tx, id string, become func(*Ledger) (quota.Reservation, []quota.Count, error)) (quota.Reservation, []quota.Count, error) {
	l, err := Lock(ctx, tx, Wanted{Settle: []string{id}})
	if err != nil {
		return quota.Reservation{}, nil, err
	}
	r, counts, err := become(l)
	if err != nil {
		return r, counts, err
	}
	return r, counts, l.Write(ctx, tx)
}

// SettleExpired settles up to limit reservations, one at least, that have expired at
// the instant now, each as it says itself, and forgets those that were settled long
// ago. It calls settled, unless that is nil, with each of the first, and what its
// counters hold afterwards. It reports whether there may be more; calling it until it
// reports false does all there is to do. Errors are as for [Reserve], and those of
// settled.
//
// Those that cannot be read or settled stay as they are and keep what they hold. What
// is wrong with them is the error of the call that finds nothing else to do, as
// [quota.ErrCannotCount]: nothing is lost when its transaction is rolled back.
func SettleExpired(ctx context.Context, tx pgx.Tx, now time.Time, limit int, settled func(quota.Reservation, []quota.Count) error) (bool, error) {
	var wrong []error
	for {
		found, stuck, err := settleSome(ctx, tx, now, len(wrong), max(1, limit), settled)
		switch {
		case err != nil:
			return false, err
		case found > len(stuck):
			return true, nil
		case found == 0:
			return false, errors.Join(wrong...)
		}
		wrong = append(wrong, stuck...) // the next ones lie behind them
	}
}

// settleSome is SettleExpired for those behind the first that are due. It returns how
// many it has found, and what is wrong with those that it could not settle.
func settleSome(ctx context.Context, tx pgx.Tx, now time.Time, behind, limit int, settled func(quota.Reservation, []quota.Count) error) (found int, wrong []error, err error) {
	rows, err := tx.Query(ctx, `SELECT id FROM quota_reservations WHERE due <= $1 ORDER BY due, id OFFSET $2 LIMIT $3`, now, behind, limit)
	if err != nil {
		return 0, nil, cannot("look for expired reservations", err)
	}
	ids, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var id []byte
		err := row.Scan(&id)
		return string(id), err
	})
	if err != nil {
		return 0, nil, cannot("look for expired reservations", err)
	}
	l, err := Lock(ctx, tx, Wanted{Settle: ids})
	if err != nil {
		return 0, nil, err
	}
	done := map[string][]quota.Count{}
	for _, id := range ids {
		row := l.reservations[id]
		switch {
		case row == nil: // another was first
		case row.wrong != nil:
			wrong = append(wrong, row.wrong)
		case row.isNew, row.now.State != quota.Pending && !row.now.KeptUntil().After(now):
			row.gone = true
		case row.now.State == quota.Pending && !row.now.ExpiresAt.After(now):
			_, counts, err := l.settle(id, func(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
				return r.Expire(counts, now)
			})
			if err != nil {
				wrong = append(wrong, err)
				continue
			}
			done[id] = counts
		}
	}
	if err := l.Write(ctx, tx); err != nil {
		return 0, nil, err
	}
	for _, id := range ids {
		if counts, ok := done[id]; ok && settled != nil {
			if err := settled(own(l.reservations[id].now), counts); err != nil {
				return 0, nil, err
			}
		}
	}
	return len(ids), wrong, nil
}

// List returns up to n reservations, in the order in which something is to be done
// about them: settle those that are pending when they expire, and forget the others.
// It locks nothing. One that cannot be read is [quota.ErrCannotCount].
func List(ctx context.Context, q Querier, n int) ([]quota.Reservation, error) {
	rows, err := q.Query(ctx, allReservations+` WHERE state <> 'new' ORDER BY due, id LIMIT $1`, n)
	if err != nil {
		return nil, cannot("list reservations", err)
	}
	found, err := pgx.CollectRows(rows, scanReservation)
	if err != nil {
		return nil, cannot("list reservations", err)
	}
	list := make([]quota.Reservation, len(found))
	for i, row := range found {
		if row.wrong != nil {
			return nil, row.wrong
		}
		list[i] = row.now
	}
	return list, nil
}

// Reservation returns the reservation that has the id, or [quota.ErrNoReservation].
// It locks nothing.
func Reservation(ctx context.Context, q Querier, id string) (quota.Reservation, error) {
	rows, err := q.Query(ctx, selectReservations+` AND state <> 'new'`, [][]byte{[]byte(id)})
	if err != nil {
		return quota.Reservation{}, cannot("read a reservation", err)
	}
	found, err := pgx.CollectRows(rows, scanReservation)
	switch {
	case err != nil:
		return quota.Reservation{}, cannot("read a reservation", err)
	case len(found) == 0:
		return quota.Reservation{}, quota.ErrNoReservation
	}
	return found[0].now, found[0].wrong
}

// Reserve is the function of that name, on the ledger.
func (l *Ledger) Reserve(r quota.Reservation) (stored quota.Reservation, already bool, err error) {
	if err := r.Validate(); err != nil {
		return r, false, err
	}
	row := l.reservations[r.ID]
	switch {
	case row == nil:
		return r, false, errNotLocked
	case row.wrong != nil:
		return r, false, row.wrong
	case row.now.State != "":
		return own(row.now), true, nil
	}
	counts, err := l.counts(r.Charges)
	if err != nil {
		return r, false, err
	}
	r, after, err := r.Reserve(counts)
	if err != nil {
		return r, false, err
	}
	l.put(r, after)
	return own(r), false, nil
}

// Reservation is the function of that name, on the ledger.
func (l *Ledger) Reservation(id string) (quota.Reservation, error) {
	row := l.reservations[id]
	switch {
	case row == nil || row.wrong == nil && row.now.State == "":
		return quota.Reservation{}, quota.ErrNoReservation
	case row.wrong != nil:
		return quota.Reservation{}, row.wrong
	}
	return own(row.now), nil
}

// Commit is the function of that name, on the ledger.
func (l *Ledger) Commit(id string, actual []int64, at time.Time) (quota.Reservation, []quota.Count, error) {
	return l.settle(id, func(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
		return r.Commit(counts, actual, at)
	})
}

// Release is the function of that name, on the ledger.
func (l *Ledger) Release(id string, at time.Time) (quota.Reservation, []quota.Count, error) {
	return l.settle(id, func(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
		return r.Release(counts, at)
	})
}

// settle makes of a reservation that is not settled what become says.
func (l *Ledger) settle(id string, become func(quota.Reservation, []quota.Count) (quota.Reservation, []quota.Count, error)) (quota.Reservation, []quota.Count, error) {
	r, err := l.Reservation(id)
	if err != nil {
		return r, nil, err
	}
	counts := make([]quota.Count, len(r.Charges))
	for i, c := range r.Charges {
		switch at := l.counters[c.Counter]; {
		case at != nil && at.wrong != nil:
			return quota.Reservation{}, nil, at.wrong
		case at != nil:
			counts[i] = at.now
		case !r.Settled():
			// What a window that has been swept held went with it, and decides nothing more.
			counts[i] = r.Stands(i)
		}
	}
	settled, after, err := become(r, counts)
	if err != nil || r.Settled() {
		return settled, after, err
	}
	l.put(settled, after)
	return own(settled), after, nil
}

// put keeps a reservation and what its counters hold with it.
func (l *Ledger) put(r quota.Reservation, counts []quota.Count) {
	row := l.reservations[r.ID]
	row.now, row.changed = own(r), true
	for i, c := range r.Charges {
		if at := l.counters[c.Counter]; at != nil {
			at.now = counts[i]
		}
	}
}

// own returns a reservation that shares no memory with the one given.
func own(r quota.Reservation) quota.Reservation {
	r.Charges, r.Actual = slices.Clone(r.Charges), slices.Clone(r.Actual)
	return r
}

func (l *Ledger) lockReservations(ctx context.Context, tx pgx.Tx, w Wanted) error {
	var reserved, all [][]byte
	for _, r := range w.Reserve {
		if r.Validate() == nil {
			reserved = append(reserved, []byte(r.ID))
		}
	}
	for _, id := range w.Settle {
		all = append(all, []byte(id))
	}
	all = append(all, reserved...)
	if len(all) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	if len(reserved) > 0 {
		slices.SortFunc(reserved, bytes.Compare)
		batch.Queue(`INSERT INTO quota_reservations (id) SELECT unnest($1::bytea[]) ON CONFLICT DO NOTHING`, reserved)
	}
	batch.Queue(selectReservations+` ORDER BY id FOR UPDATE`, all).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, scanReservation)
		for _, row := range found {
			l.reservations[row.now.ID] = row
		}
		return err
	})
	return tx.SendBatch(ctx, batch).Close()
}

const (
	allReservations = `SELECT id, state, on_expiry, expires_at, levels, subjects, periods, costs, maxima, reserved, dry_runs, resets, actual,
		created_at, updated_at, expired FROM quota_reservations`
	selectReservations = allReservations + ` WHERE id = ANY($1)`
)

func scanReservation(from pgx.CollectableRow) (*reservation, error) {
	var (
		row             reservation
		id              []byte
		state, onExpiry string
		charges         chargeColumns

		createdAt, updatedAt *time.Time // null is unknown, as in rows of earlier programs
	)
	err := from.Scan(&id, &state, &onExpiry, &row.now.ExpiresAt, &charges.levels, &charges.subjects, &charges.periods,
		&charges.costs, &charges.maxima, &charges.reserved, &charges.dryRuns, &charges.resets, &row.now.Actual,
		&createdAt, &updatedAt, &row.now.Expired)
	if err != nil {
		return nil, err
	}
	row.now.ID = string(id)
	if row.isNew = state == "new"; row.isNew {
		return &row, nil
	}
	row.now.State, row.now.OnExpiry, row.now.ExpiresAt = quota.State(state), quota.State(onExpiry), row.now.ExpiresAt.UTC()
	if createdAt != nil {
		row.now.CreatedAt = createdAt.UTC()
	}
	if updatedAt != nil {
		row.now.UpdatedAt = updatedAt.UTC()
	}
	if row.now.Charges, err = charges.rows(); err == nil {
		err = row.now.ValidateStored()
	}
	if err != nil {
		row.wrong = cannot(fmt.Sprintf("reservation %q", row.now.ID), err)
	}
	return &row, nil
}

// chargeColumns are charges as they are kept, field by field.
type chargeColumns struct {
	levels, periods         []string
	subjects                [][]byte
	costs, maxima, reserved []int64
	dryRuns                 []bool
	resets                  []time.Time
}

func columnsOf(charges []quota.Charge) (k chargeColumns) {
	for _, c := range charges {
		k.levels, k.periods = append(k.levels, string(c.Counter.Level)), append(k.periods, c.Counter.Period)
		k.subjects = append(k.subjects, []byte(c.Counter.Subject))
		k.costs, k.maxima, k.reserved = append(k.costs, c.Cost), append(k.maxima, c.Max), append(k.reserved, c.Reserved)
		k.dryRuns, k.resets = append(k.dryRuns, c.DryRun), append(k.resets, c.ResetAt)
	}
	return k
}

func (k chargeColumns) rows() ([]quota.Charge, error) {
	n := len(k.levels)
	for _, other := range []int{len(k.periods), len(k.subjects), len(k.costs), len(k.maxima), len(k.reserved), len(k.dryRuns), len(k.resets)} {
		if other != n {
			return nil, fmt.Errorf("it has %d levels, but %d of something else", n, other)
		}
	}
	charges := make([]quota.Charge, n)
	for i := range charges {
		charges[i] = quota.Charge{
			Counter: quota.Counter{Level: quota.Level(k.levels[i]), Subject: quota.Subject(k.subjects[i]), Period: k.periods[i]},
			Cost:    k.costs[i], Max: k.maxima[i], Reserved: k.reserved[i], DryRun: k.dryRuns[i], ResetAt: k.resets[i].UTC(),
		}
	}
	return charges, nil
}

// known is an instant as it is kept: null where it is unknown.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (l *Ledger) queueReservations(batch *pgx.Batch) {
	var gone [][]byte
	for id, row := range l.reservations {
		switch {
		case row.gone, row.isNew && !row.changed:
			gone = append(gone, []byte(id))
		case row.changed:
			k := columnsOf(row.now.Charges)
			queueExactly(batch, 1, `UPDATE quota_reservations SET state = $2, on_expiry = $3, expires_at = $4, due = $5, levels = $6, subjects = $7,
				periods = $8, costs = $9, maxima = $10, reserved = $11, dry_runs = $12, resets = $13, actual = $14,
				created_at = $15, updated_at = $16, expired = $17 WHERE id = $1`,
				[]byte(id), string(row.now.State), string(row.now.OnExpiry), row.now.ExpiresAt, row.now.Due(), k.levels, k.subjects,
				k.periods, k.costs, k.maxima, k.reserved, k.dryRuns, k.resets, row.now.Actual,
				known(row.now.CreatedAt), known(row.now.UpdatedAt), row.now.Expired)
		}
	}
	if gone != nil {
		queueExactly(batch, len(gone), `DELETE FROM quota_reservations WHERE id = ANY($1)`, gone)
	}
}
