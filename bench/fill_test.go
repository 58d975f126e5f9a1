package main

import (
	"path/filepath"
	"testing"

	"snip/shortener"
	"snip/shortener/boltstore"
)

// Every link leads to its own destination, and no unknown slug anywhere.
func TestFill(t *testing.T) {
	t.Parallel()
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "filled.db"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	l := &links{count: 2500} // not a multiple of what is made at once
	if err := l.make(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	for i := range l.count {
		if link, err := store.Get(t.Context(), shortener.Slug(l.slug(i))); err != nil || link.Destination != destination(i) {
			t.Fatalf("link %d: %+v, %v", i, link, err)
		}
	}
	for i := range unknownSlugs {
		if _, err := store.Get(t.Context(), shortener.Slug(l.unknown(i))); err == nil {
			t.Fatalf("%s leads somewhere", l.unknown(i))
		}
	}
}
