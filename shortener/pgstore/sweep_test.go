package pgstore

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/quota/pgquota/pgtest"
	"snip/shortener"
)

// TestSweep counts on several days, from two programs. Those that are over go, and a
// program takes over from one that holds the lock and is gone.
func TestSweep(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	stores := []*Store{openClosing(t, url), openClosing(t, url)}
	on := func(days int) {
		t.Helper()
		s, day := stores[days%2], quota.DayOf(noon.AddDate(0, 0, days))
		if _, err := s.EnsureSecret(t.Context(), day.Label); err != nil {
			t.Fatal(err)
		}
		ref := shortener.AnswerRef{Day: day.Label}
		err := s.Create(t.Context(), shortener.Creation{
			Day:     day.Label,
			Charges: []quota.Charge{{Counter: quota.Counter{Level: quota.LevelService, Period: day.Label}, Cost: 1, Max: 9, ResetAt: day.End}},
			Links:   []shortener.Link{{Slug: shortener.Slug(fmt.Sprint("link-", days)), Destination: first, CreatedAt: day.Start, Day: day.Label}},
			Answer:  &shortener.Answer{AnswerRef: ref, At: day.Start, Sealed: []byte("sealed")},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	kept := func() string {
		t.Helper()
		rows, err := stores[0].pool.Query(t.Context(), `SELECT period FROM quota_counters UNION ALL
			SELECT period FROM quota_secrets UNION ALL SELECT day FROM answers ORDER BY 1`)
		if err != nil {
			t.Fatal(err)
		}
		days, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(days)
	}
	const both = "[2026-11-30 2026-11-30 2026-11-30 2026-12-01 2026-12-01 2026-12-01]"
	for days := range 3 {
		on(days)
	}
	eventually(t, "the first day goes", func() bool {
		stores[0].sweepSoon() // the one that was told may have met the other's lock
		return kept() == both
	})

	if _, err := stores[0].pool.Exec(t.Context(), `UPDATE writers SET at = at - interval '2 days'`); err != nil {
		t.Fatal(err)
	}
	tx, err := stores[0].pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, lockSweep); err != nil {
		t.Fatal(err)
	}
	on(9)
	if more, err := stores[1].sweepSome(t.Context()); more || err != nil {
		t.Errorf("another program sweeps, but this one found %v, %v", more, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	stores[1].sweepSoon()
	eventually(t, "the other days go", func() bool { return kept() == "[2026-12-08 2026-12-08 2026-12-08]" })
	var writers int
	if err := stores[0].pool.QueryRow(t.Context(), `SELECT count(*) FROM writers`).Scan(&writers); err != nil || writers != 1 {
		t.Errorf("%d writers, %v, want the one that has written since", writers, err)
	}
	if _, err := stores[1].Answer(t.Context(), []shortener.AnswerRef{{Day: "2026-11-29"}}); !errors.Is(err, shortener.ErrNotFound) {
		t.Errorf("an old answer: %v", err)
	}
	// The program whose row was swept writes it anew.
	if err := stores[0].Create(context.Background(), shortener.Creation{Links: []shortener.Link{{Slug: "last", Destination: first, CreatedAt: noon}}}); err != nil {
		t.Error(err)
	}
}
