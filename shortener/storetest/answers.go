package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

// errReplayed is what the tests make of a [*shortener.ReplayError].
var errReplayed = errors.New("replayed")

// answered returns a creation whose answer is kept under the number n, where it may
// have been kept on the days of now and of the day before.
func (m maker) answered(now time.Time, n byte, slugs ...string) shortener.Creation {
	m.Helper()
	c := m.creation(host(1, 1), now, slugs...)
	c.Answer = &shortener.Answer{AnswerRef: ref(now, n), At: now, Sealed: fmt.Appendf(nil, "sealed: %q\xff", slugs)}
	c.Replays = []shortener.AnswerRef{ref(now, n), ref(now.AddDate(0, 0, -1), n)}
	return c
}

func ref(now time.Time, n byte) shortener.AnswerRef {
	return shortener.AnswerRef{Day: quota.DayOf(now).Label, ID: shortener.AnswerID{n}}
}

// wantAnswer asserts what is found at the places, from every handle.
func wantAnswer(t *testing.T, stores []shortener.Store, want *shortener.Answer, refs ...shortener.AnswerRef) {
	t.Helper()
	for i, s := range stores {
		got, err := s.Answer(t.Context(), refs)
		switch {
		case want == nil && !errors.Is(err, shortener.ErrNotFound):
			t.Errorf("handle %d: got %+v, %v, want ErrNotFound", i, got, err)
		case want != nil && (err != nil || !sameAnswer(got, *want)):
			t.Errorf("handle %d: got %+v, %v, want %+v", i, got, err, *want)
		}
	}
}

func sameAnswer(a, b shortener.Answer) bool {
	return a.AnswerRef == b.AnswerRef && a.At.Equal(b.At) && string(a.Sealed) == string(b.Sealed)
}

func testAnswer(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], quota.Policy{Client: 3}}
	wantAnswer(t, stores, nil)
	wantAnswer(t, stores, nil, ref(noon, 1))
	if err := m.create(host(1, 1), noon, "taken"); err != nil {
		t.Fatal(err)
	}
	// With each refusal there is none.
	wantError(t, m.store.Create(t.Context(), m.answered(noon, 1, "taken")), shortener.ErrSlugTaken)
	wantLevel(t, m.store.Create(t.Context(), m.answered(noon, 1, "one", "two", "three")), quota.LevelClient)
	late := m.answered(noon, 1, "late")
	late.Day = "2026-11-27"
	wantError(t, m.store.Create(t.Context(), late), quota.ErrClock)
	wantAnswer(t, stores, nil, ref(noon, 1))
	m.wantUsed(host(1, 1), noon, 1)

	c := m.answered(noon, 1, "one", "two")
	want := *c.Answer
	want.Sealed = slices.Clone(want.Sealed)
	if err := m.store.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	clear(c.Answer.Sealed) // the store has a copy of its own
	wantAnswer(t, stores, &want, ref(noon, 1))
	wantAnswer(t, stores, &want, ref(noon, 2), ref(noon.AddDate(0, 0, -1), 1), ref(noon, 1))
	wantAnswer(t, stores, nil, ref(noon, 2), ref(noon.AddDate(0, 0, -1), 1))
	got, err := m.store.Answer(t.Context(), []shortener.AnswerRef{ref(noon, 1)})
	if err != nil {
		t.Fatal(err)
	}
	clear(got.Sealed)
	wantAnswer(t, stores, &want, ref(noon, 1))
	m.wantLinks(2, "one", "two", "three", "late")
}

func testReplay(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], quota.Policy{Client: 2}}
	first := m.answered(noon, 1, "first", "second")
	if err := m.store.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	// Though the client is full by now, and the slug is taken; and another slug is
	// neither stored nor charged.
	for i, slug := range []string{"first", "other"} {
		again := m.answered(noon.Add(time.Minute), 1, slug)
		err := stores[i%len(stores)].Create(t.Context(), again)
		var replay *shortener.ReplayError
		if !errors.As(err, &replay) || !sameAnswer(replay.Answer, *first.Answer) {
			t.Errorf("%s again: got error %v, want the first answer", slug, err)
		}
	}
	// But who has no answer has no unit either.
	wantLevel(t, m.store.Create(t.Context(), m.answered(noon, 2, "first")), quota.LevelClient)
	// A clock that is not trusted is said first.
	late := m.answered(noon, 1, "first")
	late.Day = "2026-11-27"
	wantError(t, m.store.Create(t.Context(), late), quota.ErrClock)
	m.wantUsed(host(1, 1), noon, 2)
	m.wantLinks(2, "first", "second", "other")
}

