package web

import (
	"net/http"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

// What an operator does is seen by the next visitor, in words that are true.
func TestTakenDown(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	h := made(t, s, `{"url":"https://evil.example/","slug":"bad"}`)
	limited := made(t, s, `{"url":"https://evil.example/","slug":"few","max_visits":5}`)
	get := func(target string, status int, contains string) {
		t.Helper()
		wantAnswer(t, s.do(call{method: "GET", target: target}), status, contains)
	}
	const down = `"detail":"This link was taken down by the operator of this service."`
	seen := func() {
		t.Helper()
		for _, slug := range []string{"/bad", "/few"} {
			for _, suffix := range []string{"", "/", "+", "/qr.svg", "/qr.png"} {
				get(slug+suffix, http.StatusGone, down)
			}
		}
		wantAnswer(t, s.do(call{method: "GET", target: "/bad", header: map[string]string{"Accept": "text/html"}}), http.StatusGone, "was taken down by the operator")
	}
	sel := shortener.Selection{Host: "evil.example"}
	if n, err := s.service.TakeDown(t.Context(), sel, "phishing", ""); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	seen()
	for _, link := range []holder{h, limited} {
		wantAnswer(t, link.manage("GET", ""), http.StatusOK, `"taken_down":true,"blocked":false`)
		wantAnswer(t, link.manage("PATCH", `{"url":"https://example.org/"}`), http.StatusForbidden, "so it cannot be changed")
		wantAnswer(t, link.manage("DELETE", ""), http.StatusForbidden, "so it cannot be changed")
	}
	if _, err := s.service.BringBack(t.Context(), sel, ""); err != nil {
		t.Fatal(err)
	}
	wantLocation(t, s, "/bad", http.StatusFound, "https://evil.example/")
	wantLocation(t, s, "/few", http.StatusFound, "https://evil.example/")

	if _, err := s.service.AddBlock(t.Context(), "evil.example", ""); err != nil {
		t.Fatal(err)
	}
	seen()
	wantAnswer(t, h.manage("GET", ""), http.StatusOK, `"taken_down":false,"blocked":true`)
	wantAnswer(t, s.post(`{"url":"https://www.evil.example/"}`), http.StatusBadRequest, `"code":"blocked_destination","field":"url","detail":"url: leads to a host that is blocked here."`)
	wantAnswer(t, h.manage("PATCH", `{"url":"https://evil.example/x"}`), http.StatusBadRequest, "blocked_destination")
	wantAnswer(t, h.manage("PATCH", `{"url":"https://good.example/"}`), http.StatusOK, "good.example")
	wantLocation(t, s, "/bad", http.StatusFound, "https://good.example/")
}

// A client that is blocked afterwards may delete its links and not lead them elsewhere.
func TestBlockedClientsChange(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	h := made(t, s, `{"url":"https://example.org/","slug":"mine"}`)
	if _, err := s.service.PutOverride(t.Context(), shortener.Override{Target: "203.0.113.0/24", Limit: 0}); err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, h.manage("PATCH", `{"url":"https://other.example/"}`), http.StatusForbidden, `"code":"forbidden"`)
	wantLocation(t, s, "/mine", http.StatusFound, "https://example.org/")
	wantAnswer(t, h.manage("PATCH", `{"max_visits":9}`), http.StatusOK, `"max_visits":9`)
	wantAnswer(t, h.manage("DELETE", ""), http.StatusNoContent, "")
}

// Whoever an operator has blocked is told so, before anything is spent, and
// whoever has another limit is told that one.
func TestOverrides(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{every: time.Minute, burst: 1, policy: &quota.Policy{Client: 50, Network: 250}})
	set := func(target string, limit int64) {
		t.Helper()
		if _, err := s.service.PutOverride(t.Context(), shortener.Override{Target: target, Limit: limit}); err != nil {
			t.Fatal(err)
		}
	}
	set("203.0.113.0/24", 0)
	before := s.store.calls.Load()
	for range 3 {
		wantAnswer(t, s.post(goodJSON), http.StatusForbidden, `"detail":"The operator of this service lets you make no links."`)
	}
	if n := s.store.calls.Load() - before; n != 0 {
		t.Errorf("%d calls to the store", n)
	}
	wantAnswer(t, s.do(call{body: goodJSON, header: asJSON, from: "198.51.100.1:1"}), http.StatusCreated, "")
	set("203.0.113.0/24", 9)
	set("203.0.113.9", 7)
	wantAnswer(t, s.post(goodJSON), http.StatusCreated, "")
	wantAnswer(t, s.post(goodJSON), http.StatusTooManyRequests, "This client may make 7 links per UTC day and about one every minute.")
	wantAnswer(t, s.do(call{method: "GET", target: "/api/quota"}), http.StatusOK, `{"limit":7,"used":1,"remaining":6,`)
	set("203.0.113.9", quota.Unlimited)
	wantAnswer(t, s.post(goodJSON), http.StatusTooManyRequests, "This client may make about one every minute.")
	wantAnswer(t, s.do(call{method: "GET", target: "/api/quota"}), http.StatusOK, `{"limit":null,"used":null,"remaining":null,`)
	set("203.0.113.9", 0)
	wantAnswer(t, s.do(call{method: "GET", target: "/api/quota"}), http.StatusOK, `{"limit":0,"used":1,"remaining":0,"resets_at":"2026-11-30T00:00:00Z","open":false}`)
	wantAnswer(t, s.do(call{body: goodJSON, header: asJSON, from: "198.51.100.1:1"}), http.StatusTooManyRequests, "50 links per UTC day")
}
