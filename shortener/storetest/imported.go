package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

// testImported stores links that nobody is charged for, with the visits that they
// come with, whatever day the clock shows.
func testImported(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	if err := m.create(host(1, 1), noon, "counted"); err != nil {
		t.Fatal(err)
	}
	key := quota.NewKeyID()
	made := time.Date(2019, 5, 4, 3, 2, 1, 1000, time.UTC)
	link := func(slug shortener.Slug) shortener.Link {
		return shortener.Link{Slug: slug, Destination: "https://example.org/" + string(slug), CreatedAt: made, Key: key, Token: shortener.NewToken().Hash()}
	}
	limited, plain, gone := link("limited"), link("plain"), link("gone").Tombstone()
	limited.MaxVisits, plain.TakenDown = 3, "spam"
	visits := shortener.Visits{
		Kinds:     [5]int64{shortener.Person: 2, shortener.Prefetch: 1},
		Days:      map[string]int64{"2019-05-04": 2},
		Referrers: map[string]int64{"news.example": 1},
	}
	c := shortener.Creation{
		Links:   []shortener.Link{limited, plain, gone},
		Visited: map[shortener.Slug]int64{"limited": 2},
		Visits:  map[shortener.Slug]shortener.Visits{"plain": visits},
	}
	if err := m.store.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	wantError(t, stores[len(stores)-1].Create(t.Context(), c), shortener.ErrSlugTaken)
	for i, s := range stores {
		for _, want := range c.Links {
			if got, err := s.Get(t.Context(), want.Slug); err != nil || got != want {
				t.Errorf("handle %d: %+v, %v, want %+v", i, got, err, want)
			}
		}
		limitedVisited, err := s.Visited(t.Context(), "limited")
		plainVisited, plainErr := s.Visited(t.Context(), "plain")
		if err := errors.Join(err, plainErr); err != nil || limitedVisited != 2 || plainVisited != 0 {
			t.Errorf("handle %d: visited %d and %d, %v", i, limitedVisited, plainVisited, err)
		}
		if got, err := s.Visits(t.Context(), "plain"); err != nil || fmt.Sprint(got) != fmt.Sprint(visits) {
			t.Errorf("handle %d: %+v, %v, want %+v", i, got, err, visits)
		}
		if got, err := s.LinksOf(t.Context(), key, "", 10); err != nil || len(got) != 2 {
			t.Errorf("handle %d: the key has %+v, %v, want all but what is deleted", i, got, err)
		}
		if err := s.Ready(t.Context(), quota.DayOf(noon).Label); err != nil {
			t.Errorf("handle %d: %v", i, err)
		}
	}
	if _, err := m.store.Visit(t.Context(), "limited"); err != nil {
		t.Error(err)
	}
	_, err := stores[len(stores)-1].Visit(t.Context(), "limited")
	wantError(t, err, shortener.ErrGone)
	m.wantUsed(host(1, 1), noon, 1, 1, 1)
}
