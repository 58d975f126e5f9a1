package pgstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"snip/quota/pgquota/pgtest"
	"snip/shortener"
)

// listening returns stores that hear of each other.
func listening(t *testing.T, url string, options ...Options) []*Store {
	t.Helper()
	var stores []*Store
	for _, o := range options {
		s := openAt(t, url, o)
		t.Cleanup(func() { _ = s.Close() })
		eventually(t, "it listens", func() bool { return s.cache.heard.Load() != nil })
		stores = append(stores, s)
	}
	return stores
}

// seen returns how long it takes until a visit finds what it should.
func seen(t *testing.T, s *Store, slug shortener.Slug, holds func(shortener.Target) bool) time.Duration {
	t.Helper()
	begun := time.Now()
	eventually(t, "a visit finds what has changed", func() bool {
		target, err := s.Follow(t.Context(), slug)
		if err != nil {
			t.Fatalf("a visit: %v", err)
		}
		return holds(target)
	})
	return time.Since(begun)
}

func takeDown(t *testing.T, s *Store, slugs []shortener.Slug, reason string) {
	t.Helper()
	if _, err := s.Act(t.Context(), shortener.Act{Line: shortener.AuditLine{At: noon}, Links: slugs, Reason: reason}); err != nil {
		t.Fatal(err)
	}
}

// TestChangesElsewhere: what one program changes, another sees within a second,
// and the one itself at once.
func TestChangesElsewhere(t *testing.T) {
	t.Parallel()
	stores := listening(t, pgtest.Database(t), Options{}, Options{})
	here, there := stores[0], stores[1]
	var slugs []shortener.Slug
	c := creation(t, here, 1, "unused")
	c.Links = nil
	for i := range 200 { // of which not all fit into one notification
		slug := shortener.Slug(fmt.Sprintf("a-slug-of-some-length-so-that-they-do-not-fit-%03d", i))
		slugs = append(slugs, slug)
		c.Links = append(c.Links, shortener.Link{Slug: slug, Destination: first, CreatedAt: noon, Day: "2026-11-29"})
	}
	for _, s := range stores {
		if _, err := s.Follow(t.Context(), slugs[0]); !errors.Is(err, shortener.ErrNotFound) {
			t.Fatalf("nothing is there: %v", err)
		}
	}
	c.Charges = nil
	if err := here.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Follow(t.Context(), slugs[0]); err != nil {
		t.Errorf("who has made a link does not find it: %v", err)
	}
	eventually(t, "a link that was made elsewhere is found", func() bool {
		_, err := there.Follow(t.Context(), slugs[0])
		return err == nil
	})
	for round := range 5 {
		for _, some := range [][]shortener.Slug{slugs[:1], slugs} {
			for _, reason := range []string{"phishing", ""} {
				down := func(target shortener.Target) bool { return target.TakenDown == (reason != "") }
				takeDown(t, here, some, reason)
				if target, err := here.Follow(t.Context(), slugs[0]); err != nil || !down(target) {
					t.Errorf("round %d: who has changed it finds %+v, %v", round, target, err)
				}
				if took := seen(t, there, some[len(some)-1], down); took > time.Second {
					t.Errorf("round %d: it took %v", round, took)
				}
			}
		}
	}
	to := second
	if _, err := there.Change(t.Context(), slugs[0], shortener.Change{Destination: &to}); err != nil {
		t.Fatal(err)
	}
	seen(t, here, slugs[0], func(target shortener.Target) bool { return target.Destination == second })
	if err := there.Delete(t.Context(), slugs[0]); err != nil {
		t.Fatal(err)
	}
	seen(t, here, slugs[0], func(target shortener.Target) bool { return target.Deleted })
}

// TestNothingIsHeard cuts the listener off, in a way that it cannot notice at once.
func TestNothingIsHeard(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	var n network
	stores := listening(t, url, Options{}, Options{dial: n.dial})
	here, there := stores[0], stores[1]
	mustCreate(t, here, "link")
	for _, reason := range []string{"phishing", "", "spam", ""} {
		n.deaf.Store(reason != "" && !n.deaf.Load())
		if _, err := there.Follow(t.Context(), "link"); err != nil {
			t.Fatal(err)
		}
		takeDown(t, here, []shortener.Slug{"link"}, reason)
		took := seen(t, there, "link", func(target shortener.Target) bool { return target.TakenDown == (reason != "") })
		if took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
	}
	n.deaf.Store(false)
	eventually(t, "it listens again", func() bool { return there.cache.heard.Load() != nil })
}

// TestLinksOutliveTheDatabase kills the server: cached links lead on, nothing is
// created, and all is well again when it comes back.
func TestLinksOutliveTheDatabase(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	s := listening(t, server.Database(t), Options{patience: time.Second})[0]
	mustCreate(t, s, "link")
	mustCreate(t, s, "never-visited")
	want := shortener.Target{Destination: "https://example.org/link", Host: "example.org"}
	if target, err := s.Follow(t.Context(), "link"); err != nil || target != want {
		t.Fatalf("%+v, %v", target, err)
	}
	c := creation(t, s, 1, "other")
	server.Kill(t)
	for end := time.Now().Add(3 * life); time.Now().Before(end); {
		if target, err := s.Follow(t.Context(), "link"); err != nil || target != want {
			t.Fatalf("%+v, %v", target, err)
		}
	}
	_, err := s.Follow(t.Context(), "never-visited")
	wantUnavailable(t, err)
	wantUnavailable(t, s.Create(t.Context(), c))
	server.Restart(t)
	eventually(t, "creations come back", func() bool { return s.Create(context.Background(), c) == nil })
	eventually(t, "it listens again", func() bool { return s.cache.heard.Load() != nil })
	if _, err := s.Follow(t.Context(), "never-visited"); err != nil {
		t.Error(err)
	}
	takeDown(t, s, []shortener.Slug{"link"}, "spam")
	if target, err := s.Follow(t.Context(), "link"); err != nil || !target.TakenDown {
		t.Errorf("%+v, %v", target, err)
	}
}
