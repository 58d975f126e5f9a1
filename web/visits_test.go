package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"snip/shortener"
)

// A visitor's query goes on as it was sent, before the fragment; without the
// option it is left off.
func TestForwardQuery(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ destination, query, want string }{
		{"https://example.org/", "", "https://example.org/"},
		{"https://example.org/", "a=1", "https://example.org/?a=1"},
		{"https://example.org", "a=1", "https://example.org?a=1"},
		{"https://example.org/?a=1", "b=2", "https://example.org/?a=1&b=2"},
		{"https://example.org/?", "b=2", "https://example.org/?b=2"},
		{"https://example.org/?a&", "b=2", "https://example.org/?a&b=2"},
		{"https://example.org/#top", "b=2", "https://example.org/?b=2#top"},
		{"https://example.org/?a=1#top?x", "b=2", "https://example.org/?a=1&b=2#top?x"},
		{"https://example.org/#/route?x=1", "b=2", "https://example.org/?b=2#/route?x=1"},
		{"https://example.org/a%2Fb", "x=%2B+%zz&&%0d%0aSet-Cookie:a", "https://example.org/a%2Fb?x=%2B+%zz&&%0d%0aSet-Cookie:a"},
		{"https://example.org/", "q=ä", "https://example.org/?q=%C3%A4"},
		{"https://example.org/", "?", "https://example.org/??"},
		{"https://example.org/#top", "a#b", "https://example.org/?a%23b#top"},
		{"https://example.org/", "a=<x>\"{}|^`\\[]é%zz%", "https://example.org/?a=%3Cx%3E%22%7B%7D%7C%5E%60%5C%5B%5D%C3%A9%zz%"},
		{"https://ü.example/a b?c d#e f", "<", "https://xn--tda.example/a%20b?c%20d&%3C#e%20f"},
	} {
		s := newSite(t, siteSetup{})
		s.put(t, shortener.Link{Slug: "handed-on", Destination: row.destination, ForwardQuery: true})
		s.put(t, shortener.Link{Slug: "left-off", Destination: row.destination})
		for slug, want := range map[string]string{"handed-on": row.want, "left-off": shortener.Location(row.destination)} {
			w := s.do(call{method: "GET", target: "/" + slug + "?" + row.query})
			if got := w.Header().Get("Location"); got != want {
				t.Errorf("%s?%s, forwarding %s: %q, want %q", row.destination, row.query, slug, got, want)
			}
			for name := range w.Header() {
				if strings.EqualFold(name, "Set-Cookie") {
					t.Error("a header was injected")
				}
			}
		}
	}
}

// Each kind of visit is counted as what it is, once it has been stored, and looking
// is none.
func TestStatistics(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	h := made(t, s, `{"url":"https://example.org/","slug":"mine"}`)
	visit := func(method, target string, header map[string]string) {
		t.Helper()
		s.do(call{method: method, target: target, header: header})
	}
	for range 2 {
		visit("GET", "/mine", map[string]string{"Referer": "https://News.example/a?b", "User-Agent": "Mozilla/5.0 Firefox/140.0"})
	}
	visit("GET", "/mine.", map[string]string{"User-Agent": firefox})
	visit("GET", "/mine", nil)
	visit("HEAD", "/mine", nil)
	visit("GET", "/mine", map[string]string{"Sec-Purpose": "prefetch"})
	visit("GET", "/mine", map[string]string{"User-Agent": "Slackbot-LinkExpanding 1.0"})
	visit("GET", "/mine", map[string]string{"User-Agent": "Googlebot/2.1"})
	for _, target := range []string{"/mine+", "/mine/qr.svg", "/unknown", "/mine/x"} {
		visit("GET", target, nil)
	}
	s.time.advance(24 * time.Hour)
	visit("GET", "/mine", map[string]string{"User-Agent": firefox})
	if lost, err := s.service.StoreVisits(t.Context(), func() {}); lost != 0 || err != nil {
		t.Fatal(lost, err)
	}
	wantAnswer(t, h.manage("GET", ""), http.StatusOK,
		`"statistics":{"visits":4,"crawlers":2,"previews":1,"heads":1,"prefetches":1,"days":[{"day":"2026-11-29","visits":3},{"day":"2026-11-30","visits":1}],"referrers":[{"host":"news.example","visits":2}]}`)
	w := s.do(call{method: "GET", target: "/mine+", header: map[string]string{"Accept": "text/html"}})
	wantAnswer(t, w, http.StatusOK, "4 visits so far.")
}
