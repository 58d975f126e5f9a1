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
	want := target{Slug: "kept", Destination: "https://example.org/" + strings.Repeat("x", cacheDestination-20), ExpiresAt: 1}
	c.put(want, 0)
	if got := c.get("kept"); got == nil || got.target().Destination != want.Destination || got.expiresAt != want.ExpiresAt {
		t.Errorf("got %+v", got)
	}
	c.put(target{Slug: "long", Destination: want.Destination + "x"}, 0)
	if c.get("long") != nil {
		t.Error("a destination over the bound was kept")
	}
	// Twice as many links as there is room for: each is found under its own slug
	// only, and no more are held than there is room for.
	const room = cacheSets * cacheWays
	name := func(i int) string { return fmt.Sprint(i) }
	for i := range 2 * room {
		c.put(target{Slug: name(i), Destination: "to:" + name(i)}, 0)
	}
	held := func(first, end int) (n int) {
		for i := first; i < end; i++ {
			if v := c.get(shortener.Slug(name(i))); v != nil {
				n++
				if v.target().Destination != "to:"+name(i) {
					t.Fatalf("asked for %d, got %q", i, v.text)
				}
			}
		}
		return n
	}
	if n := held(0, 2*room); n < room*3/4 || n > room {
		t.Errorf("%d links are held where there is room for %d", n, room)
	}
	// Visited once, few of the late ones have displaced an early one (a fifth of the
	// ways were free, as hashes fall); visited again and again, most have.
	if n := held(room, 2*room); n > room/3 {
		t.Errorf("one visit each has brought in %d of %d", n, room)
	}
	for range 5 * cacheChance {
		for i := 2 * room; i < 2*room+room/4; i++ {
			c.put(target{Slug: name(i), Destination: "to:" + name(i)}, 0)
		}
	}
	if n := held(2*room, 2*room+room/4); n < room/5 {
		t.Errorf("many visits each have brought in %d of %d", n, room/4)
	}
	c.clear()
	if c.get("kept") != nil || held(0, 3*room) != 0 {
		t.Error("cleared, and still there")
	}
}

// What was read before an invalidation is not served after it, whichever comes
// into the set last, and takes nobody's place.
func TestCacheAfterAChange(t *testing.T) {
	t.Parallel()
	c := newCache()
	before := c.generation("changed")
	c.put(target{Slug: "changed", Destination: "old"}, before)
	if v := c.get("changed"); v == nil {
		t.Error("what was put is not there")
	}
	c.invalidate("changed")
	if v := c.get("changed"); v != nil {
		t.Errorf("invalidated, and still there: %+v", v)
	}
	c.put(target{Slug: "changed", Destination: "old"}, before)
	if v := c.get("changed"); v != nil {
		t.Errorf("read before the change, and served after it: %+v", v)
	}
	c.put(target{Slug: "changed", Destination: "new"}, c.generation("changed"))
	if v := c.get("changed"); v == nil || v.target().Destination != "new" {
		t.Errorf("read after the change: %+v", v)
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
		target, err := s.Follow(t.Context(), slug)
		if err != nil || target.Destination != "https://example.org/"+string(slug) {
			t.Errorf("Follow(%s): %+v, %v", slug, target, err)
		}
	}
	if err := s.swap(); err != nil {
		t.Fatal(err)
	}
	if s.cache.get("visited") != nil {
		t.Error("what was read from the file before it was opened again is still served")
	}
	if _, err := s.Follow(t.Context(), "visited"); err != nil {
		t.Error(err)
	}
}
