package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"snip/shortener"
)

func TestFollow(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	const destination = "https://example.org/a//b/../c%2Fd?q=a%2Bb&abc#%25ad"
	s.put(t, shortener.Link{Slug: "abc-1", Destination: destination})
	s.put(t, shortener.Link{Slug: "old", Destination: destination, ExpiresAt: s.time.now()})
	for target, status := range map[string]int{
		"/abc-1": 302, "/abc-1/": 302, "/abc-1?x=1": 302, "/%61bc-1": 302, "/abc-1%2F": 302,
		"/abc-1.": 302, "/abc-1),": 302, "/abc-1%3F": 302, "/abc-1%22": 302, "/abc-1%E2%80%9D": 302, "/abc-1%EF%BC%89%E3%80%82": 302, "/abc-1./": 302, "/abc-1/).": 302, "/abc-1%60": 302, "/abc-1%20": 302, "/abc-1&": 302, "/abc-1%E2%80%8B": 302,
		"/ABC-1": 404, "/abc": 404, "/abc-1//": 404, "/abc-1/x": 404, "/.abc-1": 404, "/ab.c-1": 404, "/...": 404,
		"/old": 410, "/old.": 410,
		"//evil.example": 404, "/%2F%2Fevil.example": 404, "/%5Cevil.example": 404, "///abc-1": 404, "/%2Fabc-1": 404,
		"/%00": 404, "/%FF%FE": 404, "/" + strings.Repeat("a", 9000): 404,
	} {
		for _, method := range []string{"GET", "HEAD"} {
			w := s.do(call{method: method, target: target})
			h := w.Header()
			if w.Code != status || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%s %.40s: %d, Cache-Control %q, want %d", method, target, w.Code, h.Get("Cache-Control"), status)
			}
			if status == 302 && (h.Get("Location") != destination || h.Get("Content-Length") != "0" || w.Body.Len() != 0) {
				t.Errorf("%s %s: %v %q", method, target, h, w.Body)
			}
			if status != 302 && (h.Get("Location") != "" || strings.Contains(w.Body.String(), "evil")) {
				t.Errorf("%s %s: Location %q, body %q", method, target, h.Get("Location"), w.Body)
			}
		}
	}
}

func TestFollowAsksTheStoreOnlyForSlugs(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	for _, target := range []string{"/wp-login.php", "/a/b", "/.env", "/ab", "/favicon.png"} {
		wantAnswer(t, s.do(call{method: "GET", target: target}), http.StatusNotFound, "not_found")
	}
	if n := s.store.gets.Load(); n != 0 {
		t.Errorf("%d look-ups", n)
	}
}

func TestRedirectStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 307, 308} {
		s := newSite(t, siteSetup{redirect: status})
		s.put(t, shortener.Link{Slug: "abc", Destination: "https://münchen.example/ß"})
		w := s.do(call{method: "GET", target: "/abc"})
		if got := w.Header().Get("Location"); w.Code != status || got != "https://xn--mnchen-3ya.example/%C3%9F" {
			t.Errorf("%d %q, want %d", w.Code, got, status)
		}
	}
}

func TestLinkEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	s.put(t, shortener.Link{Slug: "abc", Destination: "https://example.org/", ExpiresAt: s.time.now().Add(time.Second)})
	wantAnswer(t, s.do(call{method: "GET", target: "/abc"}), http.StatusFound, "")
	s.time.advance(time.Second)
	wantAnswer(t, s.do(call{method: "GET", target: "/abc"}), http.StatusGone, `"code":"gone"`)
}

// discard is the cheapest writer, so that what is measured is ours.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// A redirect allocates its Location and the header's place for it, and nothing more.
func TestFollowAllocates(t *testing.T) {
	s := newSite(t, siteSetup{})
	s.put(t, shortener.Link{Slug: "abcdefg", Destination: "https://example.org/some/where?x=1"})
	bare := s.undescribed
	r, err := http.NewRequest(http.MethodGet, "/abcdefg", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", firefox)
	w := &discard{header: make(http.Header)}
	// The race detector lets pools lose what they hold now and then, so the least counts.
	n := 100.0
	for range 50 {
		n = min(n, testing.AllocsPerRun(1, func() {
			clear(w.header)
			bare.ServeHTTP(w, r)
		}))
	}
	if n > 2 || w.header.Get("X-Robots-Tag") != "noindex" {
		t.Errorf("%v allocations, header %v", n, w.header)
	}
}

func BenchmarkFollow(b *testing.B) {
	s := newSite(b, siteSetup{})
	s.put(b, shortener.Link{Slug: "abcdefg", Destination: "https://example.org/some/where?x=1"})
	r, err := http.NewRequest(http.MethodGet, "/abcdefg", nil)
	if err != nil {
		b.Fatal(err)
	}
	w := &discard{header: make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		s.ServeHTTP(w, r)
	}
	if w.header.Get("Location") == "" {
		b.Fatal("not redirected")
	}
}
