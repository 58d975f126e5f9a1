package pgquota_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"snip/quota"
	"snip/quota/pgquota"
)

var day = quota.DayOf(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))

func charge(subject string, cost, limit int64) quota.Charge {
	c := quota.Counter{Level: quota.LevelClient, Subject: quota.Subject(subject), Period: day.Label}
	return quota.Charge{Counter: c, Cost: cost, Max: limit, ResetAt: day.End}
}

func reservation(id string, charges ...quota.Charge) quota.Reservation {
	return quota.Reservation{ID: id, Charges: charges, ExpiresAt: day.End, OnExpiry: quota.Released}
}

// want asserts what of the subjects' counters is taken.
func want(t *testing.T, q pgquota.Querier, want string, subjects ...string) {
	t.Helper()
	var counters []quota.Counter
	for _, s := range subjects {
		counters = append(counters, charge(s, 1, 1).Counter)
	}
	counts, err := pgquota.Counts(t.Context(), q, counters)
	if got := fmt.Sprint(quota.Taken(counts)); err != nil || got != want {
		t.Errorf("%q hold %s, %v, want %s", subjects, got, err, want)
	}
}

func apply(ctx context.Context, pool *pgxpool.Pool, charges ...quota.Charge) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := pgquota.Apply(ctx, tx, charges)
		return err
	})
}

// TestLedger decides on several demands in one transaction.
func TestLedger(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		demand := []quota.Charge{charge("all", 1, 3), charge("ann", 1, 9)}
		call, odd, full := reservation("call", charge("all", 1, 3)), quota.Reservation{ID: "odd"}, reservation("full", charge("all", 4, 3))
		l, err := pgquota.Lock(t.Context(), tx, pgquota.Wanted{
			Charges: demand, Reserve: []quota.Reservation{call, full, odd, call}, Settle: []string{"call", "unknown"},
		})
		if err != nil {
			return err
		}
		for i, step := range []struct {
			do   func() error
			want error
		}{
			{func() error { _, err := l.Apply(demand); return err }, nil},
			{func() error { _, _, err := l.Reserve(odd); return err }, quota.ErrInvalidReservation},
			{func() error { _, _, err := l.Commit("call", nil, time.Time{}); return err }, quota.ErrNoReservation},
			{func() error { _, _, err := l.Reserve(full); return err }, quota.ErrExceeded},
			{func() error { _, _, err := l.Reserve(call); return err }, nil},
			{func() error { _, _, err := l.Reserve(call); return err }, nil},
			{func() error { _, err := l.Apply(demand); return err }, nil},
			{func() error { _, err := l.Apply(demand); return err }, quota.ErrExceeded},
			{func() error { _, _, err := l.Release("call", time.Time{}); return err }, nil},
			{func() error { _, err := l.Apply(demand); return err }, nil},
			{func() error { _, err := l.Check(demand); return err }, quota.ErrExceeded},
			{func() error { _, _, err := l.Release("unknown", time.Time{}); return err }, quota.ErrNoReservation},
			// What was not locked is not decided on.
			{func() error { _, err := l.Apply([]quota.Charge{charge("bob", 1, 9)}); return err }, quota.ErrCannotCount},
			{func() error { _, _, err := l.Reserve(reservation("late", demand...)); return err }, quota.ErrCannotCount},
		} {
			if err := step.do(); !errors.Is(err, step.want) {
				t.Errorf("step %d: got error %v, want %v", i, err, step.want)
			}
		}
		if err := l.Write(t.Context(), tx); err != nil {
			return err
		}
		// Each row is written once, however many demands met it.
		var updated int
		err = tx.QueryRow(t.Context(), `SELECT n_tup_upd FROM pg_stat_xact_user_tables WHERE relname = 'quota_counters'`).Scan(&updated)
		if updated != 2 {
			t.Errorf("%d rows of counters were updated, want 2", updated)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, pool, "[3 3 0]", "all", "ann", "bob")
	for id, state := range map[string]quota.State{"call": quota.Released, "full": "", "odd": "", "late": ""} {
		if r, err := pgquota.Reservation(t.Context(), pool, id); r.State != state || (state == "") != errors.Is(err, quota.ErrNoReservation) {
			t.Errorf("%s: %+v, %v", id, r, err)
		}
	}
}

