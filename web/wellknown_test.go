package web

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestRobots(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{
		"https://s.example":        "User-agent: *\nAllow: /$\nDisallow: /\n",
		"https://s.example/to/go/": "User-agent: *\nAllow: /to/go/$\nDisallow: /to/go/\n",
	} {
		s := newSite(t, siteSetup{public: public})
		w := s.do(call{method: "GET", target: "/robots.txt"})
		fetchers, others, _ := strings.Cut(w.Body.String(), "\n\n")
		if w.Code != 200 || w.Header().Get("Content-Type") != mediaText || others != want {
			t.Errorf("%s: %d %q", public, w.Code, w.Body)
		}
		if !strings.HasPrefix(fetchers, "User-agent: Slackbot\nUser-agent: Twitterbot\n") || !strings.HasSuffix(fetchers, "\nDisallow:") {
			t.Errorf("fetchers of previews: %q", fetchers)
		}
		for line := range strings.SplitSeq(fetchers, "\n") {
			if strings.HasSuffix(line, "/") { // a product's name, without a version
				t.Errorf("%q", line)
			}
		}
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
