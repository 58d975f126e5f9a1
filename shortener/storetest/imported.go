package storetest

import (
	"errors"
	"fmt"
	"slices"
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
	act := shortener.Act{
		Line:   shortener.AuditLine{At: noon, Action: "import", Note: "present 1, refused 0"},
		Import: []shortener.Managed{{Link: limited, Visited: 2}, {Link: plain, Visits: visits}, {Link: gone}},
	}
	if done, err := m.store.Act(t.Context(), act); done.Links != 3 || err != nil {
		t.Fatal(done, err)
	}
	again := act
	again.Import = append([]shortener.Managed{{Link: link("new")}}, act.Import[1:]...)
	_, err := stores[len(stores)-1].Act(t.Context(), again)
	wantError(t, err, shortener.ErrSlugTaken)
	if taken, ok := errors.AsType[*shortener.SlugTakenError](err); !ok || !slices.Equal(slices.Sorted(slices.Values(taken.Slugs)), []shortener.Slug{"gone", "plain"}) {
		t.Errorf("taken are %+v", taken)
	}
	m.wantLinks(0, "new")
	for i, s := range stores {
		for _, m := range act.Import {
			if got, err := s.Get(t.Context(), m.Link.Slug); err != nil || got != m.Link {
				t.Errorf("handle %d: %+v, %v, want %+v", i, got, err, m.Link)
			}
		}
		line := act.Line
		line.Number, line.Links = 1, 3
		if got, err := s.Audit(t.Context(), 0, 9); err != nil || !slices.Equal(got, []shortener.AuditLine{line}) {
			t.Errorf("handle %d: the audit log has %+v, %v", i, got, err)
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
	_, err = stores[len(stores)-1].Visit(t.Context(), "limited")
	wantError(t, err, shortener.ErrGone)
	m.wantUsed(host(1, 1), noon, 1, 1, 1)
}
