package shortener_test

import (
	"fmt"
	"testing"
	"time"

	"snip/shortener"
)

// The last fifty links are known.
func TestRecent(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	start := time.Date(2026, 11, 29, 22, 59, 59, 0, time.UTC)
	create := func(at time.Time, slug string) {
		t.Helper()
		f.clock.set(at)
		if _, err := f.create(shortener.NewLink{URL: "https://example.org/", Slug: slug}); err != nil {
			t.Fatal(err)
		}
	}
	create(start, "aaa")
	create(start.Add(time.Second), "bbb")
	create(start.Add(2*time.Second), "ccc")
	tomorrow := start.Add(2 * time.Hour)
	create(tomorrow, "ddd")
	create(start.Add(48*time.Hour), "eee")

	newest := func() (slugs string) {
		t.Helper()
		links, err := f.Newest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			slugs += string(l.Slug) + " "
		}
		return slugs
	}
	if err := f.Remove(t.Context(), "ddd", ""); err != nil {
		t.Fatal(err)
	}
	if got := newest(); got != "eee ccc bbb aaa " {
		t.Errorf("the newest: %s", got)
	}
	for i := range shortener.RecentLinks - 2 { // eee and the deleted one
		create(start.Add(49*time.Hour), fmt.Sprintf("more-%d", i))
	}
	links, err := f.Newest(t.Context())
	if err != nil || len(links) != shortener.RecentLinks-1 || links[len(links)-1].Slug != "eee" {
		t.Errorf("%d links, %v: %v", len(links), err, links)
	}
}
