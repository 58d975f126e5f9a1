package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"snip/shortener"
)

// Whatever is not POST /api/links makes no link, spends no token and is not
// taken for a slug that happens to be written that way.
func TestOnlyOneRouteCreates(t *testing.T) {
	t.Parallel()
	methods := []string{"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "FOO", "post"}
	for _, method := range methods {
		for _, accept := range []string{"", "text/html", "text/plain"} {
			s := newSite(t, siteSetup{every: 1e9, burst: 1})
			w := s.do(call{method: method, body: goodJSON, header: map[string]string{
				"Content-Type": "application/json", "Accept": accept, "X-HTTP-Method-Override": "POST",
			}})
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
				t.Errorf("%s: %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
			}
			if n := s.store.calls.Load(); n != 0 {
				t.Errorf("%s: %d calls to the store", method, n)
			}
			wantAnswer(t, s.post(goodJSON), http.StatusCreated, "") // the only token is still there
		}
	}
}

func TestOtherSpellingsOfTheRoute(t *testing.T) {
	t.Parallel()
	for _, target := range []string{
		"/api/links/", "//api/links", "/api%2Flinks", "/API/links", "/%61pi/links", "/x/../api/links",
		"/./api/links", "/api//links", "/api/links/x/y", "/api/links%00", "/", "/healthz", "/api/quota", "/-/snip.css",
	} {
		s := newSite(t, siteSetup{})
		w := s.do(call{target: target, body: goodJSON, header: asJSON})
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d, Allow %q", target, w.Code, w.Header().Get("Allow"))
		}
		if n := s.store.calls.Load(); n != 0 {
			t.Errorf("POST %s: %d calls to the store", target, n)
		}
	}
	// An absolute request target and a query are the very same route.
	for _, target := range []string{"http://elsewhere.example/api/links", "/api/links?_method=GET"} {
		s := newSite(t, siteSetup{every: 1e9, burst: 1})
		wantAnswer(t, s.do(call{target: target, body: goodJSON, header: asJSON}), http.StatusCreated, "https://s.example/")
		wantAnswer(t, s.post(goodJSON), http.StatusTooManyRequests, "rate_limited")
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	for _, row := range []struct {
		target    string
		status    int
		mediaType string
	}{
		{"/", 200, mediaHTML},
		{"/api/quota", 200, mediaJSON},
		{"/healthz", 200, mediaJSON},
		{"/readyz", 200, mediaJSON},
		{"/-/snip.css", 200, "text/css; charset=utf-8"},
		{"/-/none.css", 404, mediaProblem},
		{"/-/", 404, mediaProblem},
		{"/-/../snip.css", 404, mediaProblem},
		{"/api", 404, mediaProblem},
		{"/api/links/abc/def", 404, mediaProblem},
	} {
		get := s.do(call{method: "GET", target: row.target})
		if get.Code != row.status || get.Header().Get("Content-Type") != row.mediaType {
			t.Errorf("GET %s: %d %q", row.target, get.Code, get.Header().Get("Content-Type"))
		}
		if get.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("GET %s may be sniffed", row.target)
		}
		head := s.do(call{method: "HEAD", target: row.target})
		if head.Code != row.status || head.Body.Len() != 0 {
			t.Errorf("HEAD %s: %d %q", row.target, head.Code, head.Body)
		}
		if got, want := head.Header().Get("Content-Length"), get.Header().Get("Content-Length"); got != want || want == "" {
			t.Errorf("%s: Content-Length %q for HEAD, %q for GET", row.target, got, want)
		}
		for _, method := range []string{"OPTIONS", "DELETE", "FOO"} {
			w := s.do(call{method: method, target: row.target})
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, row.target, w.Code, w.Header().Get("Allow"))
			}
		}
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{public: "https://s.example/go/to/"})
	s.put(t, shortener.Link{Slug: "abc", Destination: "https://example.org/"})
	for _, row := range []struct {
		method, target string
		status         int
	}{
		{"GET", "/go/to/abc", 302},
		{"GET", "/abc", 302},
		{"GET", "/go/to/abc/", 302},
		{"GET", "/go/to", 200},
		{"GET", "/go/to/", 200},
		{"GET", "/", 200},
		{"GET", "/go/to/healthz", 200},
		{"GET", "/go/toabc", 404},
		{"GET", "/go/to/go/to/abc", 404},
		{"GET", "/go/to//abc", 404},
		{"GET", "/go%2Fto/abc", 404},
		{"POST", "/go/to/api/links", 201},
		{"POST", "/go/to/api%2Flinks", 405},
		{"GET", "/go/to/api/links", 405},
	} {
		w := s.do(call{method: row.method, target: row.target, body: goodJSON, header: asJSON})
		if w.Code != row.status {
			t.Errorf("%s %s: %d, want %d", row.method, row.target, w.Code, row.status)
		}
		if w.Code == 201 && !strings.HasPrefix(w.Header().Get("Location"), "https://s.example/go/to/") {
			t.Errorf("short URL %s", w.Header().Get("Location"))
		}
	}
}

