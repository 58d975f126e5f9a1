package web

import (
	"bufio"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"snip/shortener"
)

// app is the origin that is listed.
const app = "https://app.example"

// newCORSSite is newSite with listed origins, and a throttle of one link per hour
// when it is throttled.
func newCORSSite(t *testing.T, throttled bool, origins ...string) *site {
	t.Helper()
	c := siteSetup{cors: origins}
	if throttled {
		c.every, c.burst = time.Hour, 1
	}
	return newSite(t, c)
}

// Every answer of the API may be read by a page of a listed origin, refusals
// included, and differs in nothing else from what it is without CORS.
func TestCORSAnswers(t *testing.T) {
	t.Parallel()
	asText := map[string]string{"Content-Type": "application/json", "Accept": "text/plain"}
	asPage := map[string]string{"Content-Type": "application/json", "Accept": "text/html"}
	const named = `{"url":"https://example.org/","slug":"spring"}`
	fault := func(s *site) { s.store.fail = func() error { return shortener.ErrUnavailable } }
	for _, row := range []struct {
		name    string
		before  func(*site)
		call    call
		status  int
		foreign int // the status for a page of another origin, where it differs
	}{
		{"created", nil, call{body: named, header: asJSON}, 201, 403},
		{"created as text", nil, call{body: named, header: asText}, 201, 403},
		{"created as a page", nil, call{body: named, header: asPage}, 201, 403},
		{"refused body", nil, call{body: `{"url":1}`, header: asJSON}, 400, 403},
		{"refused as a page", nil, call{body: `{"url":1}`, header: asPage}, 400, 403},
		{"unknown media type", nil, call{header: map[string]string{"Content-Type": "text/css"}}, 415, 403},
		{"too large", nil, call{body: strings.Repeat(" ", maxBody+1), header: asJSON}, 413, 403},
		{"throttled", func(s *site) { s.post(goodJSON) }, call{body: named, header: asJSON}, 429, 403},
		{"store down", fault, call{body: named, header: asJSON}, 503, 403},
		{"panic", func(s *site) { s.store.fail = func() error { panic("broken") } }, call{body: named, header: asJSON}, 500, 403},
		{"quota", nil, call{method: "GET", target: "/api/quota"}, 200, 0},
		{"quota by HEAD", nil, call{method: "HEAD", target: "/api/quota"}, 200, 0},
		{"quota with the store down", fault, call{method: "GET", target: "/api/quota"}, 503, 0},
		{"link without token", nil, call{method: "GET", target: "/api/links/spring"}, 401, 0},
		{"change without token", nil, call{method: "PATCH", target: "/api/links/spring"}, 401, 403},
		{"deletion without token", nil, call{method: "DELETE", target: "/api/links/spring"}, 401, 403},
		{"unknown route", nil, call{method: "GET", target: "/api/nothing"}, 404, 0},
		{"unknown route below one", nil, call{method: "GET", target: "/api/quota/x"}, 404, 0},
		{"another method", nil, call{method: "GET"}, 405, 0},
		{"another method of no route", nil, call{method: "POST", target: "/api/nothing"}, 405, 0},
		{"unknown method", nil, call{method: "FOO"}, 405, 0},
		{"no preflight", nil, call{method: "OPTIONS"}, 405, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			answer := func(origin string, listed ...string) *httptest.ResponseRecorder {
				s := newCORSSite(t, row.name == "throttled", listed...)
				if row.before != nil {
					row.before(s)
				}
				c := row.call
				c.header = maps.Clone(c.header)
				if origin != "" {
					c.header = merged(c.header, map[string]string{"Origin": origin, "Sec-Fetch-Site": "cross-site"})
				}
				return s.do(c)
			}
			plain := answer("")
			if plain.Code != row.status || plain.Header().Get(allowOrigin) != "" || strings.Contains(plain.Header().Get("Vary"), "Origin") {
				t.Fatalf("without CORS: %d, headers %v", plain.Code, plain.Header())
			}
			wantCORS(t, answer(app, "https://other.example", app), plain.Code, plain.Header(), app)
			wantCORS(t, answer("", app), plain.Code, plain.Header(), "")
			foreign := answer("https://evil.example", app)
			if row.foreign == 0 {
				wantCORS(t, foreign, plain.Code, plain.Header(), "")
			} else {
				wantCORS(t, foreign, row.foreign, foreign.Header().Clone(), "")
			}
		})
	}
}

