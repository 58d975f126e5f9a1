package storetest

import (
	"testing"

	"snip/shortener"
)

// testNewSlug draws slugs from every handle in turn, and again after a link was
// stored and the store restarted: none comes twice, all characters are equally likely in every place, and a slug
// has no more in common with the one before than chance brings about.
func testNewSlug(t *testing.T, stores []shortener.Store) {
	const (
		draws   = 100_000
		places  = shortener.GeneratedSlug
		letters = len(shortener.SlugAlphabet)
	)
	m := maker{t, stores[0], policy}
	seen := make(map[shortener.Slug]bool, draws)
	var count [places][256]int
	var before shortener.Slug
	shared := 0 // characters that stood in the same place of the slug before
	for i := range draws {
		if handle, ok := stores[0].(Restarter); ok && i%(draws/4) == draws/8 {
			if err := m.create(host(1, 1), noon, string(before)); err != nil {
				t.Fatal(err)
			}
			if err := handle.Restart(); err != nil {
				t.Fatal(err)
			}
		}
		slug := stores[i%len(stores)].NewSlug()
		if _, ok := shortener.ParseSlug(string(slug)); !ok || len(slug) != places {
			t.Fatalf("%q is not a slug of %d characters", slug, places)
		}
		if shortener.SpellsWord(slug) {
			t.Errorf("%q spells a word", slug)
		}
		seen[slug] = true
		for p := range places {
			count[p][slug[p]]++
			if before != "" && before[p] == slug[p] {
				shared++
			}
		}
		before = slug
	}
	// Of 57^7 slugs 0.003 equal pairs are expected by chance, so two are a fault.
	if len(seen) < draws-1 {
		t.Errorf("%d different slugs of %d", len(seen), draws)
	}
	// 1,754 of each in each place are expected, with a standard deviation of 41.5:
	// seven of these would come by chance once in a billion such tests.
	const expected, most = draws / letters, 290
	for p := range places {
		sum := 0
		for _, c := range []byte(shortener.SlugAlphabet) {
			n := count[p][c]
			sum += n
			if n < expected-most || n > expected+most {
				t.Errorf("%q stands in place %d of %d slugs, want about %d", c, p, n, expected)
			}
		}
		if sum != draws {
			t.Errorf("place %d has %d characters that are not in the alphabet", p, draws-sum)
		}
	}
	// One in 57 is expected: 12,281, with a standard deviation of 110.
	if n := draws * places / letters; shared < n-800 || shared > n+800 {
		t.Errorf("%d characters are those of the slug before, want about %d", shared, n)
	}
}
