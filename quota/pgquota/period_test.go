package pgquota_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/quota/pgquota"
)

// TestSecret has ten make the secret of a period, which goes with the first sweep.
func TestSecret(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	if _, err := pgquota.Secret(t.Context(), pool, day.Label); !errors.Is(err, pgquota.ErrNoPeriod) {
		t.Errorf("got error %v, want ErrNoPeriod", err)
	}
	secrets := make([]quota.Secret, 10)
	var group sync.WaitGroup
	for i := range secrets {
		group.Go(func() {
			err := pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) (err error) {
				secrets[i], err = pgquota.PutSecret(context.Background(), tx, day.Label, quota.NewSecret())
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	found, err := pgquota.Secret(t.Context(), pool, day.Label)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		if secret != found {
			t.Error("two secrets for one day")
		}
	}
	for _, subject := range []string{"ann", "bob", "cid"} {
		if err := apply(t.Context(), pool, charge(subject, 1, 9)); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func() (more bool) {
		t.Helper()
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
			more, err = pgquota.Sweep(t.Context(), tx, day.End, 2)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return more
	}
	// A counter that somebody has locked is left alone, and nobody is waited for.
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := pgquota.Lock(t.Context(), tx, pgquota.Wanted{Charges: []quota.Charge{charge("ann", 1, 9)}}); err != nil {
			return err
		}
		if !sweep() || sweep() {
			t.Error("two counters and the secret go, and the third stays")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pgquota.Secret(t.Context(), pool, day.Label); !errors.Is(err, pgquota.ErrNoPeriod) {
		t.Errorf("the secret outlived the first round: %v", err)
	}
	want(t, pool, "[1 0 0]", "ann", "bob", "cid")
	if !sweep() || sweep() {
		t.Error("the third counter goes once it is free")
	}
	want(t, pool, "[0]", "ann")
}

// Windows of several kinds lie among each other, and each goes when it has ended.
func TestSweepWindowsOfEveryKind(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	noon := day.Start.Add(12 * time.Hour)
	windows := []quota.Window{quota.HourOf(noon), quota.HourOf(noon.Add(time.Hour)), day, quota.MonthOf(noon)}
	for _, w := range append(windows, quota.Window{Label: "some time"}) {
		c := charge("ann", 1, 9)
		c.Counter.Period = w.Label
		if err := apply(t.Context(), pool, c); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(before time.Time) (more bool) {
		t.Helper()
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
			more, err = pgquota.Sweep(t.Context(), tx, before, 9)
			return err
		})
		if more == errors.Is(err, quota.ErrCannotCount) { // of the label that is no window
			t.Errorf("before %s: %v, %v", before, more, err)
		}
		return more
	}
	for _, w := range windows {
		if sweep(w.End.Add(-time.Microsecond)) || !sweep(w.End) || sweep(w.End) {
			t.Errorf("%s does not go just when it has ended", w.Label)
		}
	}
}

func TestPeriodThatIsNone(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	odd := charge("ann", 1, 9)
	odd.Counter.Period = "some time"
	if err := apply(t.Context(), pool, odd); err != nil {
		t.Fatal(err)
	}
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := pgquota.Sweep(t.Context(), tx, day.End, 2)
		return err
	})
	if !errors.Is(err, quota.ErrCannotCount) {
		t.Errorf("got error %v, want ErrCannotCount", err)
	}
	// What PostgreSQL does not take as text is refused before it is asked, so that
	// the transaction goes on.
	for _, text := range []string{"\x00", "\xff"} {
		odd.Counter.Period = text
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := pgquota.Apply(t.Context(), tx, []quota.Charge{odd})
			if !errors.Is(err, quota.ErrInvalidCharge) {
				t.Errorf("%q: got error %v, want ErrInvalidCharge", text, err)
			}
			_, err = pgquota.Apply(t.Context(), tx, []quota.Charge{charge("ann", 1, 9)})
			return err
		})
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	want(t, pool, "[2]", "ann")
}