func merged(a, b map[string]string) map[string]string {
	m := make(map[string]string)
	maps.Copy(m, a)
	maps.Copy(m, b)
	return m
}

// wantCORS compares an answer with that of a service without CORS. Nobody is
// allowed to read it when allowed is empty.
func wantCORS(t *testing.T, w *httptest.ResponseRecorder, status int, plain http.Header, allowed string) {
	t.Helper()
	want := plain.Clone()
	vary := strings.TrimSuffix(strings.TrimSuffix(plain.Get("Vary"), "Origin"), ", ")
	want.Set("Vary", strings.TrimPrefix(vary+", Origin", ", "))
	if allowed != "" {
		want.Set("Access-Control-Allow-Origin", allowed)
		want.Set("Access-Control-Expose-Headers", "Location, Retry-After, Quota-Remaining")
	}
	if w.Code != status {
		t.Errorf("origin %q: status %d, want %d", allowed, w.Code, status)
	}
	if diff := cmp.Diff(want, w.Header()); diff != "" {
		t.Errorf("origin %q: headers (-want +got):\n%s", allowed, diff)
	}
}

// Pages, redirects and probes are the same whether CORS is on or off, whoever asks.
func TestCORSIsForTheAPIAlone(t *testing.T) {
	t.Parallel()
	on, off := newCORSSite(t, false, app), newCORSSite(t, false)
	for _, s := range []*site{on, off} {
		s.put(t, shortener.Link{Slug: "abc", Destination: "https://example.org/"})
	}
	for _, target := range []string{"/", "/abc", "/nothing", "/healthz", "/readyz", "/-/snip.css", "/api", "/api%2Fquota", "/API/quota", "/x/api/quota"} {
		for _, method := range []string{"GET", "OPTIONS", "POST"} {
			c := call{method: method, target: target, header: map[string]string{"Origin": app, requestMethod: "GET"}}
			got, want := on.do(c), off.do(c)
			if diff := cmp.Diff(want.Header(), got.Header()); diff != "" || got.Code != want.Code {
				t.Errorf("%s %s: status %d, want %d; headers (-want +got):\n%s", method, target, got.Code, want.Code, diff)
			}
			if method == "OPTIONS" && got.Code != http.StatusMethodNotAllowed {
				t.Errorf("OPTIONS %s: %d", target, got.Code)
			}
		}
	}
}

// A preflight is answered from the routes, without a token, a unit or the store.
func TestPreflight(t *testing.T) {
	t.Parallel()
	s := newCORSSite(t, true, app)
	for range 3 {
		for target, methods := range map[string]string{
			"/api/links": "POST", "/api/links/spring": "GET, HEAD, PATCH, DELETE", "/api/quota": "GET, HEAD", "/api/nothing": "GET, HEAD",
		} {
			w := s.do(call{method: "OPTIONS", target: target, header: map[string]string{
				"Origin": app, requestMethod: "PUT", "Access-Control-Request-Headers": "content-type,x-other",
			}})
			want := http.Header{
				"Access-Control-Allow-Origin":   {app},
				"Access-Control-Allow-Methods":  {methods},
				"Access-Control-Allow-Headers":  {"Content-Type, Authorization, Idempotency-Key"},
				"Access-Control-Expose-Headers": {"Location, Retry-After, Quota-Remaining"},
				"Access-Control-Max-Age":        {"86400"},
				"Cache-Control":                 {"no-store"},
				"Vary":                          {"Origin"},
			}
			if diff := cmp.Diff(want, w.Header()); diff != "" || w.Code != http.StatusNoContent || w.Body.Len() != 0 {
				t.Errorf("%s: %d %q, headers (-want +got):\n%s", target, w.Code, w.Body, diff)
			}
		}
	}
	if n := s.store.calls.Load(); n != 0 {
		t.Errorf("%d calls to the store", n)
	}
	wantAnswer(t, s.post(goodJSON), http.StatusCreated, "") // the only token is still there
}