func TestReservedSlugs(t *testing.T) {
	t.Parallel()
	for public, want := range map[string][]string{
		"https://s.example":         {"api", "healthz", "readyz"},
		"https://s.example/":        {"api", "healthz", "readyz"},
		"https://s.example/links/x": {"api", "healthz", "readyz", "links"},
		"https://s.example/api":     {"api", "healthz", "readyz"},
	} {
		u, err := url.Parse(public)
		if err != nil {
			t.Fatal(err)
		}
		if got := ReservedSlugs(u); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", public, got, want)
		}
	}
	s := newSite(t, siteSetup{public: "https://s.example/links"})
	for _, slug := range []string{"api", "Healthz", "READYZ", "links"} {
		wantAnswer(t, s.post(`{"url":"https://example.org/","slug":"`+slug+`"}`), http.StatusBadRequest, "invalid_slug")
	}
}

func TestPanics(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	s.store.fail = func() error { panic("secret words") }
	w := s.do(call{method: "GET", target: "/abc"})
	wantAnswer(t, w, http.StatusInternalServerError, `"code":"internal"`)
	if strings.Contains(w.Body.String(), "secret") || !strings.Contains(s.log.String(), "secret words") {
		t.Errorf("answer %q, log %q", w.Body, s.log)
	}
	s.store.fail = func() error { panic(http.ErrAbortHandler) }
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("recovered %v", err)
		}
	}()
	s.do(call{method: "GET", target: "/abc"})
}

func TestNewRefusesSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{
		{PublicURL: &url.URL{Scheme: "https", Host: "s.example"}, RedirectStatus: 303},
		{PublicURL: &url.URL{Path: "/s"}},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("New accepts %+v", c)
		}
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{
		"https://S.Example:443/x":        "https://s.example",
		"http://s.example:80":            "http://s.example",
		"http://s.example:443":           "http://s.example:443",
		"https://münchen.example":        "https://xn--mnchen-3ya.example",
		"http://[2001:DB8::1]:8080/":     "http://[2001:db8::1]:8080",
		"http://localhost:8080":          "http://localhost:8080",
		"http://my_host.example:8080/go": "http://my_host.example:8080",
	} {
		u, err := url.Parse(public)
		if err != nil {
			t.Fatal(err)
		}
		if got := origin(u); got != want {
			t.Errorf("origin of %s: %s, want %s", public, got, want)
		}
	}
}

func TestPublicURLThatNamesARoute(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"https://s.example": true, "https://s.example/s": true, "https://s.example/apis": true, "https://s.example/s/api": true,
		"https://s.example/api": false, "https://s.example/API/x": false, "https://s.example/-": false, "https://s.example/healthz": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckPublicURL(u); (err == nil) != ok {
			t.Errorf("%s: got error %v", address, err)
		}
	}
}

func TestShortBase(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://localhost:8080":       "http://localhost:8080/",
		"https://s.example/s/":        "https://s.example/s/",
		"https://münchen.example/s":   "https://xn--mnchen-3ya.example/s/",
		"https://MÜNCHEN.example:444": "https://xn--mnchen-3ya.example:444/",
		"http://[2001:db8::1]:8080":   "http://[2001:db8::1]:8080/",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := shortBase(u); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
