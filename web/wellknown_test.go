package web

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"snip/shortener"
)

func TestRobots(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{
		"https://s.example":        "User-agent: *\nDisallow: /api/\nDisallow: /*/qr.\nDisallow: /healthz\nDisallow: /readyz\n",
		"https://s.example/to/go/": "User-agent: *\nDisallow: /to/go/api/\nDisallow: /to/go/*/qr.\nDisallow: /to/go/healthz\nDisallow: /to/go/readyz\n",
	} {
		s := newSite(t, siteSetup{public: public})
		w := s.do(call{method: "GET", target: "/robots.txt"})
		if w.Code != 200 || w.Header().Get("Content-Type") != mediaText || w.Body.String() != want {
			t.Errorf("%s: %d %q", public, w.Code, w.Body)
		}
	}
}

// Every answer is kept out of search engines but the form, which people look for, also
// those that robots.txt lets crawlers have: only then they can heed that.
func TestNotForSearchEngines(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	s.put(t, shortener.Link{Slug: "abc", Destination: "https://example.org/"})
	s.put(t, shortener.Link{Slug: "few", Destination: "https://example.org/", MaxVisits: 2})
	s.put(t, shortener.Link{Slug: "old", Destination: "https://example.org/", ExpiresAt: s.time.now()})
	for target, status := range map[string]int{
		"/abc": 302, "/abc+": 200, "/few+": 200, "/old": 410, "/old+": 410, "/none": 404, "/-/manage": 200, "/abc/qr.svg": 200, "/abc/qr.png": 200,
		"/api/links": 405, "/api/quota": 200, "/api/links/abc": 401,
	} {
		for _, method := range []string{"GET", "HEAD"} {
			w := s.do(call{method: method, target: target, header: map[string]string{"Accept": "text/html"}})
			if got := w.Header()["X-Robots-Tag"]; w.Code != status || !slices.Equal(got, []string{"noindex"}) {
				t.Errorf("%s %s: %d, X-Robots-Tag %q", method, target, w.Code, got)
			}
		}
	}
	for _, agent := range []string{"", slackbot} {
		w := s.do(call{method: "GET", target: "/few", header: map[string]string{"User-Agent": agent}})
		if got := w.Header()["X-Robots-Tag"]; !slices.Equal(got, []string{"noindex"}) {
			t.Errorf("a link whose visits are limited for %q: %d, X-Robots-Tag %q", agent, w.Code, got)
		}
	}
	home := s.do(call{method: "GET", target: "/", header: map[string]string{"Accept": "text/html"}})
	if got := home.Header().Values("X-Robots-Tag"); home.Code != 200 || len(got) > 0 {
		t.Errorf("the form: %d, X-Robots-Tag %q", home.Code, got)
	}
}

func TestFavicon(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{public: "https://s.example/to"})
	want := s.do(call{method: "GET", target: "/-/snip.svg"})
	for _, target := range []string{"/favicon.ico", "/to/favicon.ico"} {
		w := s.do(call{method: "GET", target: target})
		if w.Code != 200 || w.Header().Get("Content-Type") != "image/svg+xml" || w.Body.Len() == 0 || w.Body.String() != want.Body.String() {
			t.Errorf("%s: %d %q %q", target, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
		known := s.do(call{method: "GET", target: target, header: map[string]string{"If-None-Match": w.Header().Get("ETag")}})
		wantAnswer(t, known, http.StatusNotModified, "")
	}
}

func TestSecurityTxt(t *testing.T) {
	t.Parallel()
	const target = "/.well-known/security.txt"
	for contact, want := range map[string]string{
		"links@example.org":        "mailto:links@example.org",
		"mailto:links@example.org": "mailto:links@example.org",
		"https://example.org/tell": "https://example.org/tell",
	} {
		s := newSite(t, siteSetup{public: "https://s.example/go", contact: contact})
		w := s.do(call{method: "GET", target: target})
		body := "Contact: " + want + "\nExpires: 2027-11-29T00:00:00Z\nCanonical: https://s.example/.well-known/security.txt\n"
		if w.Code != 200 || w.Header().Get("Content-Type") != mediaText || w.Body.String() != body {
			t.Errorf("%s: %d %q, want %q", contact, w.Code, w.Body, body)
		}
		s.time.advance(400 * 24 * time.Hour)
		wantAnswer(t, s.do(call{method: "GET", target: target}), 200, "\nExpires: 2029-01-03T00:00:00Z\n")
	}
	wantAnswer(t, newSite(t, siteSetup{}).do(call{method: "GET", target: target}), http.StatusNotFound, "not_found")
}

func TestWellKnownAreReads(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{contact: "links@example.org"})
	for _, target := range []string{"/robots.txt", "/favicon.ico", "/.well-known/security.txt"} {
		get, head := s.do(call{method: "GET", target: target}), s.do(call{method: "HEAD", target: target})
		if head.Code != 200 || head.Body.Len() != 0 || head.Header().Get("Content-Length") != get.Header().Get("Content-Length") {
			t.Errorf("HEAD %s: %d %q, %v", target, head.Code, head.Body, head.Header())
		}
		if w := s.do(call{target: target}); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d, Allow %q", target, w.Code, w.Header().Get("Allow"))
		}
	}
	if n := s.store.calls.Load(); n != 0 {
		t.Errorf("%d calls to the store", n)
	}
}
