package web

import (
	"net/http"
	"testing"

	"snip/shortener"
)

// Each request is counted once, by the route and the status that its client saw.
func TestRequestTimes(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	s.put(t, shortener.Link{Slug: "abcdefg", Destination: "https://example.org/"})
	for _, c := range []call{
		{method: http.MethodGet, target: "/abcdefg"},
		{method: http.MethodHead, target: "/abcdefg"},
		{method: http.MethodGet, target: "/unknown"},
		{method: http.MethodPut, target: "/api/links"},
		{body: goodJSON, header: asJSON},
		{body: "{", header: asJSON},
		{method: http.MethodGet, target: "/-/no-such-file"},
		{method: http.MethodGet, target: "/api/links/abcdefg"},
	} {
		s.do(c)
	}
	got := map[string]int64{}
	s.config.RequestTimes.Each(func(route, class string, times shortener.HistogramCounts) {
		got[route+" "+class] = times.Count
		if times.Sum <= 0 {
			t.Errorf("%s %s took %v", route, class, times.Sum)
		}
	})
	want := map[string]int64{
		"/{slug} 3xx": 2, "/{slug} 4xx": 1, "/api/links 2xx": 1, "/api/links 4xx": 2,
		"/-/{rest} 4xx": 1, "/api/links/{slug} 4xx": 1,
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %d requests, want %d", name, got[name], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}
