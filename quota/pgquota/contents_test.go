package pgquota_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/quota/pgquota"
)

// What is put is there, as it was, and is put once.
func TestPut(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	end := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	counters := []quota.Counter{{Level: "client", Subject: "\x00\xff", Period: "2026-11-29"}, {Level: "money", Period: "2026-11"}}
	counts := []quota.Count{{Used: 3}, {Used: 1, Held: 5}}
	charges := []quota.Charge{{Counter: counters[1], Cost: 5, Max: 10, Reserved: 1, DryRun: true, ResetAt: end}}
	reservations := []quota.Reservation{
		{ID: "pending\xff", Charges: charges, ExpiresAt: end, OnExpiry: quota.Committed, State: quota.Pending},
		{ID: "committed", Charges: charges, ExpiresAt: end, OnExpiry: quota.Released, State: quota.Committed, Actual: []int64{4}},
	}
	put := func() error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			if err := pgquota.PutReservations(t.Context(), tx, reservations); err != nil {
				return err
			}
			return pgquota.PutCounts(t.Context(), tx, counters, counts)
		})
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	var found []string
	err := errors.Join(
		pgquota.AllCounts(t.Context(), pool, func(c quota.Counter, n quota.Count) error {
			found = append(found, fmt.Sprint(c, n))
			return nil
		}),
		pgquota.Reservations(t.Context(), pool, func(r quota.Reservation) error {
			i := slices.IndexFunc(reservations, func(wanted quota.Reservation) bool { return wanted.ID == r.ID })
			if diff := cmp.Diff(reservations[i], r); diff != "" {
				t.Errorf("reservation (-want +got):\n%s", diff)
			}
			found = append(found, r.ID)
			return nil
		}))
	slices.Sort(found)
	want := []string{fmt.Sprint(counters[0], counts[0]), fmt.Sprint(counters[1], counts[1]), "pending\xff", "committed"}
	slices.Sort(want)
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("found %q, %v, want %q", found, err, want)
	}
	if err := put(); !errors.Is(err, quota.ErrCannotCount) {
		t.Errorf("the second time: got error %v, want ErrCannotCount", err)
	}
	stop := errors.New("stop")
	if err := pgquota.Reservations(t.Context(), pool, func(quota.Reservation) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got error %v, want that of the function", err)
	}
}