func testAnswerHolds(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	evening := time.Date(2026, 11, 29, 23, 59, 0, 0, time.UTC)
	first := m.answered(evening, 1, "first")
	if err := m.store.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := m.create(host(1, 1), evening.Add(2*time.Minute), "next-day"); err != nil {
		t.Fatal(err)
	}
	var replay *shortener.ReplayError
	for name, at := range map[string]time.Time{
		"before it was given": evening.Add(-time.Second), // by a clock that went back
		"after midnight":      evening.Add(2 * time.Minute),
		"nearly a day later":  evening.Add(shortener.AnswerHolds - time.Microsecond),
	} {
		if err := m.store.Create(t.Context(), m.answered(at, 1, "again")); !errors.As(err, &replay) || !sameAnswer(replay.Answer, *first.Answer) {
			t.Errorf("%s: got error %v, want the first answer", name, err)
		}
	}
	second := m.answered(evening.Add(shortener.AnswerHolds), 1, "second")
	if err := m.store.Create(t.Context(), second); err != nil {
		t.Errorf("a day later: %v", err)
	}
	if err := m.store.Create(t.Context(), m.answered(evening.Add(shortener.AnswerHolds+time.Minute), 1, "again")); !errors.As(err, &replay) || !sameAnswer(replay.Answer, *second.Answer) {
		t.Errorf("then: got error %v, want the second answer", err)
	}
	m.wantLinks(2, "first", "second", "again")
}

func testAnswerRace(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	slugs := names("try", 20)
	creations := make([]shortener.Creation, len(slugs))
	for i, slug := range slugs {
		creations[i] = m.answered(noon, 1, slug)
	}
	made := together(t, stores, len(slugs), errReplayed, func(s shortener.Store, i int) error {
		err := s.Create(context.Background(), creations[i])
		if errors.As(err, new(*shortener.ReplayError)) {
			return errReplayed
		}
		return err
	})
	if made != 1 {
		t.Errorf("%d of 20 tries made a link", made)
	}
	m.wantLinks(1, slugs...)
	m.wantUsed(host(1, 1), noon, 1, 1, 1)
}

// testAnswerKept goes on for three days: on the first of them the answers of the day
// before the newest are there, whatever has been swept.
func testAnswerKept(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	first := m.answered(noon, 1, "first")
	if err := m.store.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	for day := 1; day <= 3; day++ {
		now := noon.AddDate(0, 0, day)
		if err := m.store.Create(t.Context(), m.answered(now, byte(day+1), fmt.Sprint("day-", day))); err != nil {
			t.Fatal(err)
		}
		if day == 1 {
			wantAnswer(t, stores, first.Answer, ref(now, 1), ref(noon, 1))
		}
		kept := m.answered(now, byte(day+1), fmt.Sprint("day-", day)).Answer
		wantAnswer(t, stores, kept, kept.AnswerRef)
	}
}

func testBatchRace(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], quota.Policy{Client: 50, Network: 250, Service: 1000}}
	if err := m.create(host(1, 1), noon, names("before", 45)...); err != nil {
		t.Fatal(err)
	}
	slugs := names("batch", 40)
	made := together(t, stores, 20, quota.ErrExceeded, func(s shortener.Store, i int) error {
		return maker{t, s, m.policy}.create(host(1, 1), noon, slugs[2*i:2*i+2]...)
	})
	if made != 2 {
		t.Errorf("%d of 20 batches of two links fitted into five", made)
	}
	m.wantLinks(4, slugs...)
	m.wantUsed(host(1, 1), noon, 49, 49, 49)
	wantLevel(t, m.create(host(1, 1), noon, "fifty", "fifty-one"), quota.LevelClient)
	if err := m.create(host(1, 1), noon, "fifty"); err != nil {
		t.Errorf("the last unit: %v", err)
	}
	m.wantUsed(host(1, 1), noon, 50, 50, 50)
}

func testTakenSlugs(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	if err := m.create(host(1, 1), noon, "one", "three"); err != nil {
		t.Fatal(err)
	}
	if err := m.store.Delete(t.Context(), "three"); err != nil {
		t.Fatal(err)
	}
	err := m.create(host(2, 1), noon, "three", "two", "one", "four")
	var taken *shortener.SlugTakenError
	if !errors.As(err, &taken) || !errors.Is(err, shortener.ErrSlugTaken) {
		t.Fatalf("got error %v, want a SlugTakenError", err)
	}
	slices.Sort(taken.Slugs)
	if fmt.Sprint(taken.Slugs) != "[one three]" {
		t.Errorf("%q are taken, want one and three", taken.Slugs)
	}
	m.wantUsed(host(2, 1), noon, 2, 0, 0)
	m.wantLinks(2, "one", "two", "three", "four")
}
