package pgquota_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/quota/pgquota"
)

// Those that cannot be read keep nobody else's from being settled, although they are
// due first, by a caller who rolls back whatever ends in an error.
func TestDamagedReservationsHoldUpNobody(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	update := func(run func(pgx.Tx) error) error { return pgx.BeginFunc(t.Context(), pool, run) }
	for _, id := range []string{"a", "b", "c", "d"} {
		if err := update(func(tx pgx.Tx) error {
			_, _, err := pgquota.Reserve(t.Context(), tx, reservation(id, charge("ann", 1, 9)))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(t.Context(), `UPDATE quota_reservations SET costs = '{}' WHERE id IN ('a', 'b', 'c')`); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} {
		var more bool
		err := update(func(tx pgx.Tx) (err error) {
			more, err = pgquota.SettleExpired(t.Context(), tx, day.End, 2, nil)
			return err
		})
		if more != want || errors.Is(err, quota.ErrCannotCount) == want {
			t.Errorf("call %d: more %v, %v", i, more, err)
		}
	}
	counts, err := pgquota.Counts(t.Context(), pool, []quota.Counter{charge("ann", 1, 9).Counter})
	if err != nil || counts[0] != (quota.Count{Held: 3}) {
		t.Errorf("it holds %+v, %v, want what three of four hold", counts, err)
	}
}
