package boltstore

import (
	"fmt"
	"strings"
	"testing"

	"snip/shortener"
)

func TestCache(t *testing.T) {
	t.Parallel()
	c := newCache()
	want := shortener.Link{Slug: "kept", Destination: "https://example.org/" + strings.Repeat("x", cacheDestination-20)}
	c.put(want)
	if got, ok := c.get("kept"); !ok || got != want {
		t.Errorf("got %+v, %v", got, ok)
	}
	long := want
	long.Slug, long.Destination = "long", want.Destination+"x"
	c.put(long)
	if _, ok := c.get("long"); ok {
		t.Error("a destination over the bound was kept")
	}
	// Twice as many links as there is room for: each is found under its own slug
	// only, and no more are held than there is room for.
	const room = cacheSets * cacheWays
	held := 0
	for i := range 2 * room {
		c.put(shortener.Link{Slug: shortener.Slug(fmt.Sprint(i))})
	}
	for i := range 2 * room {
		slug := shortener.Slug(fmt.Sprint(i))
		if link, ok := c.get(slug); ok {
			held++
			if link.Slug != slug {
				t.Fatalf("asked for %s, got %s", slug, link.Slug)
			}
		}
	}
	if held < room/2 || held > room {
		t.Errorf("%d links are held where there is room for %d", held, room)
	}
	c.clear()
	if _, ok := c.get("kept"); ok {
		t.Error("cleared, and still there")
	}
}

// TestVisitedLinks reads a link often, beside another that shares nothing but the
// store, and after the file has been opened again.
func TestVisitedLinks(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	mustCreate(t, s, noon, 1, "visited")
	mustCreate(t, s, noon, 1, "Visited")
	for _, slug := range []shortener.Slug{"visited", "Visited", "visited", "Visited"} {
		link, err := s.Get(t.Context(), slug)
		if err != nil || link.Slug != slug || link.Destination != "https://example.org/"+string(slug) {
			t.Errorf("Get(%s): %+v, %v", slug, link, err)
		}
	}
	if err := s.swap(); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.cache.get("visited"); ok {
		t.Error("what was read from the file before it was opened again is still served")
	}
	if _, err := s.Get(t.Context(), "visited"); err != nil {
		t.Error(err)
	}
}
