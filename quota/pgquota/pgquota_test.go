package pgquota_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"snip/quota"
	"snip/quota/pgquota"
	"snip/quota/pgquota/pgtest"
	"snip/quota/quotatest"
)

// openPool returns a pool on a database of the test's own, with the tables.
func openPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 10 // however few cores there are: transactions are to meet
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for range 2 { // tables that are there stay
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return pgquota.Init(t.Context(), tx) })
		if err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

func TestPackage(t *testing.T) {
	t.Parallel()
	quotatest.Run(t, func(t testing.TB) quotatest.Package[pgx.Tx] {
		pool, ctx := openPool(t), context.Background()
		update := func(run func(pgx.Tx) error) error { return pgx.BeginFunc(ctx, pool, run) }
		return quotatest.Package[pgx.Tx]{
			View:   update,
			Update: update,
			Counts: func(tx pgx.Tx, c []quota.Counter) ([]quota.Count, error) { return pgquota.Counts(ctx, tx, c) },
			Check:  func(tx pgx.Tx, c []quota.Charge) ([]quota.Usage, error) { return pgquota.Check(ctx, tx, c) },
			Apply:  func(tx pgx.Tx, c []quota.Charge) ([]quota.Usage, error) { return pgquota.Apply(ctx, tx, c) },
			Each: func(tx pgx.Tx, level quota.Level, period string, use func(quota.Subject, int64)) error {
				return pgquota.Each(ctx, tx, level, period, use)
			},
			Reserve: func(tx pgx.Tx, r quota.Reservation) (quota.Reservation, bool, error) {
				return pgquota.Reserve(ctx, tx, r)
			},
			Commit: func(tx pgx.Tx, id string, actual []int64, at time.Time) (quota.Reservation, []quota.Count, error) {
				return pgquota.Commit(ctx, tx, id, actual, at)
			},
			Release: func(tx pgx.Tx, id string, at time.Time) (quota.Reservation, []quota.Count, error) {
				return pgquota.Release(ctx, tx, id, at)
			},
			Reservation: func(tx pgx.Tx, id string) (quota.Reservation, error) { return pgquota.Reservation(ctx, tx, id) },
			List:        func(tx pgx.Tx, n int) ([]quota.Reservation, error) { return pgquota.List(ctx, tx, n) },
			SettleExpired: func(tx pgx.Tx, now time.Time, limit int, settled func(quota.Reservation, []quota.Count) error) (bool, error) {
				return pgquota.SettleExpired(ctx, tx, now, limit, settled)
			},
			Sweep: func(tx pgx.Tx, before time.Time, limit int) (bool, error) {
				return pgquota.Sweep(ctx, tx, before, limit)
			},
		}
	})
}
