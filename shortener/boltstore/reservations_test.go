package boltstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
	"snip/shortener"
)

// demand returns a reservation of two of ten units at a level of its own.
func demand(id string) quota.Reservation {
	day := quota.DayOf(noon)
	return quota.Reservation{
		ID: id, ExpiresAt: noon.Add(time.Minute), OnExpiry: quota.Committed,
		Charges: []quota.Charge{{Counter: quota.Counter{Level: "money", Period: day.Label}, Cost: 2, Max: 10, ResetAt: day.End}},
	}
}

func mustReserve(t *testing.T, s *Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if _, _, err := s.Reserve(t.Context(), demand(id)); err != nil {
			t.Fatal(err)
		}
	}
}

// wantHeld asserts what the level holds, and that the check agrees.
func wantHeld(t *testing.T, s *Store, want quota.Count) {
	t.Helper()
	counts, err := s.Counts(t.Context(), []quota.Counter{demand("").Charges[0].Counter})
	if err != nil || counts[0] != want {
		t.Errorf("the level holds %+v, %v, want %+v", counts, err, want)
	}
	err = s.view(func(tx *bbolt.Tx) error {
		boltquota.CheckReservations(tx, func(err error) { t.Error(err) })
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// queued runs operations so that all of them are in the queue at once, in their
// order, and returns their outcomes.
func queued(t *testing.T, s *Store, operations ...func() error) []error {
	t.Helper()
	release := hold(t, s)
	outcomes := make([]error, len(operations))
	var wg sync.WaitGroup
	for i, run := range operations {
		wg.Go(func() { outcomes[i] = run() })
		for len(s.queue)+len(s.lesser) < i+1 {
			if t.Context().Err() != nil {
				t.Fatal("it was never queued")
			}
		}
	}
	release()
	wg.Wait()
	return outcomes
}

// Creations and reservations that wait at once share one commit, in which refusals
// and what has nothing to change disturb nobody.
func TestReservationsShareACommit(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	ctx := context.Background()
	first, second, taken := creation(t, s, noon, 1, "first"), answered(t, s, noon, 2, "second"), answered(t, s, noon, 3, "first")
	mustReserve(t, s, "before")
	lost := demand("lost")
	lost.ExpiresAt = noon
	if _, _, err := s.Reserve(ctx, lost); err != nil {
		t.Fatal(err)
	}
	reserve := func(r quota.Reservation) func() error {
		return func() error { _, _, err := s.Reserve(ctx, r); return err }
	}
	costly := demand("costly")
	costly.Charges[0].Cost = 9
	before := s.Health().Commits
	outcomes := queued(t, s,
		func() error { return s.Create(ctx, first) },
		reserve(demand("call")),
		reserve(costly),
		reserve(demand("before")),
		func() error { _, err := s.Commit(ctx, "before", []int64{12}, noon); return err },
		func() error { _, err := s.Release(ctx, "before", noon); return err },
		func() error { _, err := s.Release(ctx, "unknown", noon); return err },
		func() error { return s.Create(ctx, second) },
		func() error { return s.Create(ctx, taken) },
		func() error { _, err := s.SettleExpired(ctx, noon, 1); return err },
	)
	for i, err := range outcomes {
		want := map[int]error{2: quota.ErrExceeded, 6: quota.ErrNoReservation, 8: shortener.ErrSlugTaken}[i]
		if !errors.Is(err, want) {
			t.Errorf("operation %d: %v, want %v", i, err, want)
		}
	}
	// The one that holds the writer has one of its own.
	if commits := s.Health().Commits - before; commits > 2 {
		t.Errorf("%d commits", commits)
	}
	wantCounted(t, s, "2026-11-29", 2)
	if _, err := s.Answer(ctx, second.Replays); err != nil {
		t.Errorf("the answer of the second: %v", err)
	}
	if a, err := s.Answer(ctx, taken.Replays); !errors.Is(err, shortener.ErrNotFound) {
		t.Errorf("what was refused has an answer: %+v, %v", a, err)
	}
	if notices, err := s.Notices(ctx, 10); len(notices) != 1 || err != nil || notices[0].Kind != shortener.KindOverrun {
		t.Errorf("notices: %+v, %v", notices, err)
	}
	wantHeld(t, s, quota.Count{Used: 14, Held: 2})
}

// A batch of fifty links costs one commit.
func TestBatchIsOneCommit(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	c := creation(t, s, noon, 1, "first")
	for i := range 49 {
		link := c.Links[0]
		link.Slug = shortener.Slug(fmt.Sprint("batch-", i))
		c.Links = append(c.Links, link)
	}
	for i := range c.Charges {
		c.Charges[i].Cost = 50
	}
	before := s.Health().Commits
	if err := s.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if commits := s.Health().Commits - before; commits != 1 {
		t.Errorf("%d commits", commits)
	}
	wantCounted(t, s, "2026-11-29", 50)
}

// What is torn is rolled back with its neighbours: neither link nor hold nor notice
// stays, and nobody is told that it was done.
func TestTornNeighboursOfReservations(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	ctx := context.Background()
	c := answered(t, s, noon, 1, "first")
	mustReserve(t, s, "before")
	outcomes := queued(t, s,
		func() error { return s.Create(ctx, c) },
		func() error { _, _, err := s.Reserve(ctx, demand("call")); return err },
		func() error { _, err := s.Commit(ctx, "before", []int64{12}, noon); return err },
		func() error {
			return s.submit(ctx, func(*bbolt.Tx) error { return torn(errors.New("half a write")) })
		},
	)
	for i, err := range outcomes {
		if !errors.Is(err, shortener.ErrUnavailable) {
			t.Errorf("operation %d: %v, want ErrUnavailable", i, err)
		}
	}
	wantCounted(t, s, "2026-11-29", 0)
	wantHeld(t, s, quota.Count{Held: 2})
	if _, err := s.Answer(ctx, c.Replays); !errors.Is(err, shortener.ErrNotFound) {
		t.Errorf("the answer: %v", err)
	}
	if notices, err := s.Notices(ctx, 10); len(notices) != 0 || err != nil {
		t.Errorf("notices: %+v, %v", notices, err)
	}
	if _, err := s.Release(ctx, "call", noon); !errors.Is(err, quota.ErrNoReservation) {
		t.Errorf("what was rolled back: %v", err)
	}
}

// A reservation that cannot be read is left as it is and said, others are settled,
// and creations beside it go on.
func TestDamagedReservation(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	ctx := context.Background()
	c := creation(t, s, noon, 1, "first")
	mustReserve(t, s, "a", "b", "c")
	err := s.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("reservations")).Bucket([]byte("ids")).Put([]byte("b"), []byte("?"))
	})
	if err != nil {
		t.Fatal(err)
	}
	soon := noon.Add(time.Minute)
	more := false
	outcomes := queued(t, s,
		func() error { return s.Create(ctx, c) },
		func() (err error) { more, err = s.SettleExpired(ctx, soon, 10); return err },
	)
	if outcomes[0] != nil {
		t.Errorf("a creation beside it: %v", outcomes[0])
	}
	if !more || outcomes[1] != nil {
		t.Errorf("settled: more %v, %v", more, outcomes[1])
	}
	if more, err := s.SettleExpired(ctx, soon, 10); more || !errors.Is(err, quota.ErrCannotCount) || !errors.Is(err, shortener.ErrUnavailable) {
		t.Errorf("then: more %v, %v", more, err)
	}
	for what, err := range map[string]error{
		"reserve": func() error { _, _, err := s.Reserve(ctx, demand("b")); return err }(),
		"commit":  func() error { _, err := s.Commit(ctx, "b", nil, noon); return err }(),
		"release": func() error { _, err := s.Release(ctx, "b", noon); return err }(),
	} {
		wantUnavailable(t, err)
		if !errors.Is(err, quota.ErrCannotCount) {
			t.Errorf("%s: %v, want ErrCannotCount", what, err)
		}
	}
	counts, err := s.Counts(ctx, []quota.Counter{demand("").Charges[0].Counter})
	if fmt.Sprint(counts) != "[{4 2}]" || err != nil {
		t.Errorf("the level holds %v, %v", counts, err)
	}
}

// wantNothingReserved asserts that while nothing can be written nothing is reserved or
// settled.
func wantNothingReserved(t *testing.T, s *Store, pending string) {
	t.Helper()
	_, _, err := s.Reserve(t.Context(), demand("refused"))
	wantUnavailable(t, err)
	_, err = s.Commit(t.Context(), pending, nil, noon)
	wantUnavailable(t, err)
	_, err = s.Release(t.Context(), pending, noon)
	wantUnavailable(t, err)
	_, err = s.SettleExpired(t.Context(), noon.Add(time.Minute), 1)
	wantUnavailable(t, err)
	wantHeld(t, s, quota.Count{Held: 2})
}