// TestNoDeadlock lets transactions charge the same counters, each in an order of its
// own, and new ones every other round; and settle the reservations of others.
func TestNoDeadlock(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	const workers, rounds, subjects, limit = 8, 60, 12, 9
	var mu sync.Mutex
	paid := map[quota.Subject]int64{}
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(worker)))
			for round := range rounds {
				var demands [][]quota.Charge
				var w pgquota.Wanted
				for range 4 {
					var demand []quota.Charge
					for _, n := range random.Perm(subjects)[:3] {
						demand = append(demand, charge(fmt.Sprint(round/2, "/", n), 1, limit))
					}
					demands, w.Charges = append(demands, demand), append(w.Charges, demand...)
					if round%2 == 0 {
						continue
					}
					w.Reserve = append(w.Reserve, reservation(fmt.Sprint(random.IntN(20)), demand...))
					w.Settle = append(w.Settle, fmt.Sprint(random.IntN(20)))
				}
				admitted := map[quota.Subject]int64{}
				err := pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
					l, err := pgquota.Lock(context.Background(), tx, w)
					if err != nil {
						return err
					}
					for i, demand := range demands {
						if _, err := l.Apply(demand); err == nil {
							for _, c := range demand {
								admitted[c.Counter.Subject]++
							}
						} else if !errors.Is(err, quota.ErrExceeded) {
							return err
						}
						if len(w.Reserve) == 0 {
							continue
						}
						_, _, reserveErr := l.Reserve(w.Reserve[i])
						_, _, settleErr := l.Release(w.Settle[i], time.Time{})
						if err := errors.Join(reserveErr, settleErr); errors.Is(err, quota.ErrCannotCount) || errors.Is(err, quota.ErrInvalidCharge) {
							return err
						}
					}
					return l.Write(context.Background(), tx)
				})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for subject, n := range admitted {
					paid[subject] += n
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for subject, admitted := range paid {
		counts, err := pgquota.Counts(t.Context(), pool, []quota.Counter{charge(string(subject), 1, 1).Counter})
		if err != nil || counts[0].Used != admitted || counts[0].Taken() > limit {
			t.Errorf("%s holds %v, %v, but %d were admitted", subject, counts, err, admitted)
		}
	}
	// What is held is what the reservations hold that are pending.
	rows, err := pool.Query(t.Context(), `SELECT c.subject, c.held, sum(coalesce(r.cost, 0)) FROM quota_counters c LEFT JOIN (
			SELECT unnest(subjects) AS subject, unnest(costs) AS cost FROM quota_reservations WHERE state = 'pending'
		) r USING (subject) GROUP BY 1, 2`)
	if err != nil {
		t.Fatal(err)
	}
	var subject []byte
	var held, pending int64
	tag, err := pgx.ForEachRow(rows, []any{&subject, &held, &pending}, func() error {
		if held != pending {
			t.Errorf("%s holds %d, its reservations %d", subject, held, pending)
		}
		return nil
	})
	if err != nil || tag.RowsAffected() != rounds/2*subjects {
		t.Errorf("%v, %v", tag, err)
	}
}

// TestNoDeadlockOfNewCounters has two transactions make the same many counters.
func TestNoDeadlockOfNewCounters(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	for round := range 10 {
		var w pgquota.Wanted
		for n := range 1000 {
			w.Charges = append(w.Charges, charge(fmt.Sprint(round, "/", n), 1, 1))
		}
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				err := pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
					_, err := pgquota.Lock(context.Background(), tx, w)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
}

func TestRollback(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	if err := apply(t.Context(), pool, charge("ann", 2, 9)); err != nil {
		t.Fatal(err)
	}
	changed := errors.New("the caller has changed its mind")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, applied := pgquota.Apply(t.Context(), tx, []quota.Charge{charge("ann", 1, 9), charge("bob", 1, 9)})
		_, _, reserved := pgquota.Reserve(t.Context(), tx, reservation("call", charge("ann", 3, 9)))
		want(t, tx, "[6 1]", "ann", "bob")
		return errors.Join(applied, reserved, changed)
	})
	if err == nil || err.Error() != changed.Error() {
		t.Errorf("got error %v, want nothing but the caller's", err)
	}
	want(t, pool, "[2 0]", "ann", "bob")
	if _, err := pgquota.Reservation(t.Context(), pool, "call"); !errors.Is(err, quota.ErrNoReservation) {
		t.Errorf("the reservation: %v", err)
	}
}

