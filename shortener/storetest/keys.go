package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

// testLinksOf makes links with three keys and without one, several in the same
// instant, and reads them page by page.
func testLinksOf(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], quota.Policy{}}
	keys := []quota.KeyID{1, 2, 1<<64 - 1, 0}
	made := map[quota.KeyID][]shortener.Link{}
	for i := range 60 {
		c := m.creation(host(1, 1), noon.Add(time.Duration(i/8)*time.Microsecond), fmt.Sprintf("link-%02d", (i*37)%60))
		c.Links[0].Key = keys[i%len(keys)]
		c.Links[0].Token = shortener.NewToken().Hash()
		if err := m.store.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		made[c.Links[0].Key] = append(made[c.Links[0].Key], c.Links[0])
	}
	for _, links := range made {
		slices.SortFunc(links, func(a, b shortener.Link) int {
			return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.Slug, a.Slug))
		})
	}
	want := func(key quota.KeyID, links []shortener.Link) {
		t.Helper()
		for i, s := range stores {
			var got []shortener.Link
			before := shortener.Slug("")
			for range len(links) + 1 {
				page, err := s.LinksOf(t.Context(), key, before, 4)
				if err != nil || len(page) > 4 {
					t.Fatalf("handle %d: a page of %d, %v", i, len(page), err)
				}
				got = append(got, page...)
				if len(page) < 4 {
					break
				}
				before = page[len(page)-1].Slug
			}
			if !slices.Equal(got, links) {
				t.Errorf("handle %d: key %s has %v, want %v", i, key, got, links)
			}
		}
	}
	for _, key := range keys[:3] {
		want(key, made[key])
	}
	want(99, nil)
	links := made[1]
	if _, err := m.store.LinksOf(t.Context(), 2, links[0].Slug, 4); !errors.Is(err, shortener.ErrNotFound) {
		t.Errorf("behind another key's link: %v", err)
	}
	if _, err := m.store.LinksOf(t.Context(), 1, "unknown", 4); !errors.Is(err, shortener.ErrNotFound) {
		t.Errorf("behind no link: %v", err)
	}

	// A change keeps a link's place, and a deleted link still marks one.
	elsewhere := "https://example.org/elsewhere"
	changed, err := m.store.Change(t.Context(), links[1].Slug, shortener.Change{Destination: &elsewhere})
	if err != nil || changed.Key != 1 {
		t.Fatalf("changed: %+v, %v", changed, err)
	}
	links[1] = changed
	if err := m.store.Delete(t.Context(), links[4].Slug); err != nil {
		t.Fatal(err)
	}
	want(1, slices.Concat(links[:4], links[5:]))
	for i, s := range stores {
		page, err := s.LinksOf(t.Context(), 1, links[4].Slug, 100)
		if err != nil || !slices.Equal(page, links[5:]) {
			t.Errorf("handle %d: behind a deleted link are %v, %v", i, page, err)
		}
	}
}
