package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

func testKeys(t *testing.T, stores []shortener.Store) {
	first, other := stores[0], stores[len(stores)-1]
	key := func(name string) shortener.Key {
		return shortener.Key{ID: quota.NewKeyID(), Name: name, Daily: 500, CreatedAt: noon, Hash: shortener.NewToken().Hash()}
	}
	want := func(keys ...shortener.Key) {
		t.Helper()
		for i, s := range stores {
			if got, err := s.Keys(t.Context()); err != nil || !slices.Equal(got, keys) {
				t.Errorf("handle %d: the keys are %+v, %v, want %+v", i, got, err, keys)
			}
		}
	}
	want()
	_, err := first.ChangeKey(t.Context(), "script", 1)
	wantError(t, err, shortener.ErrNoKey)
	wantError(t, first.DeleteKey(t.Context(), "script"), shortener.ErrNoKey)

	script, letter := key("script"), key("Rundbrief für Ölmühlen")
	for _, k := range []shortener.Key{script, letter} {
		if err := first.CreateKey(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	want(letter, script)
	wantError(t, other.CreateKey(t.Context(), key("script")), shortener.ErrKeyTaken)
	script.Daily = 7
	if got, err := other.ChangeKey(t.Context(), "script", 7); err != nil || got != script {
		t.Errorf("changed: %+v, %v", got, err)
	}
	want(letter, script)
	if err := other.DeleteKey(t.Context(), letter.Name); err != nil {
		t.Fatal(err)
	}
	want(script)
	wantError(t, first.DeleteKey(t.Context(), letter.Name), shortener.ErrNoKey)

	var group sync.WaitGroup
	var made atomic.Int64
	for i := range 10 {
		group.Go(func() {
			switch err := stores[i%len(stores)].CreateKey(t.Context(), key("wanted by ten")); {
			case err == nil:
				made.Add(1)
			case !errors.Is(err, shortener.ErrKeyTaken):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if made.Load() != 1 {
		t.Errorf("%d keys of one name were made", made.Load())
	}
}

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
