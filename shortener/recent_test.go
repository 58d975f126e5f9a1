package shortener_test

import (
	"fmt"
	"testing"
	"time"

	"snip/shortener"
)

// What was made is known by the hour for two days, and by the link for the last
// fifty.
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
	want := func(day time.Time, hours map[int]int64) {
		t.Helper()
		for hour, got := range f.MadeByHour(day) {
			if got != hours[hour] {
				t.Errorf("%s, hour %d: %d links, want %d", day.Format(time.DateOnly), hour, got, hours[hour])
			}
		}
	}
	create(start, "aaa")
	create(start.Add(time.Second), "bbb")
	create(start.Add(2*time.Second), "ccc")
	tomorrow := start.Add(2 * time.Hour)
	create(tomorrow, "ddd")
	want(start, map[int]int64{22: 1, 23: 2})
	want(tomorrow, map[int]int64{0: 1})
	create(start.Add(48*time.Hour), "eee") // where the first hour was
	want(start, map[int]int64{23: 2})
	want(start.Add(48*time.Hour), map[int]int64{22: 1})

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