// A transaction that reads as of its beginning must not count on what it reads.
func TestSnapshotIsNotCountedOn(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	if err := apply(t.Context(), pool, charge("ann", 1, 2)); err != nil {
		t.Fatal(err)
	}
	err := pgx.BeginTxFunc(t.Context(), pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		want(t, tx, "[1]", "ann") // from here on it sees that
		if err := apply(t.Context(), pool, charge("ann", 1, 2)); err != nil {
			return err
		}
		_, err := pgquota.Apply(t.Context(), tx, []quota.Charge{charge("ann", 1, 2)})
		return err
	})
	if fault, ok := errors.AsType[*pgconn.PgError](err); !ok || fault.Code != "40001" || !errors.Is(err, quota.ErrCannotCount) {
		t.Errorf("got error %v, want a serialization failure", err)
	}
	want(t, pool, "[2]", "ann")
}

func TestRowThatChangesUnderItsLock(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		l, err := pgquota.Lock(t.Context(), tx, pgquota.Wanted{Charges: []quota.Charge{charge("ann", 1, 2)}})
		if err != nil {
			return err
		}
		if _, err := l.Apply([]quota.Charge{charge("ann", 1, 2)}); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), `UPDATE quota_counters SET used = 2`); err != nil {
			return err
		}
		return l.Write(t.Context(), tx)
	})
	if !errors.Is(err, quota.ErrCannotCount) {
		t.Errorf("got error %v, want ErrCannotCount", err)
	}
	want(t, pool, "[0]", "ann")
}

func TestCannotCount(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"no counters":                  `DROP TABLE quota_counters`,
		"no reservations":              `DROP TABLE quota_reservations`,
		"a count below zero":           `ALTER TABLE quota_counters DROP CONSTRAINT quota_counters_check; UPDATE quota_counters SET used = -1`,
		"a sum beyond all numbers":     `ALTER TABLE quota_counters DROP CONSTRAINT quota_counters_check; UPDATE quota_counters SET used = 9223372036854775807`,
		"a count that is none":         `ALTER TABLE quota_counters ALTER used DROP NOT NULL; UPDATE quota_counters SET used = NULL`,
		"a count that is a text":       `ALTER TABLE quota_counters DROP CONSTRAINT quota_counters_check; ALTER TABLE quota_counters ALTER used DROP DEFAULT, ALTER used TYPE text USING 'many'`,
		"a charge without a cost":      `UPDATE quota_reservations SET costs = '{}'`,
		"a reservation without levels": `UPDATE quota_reservations SET levels = '{}', subjects = '{}', periods = '{}', costs = '{}', maxima = '{}', reserved = '{}', dry_runs = '{}', resets = '{}'`,
		"a cost that is none":          `UPDATE quota_reservations SET costs = '{NULL}'`,
		"released and paid":            `UPDATE quota_reservations SET state = 'released', actual = '{1}'`,
		"pending and paid":             `UPDATE quota_reservations SET actual = '{1}'`,
		"committed to nothing":         `UPDATE quota_reservations SET state = 'committed'`,
		"expired and pending":          `UPDATE quota_reservations SET expired = true`,
		"less held than reserved":      `UPDATE quota_counters SET held = 0`,
		"an unknown state":             `ALTER TABLE quota_reservations DROP CONSTRAINT quota_reservations_state_check; UPDATE quota_reservations SET state = 'odd'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := openPool(t)
			update := func(run func(pgx.Tx) error) error { return pgx.BeginFunc(t.Context(), pool, run) }
			reserve := func(id string) error {
				return update(func(tx pgx.Tx) error {
					_, _, err := pgquota.Reserve(t.Context(), tx, reservation(id, charge("ann", 1, 9)))
					return err
				})
			}
			if err := reserve("call"); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(t.Context(), damage); err != nil {
				t.Fatal(err)
			}
			settled := update(func(tx pgx.Tx) error {
				_, _, err := pgquota.Commit(t.Context(), tx, "call", nil, time.Time{})
				return err
			})
			expired := update(func(tx pgx.Tx) error {
				_, err := pgquota.SettleExpired(t.Context(), tx, day.End.AddDate(0, 0, 2), 9, func(quota.Reservation, []quota.Count) error { return nil })
				return err
			})
			for what, err := range map[string]error{"commit": settled, "expire": expired} {
				if !errors.Is(err, quota.ErrCannotCount) {
					t.Errorf("%s: got error %v, want ErrCannotCount", what, err)
				}
			}
		})
	}
}