func TestNoPreflight(t *testing.T) {
	t.Parallel()
	s := newCORSSite(t, false, app)
	for _, header := range []http.Header{
		{},
		{"Origin": {app}},
		{"Access-Control-Request-Method": {"POST"}},
		{"Access-Control-Request-Method": {"POST"}, "Origin": {"https://evil.example"}},
		{"Access-Control-Request-Method": {"POST"}, "Origin": {"null"}},
		{"Access-Control-Request-Method": {"POST"}, "Origin": {"*"}},
		{"Access-Control-Request-Method": {"POST"}, "Origin": {"http://app.example"}},
		{"Access-Control-Request-Method": {"POST"}, "Origin": {"https://app.example:444"}},
		{"Access-Control-Request-Method": {"POST"}, "Origin": {"https://app.example.evil.example"}},
		{"Access-Control-Request-Method": {"POST"}, "Origin": {"https://sub.app.example"}},
		{"Access-Control-Request-Method": {"POST"}, "Origin": {"https://evil.example", app}},
		{"Access-Control-Request-Method": {"POST"}, "Origin": {app, "https://evil.example"}},
		{"Access-Control-Request-Method": {""}, "Origin": {app}},
	} {
		r := httptest.NewRequest("OPTIONS", "/api/links", nil)
		r.Header = header
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		h := w.Header()
		if w.Code != http.StatusMethodNotAllowed || h.Get("Allow") != "POST" || h.Get("Access-Control-Allow-Methods") != "" || h.Get("Vary") != "Accept, Accept-Language, Origin" {
			t.Errorf("%v: %d, headers %v", header, w.Code, h)
		}
		if listed := len(header["Origin"]) == 1 && header.Get("Origin") == app; listed != (h.Get(allowOrigin) != "") {
			t.Errorf("%v: %s %q", header, allowOrigin, h.Get(allowOrigin))
		}
	}
}

// A refusal that does not wait for the body can be read, too.
func TestCORSOnAnUnreadBody(t *testing.T) {
	t.Parallel()
	s := newCORSSite(t, true, app)
	wantAnswer(t, s.do(call{from: "127.0.0.1:1", body: goodJSON, header: asJSON}), http.StatusCreated, "")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	c := wire{Conn: conn, in: bufio.NewReader(conn)}
	c.send(t, "%sOrigin: %s\r\nSec-Fetch-Site: cross-site\r\nContent-Length: 30\r\n\r\n", head, app)
	h := c.answer(t, http.StatusTooManyRequests).Header
	if h.Get(allowOrigin) != app || h.Get(exposeHeaders) != "Location, Retry-After, Quota-Remaining" || h.Get("Vary") != "Accept, Accept-Language, Origin" {
		t.Errorf("headers %v", h)
	}
	c.closed(t)
}

// The deadline of a body reaches the connection with CORS on.
func TestCORSKeepsTheBodyTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		line := &oneConn{conn: far, closed: make(chan struct{})}
		server := &http.Server{Handler: newCORSSite(t, false, app)}
		go server.Serve(line)
		defer server.Close()
		c := wire{Conn: near, in: bufio.NewReader(near)}
		near.SetDeadline(time.Now().Add(2 * bodyTimeout))
		c.send(t, "%sOrigin: %s\r\nContent-Length: 100\r\n\r\n{", head, app)
		start := time.Now()
		if h := c.answer(t, http.StatusRequestTimeout).Header; h.Get(allowOrigin) != app {
			t.Errorf("headers %v", h)
		}
		if took := time.Since(start); took != bodyTimeout {
			t.Errorf("the answer took %s", took)
		}
		near.Close()
	})
}
