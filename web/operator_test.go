package web

import (
	"io"
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
	const down = `"detail":"The operator of this service has disabled this link or its destination."`
	seen := func() {
		t.Helper()
		for _, slug := range []string{"/bad", "/few"} {
			for _, suffix := range []string{"", "/", "+", "/qr.svg", "/qr.png"} {
				get(slug+suffix, http.StatusGone, down)
			}
		}
		wantAnswer(t, s.do(call{method: "GET", target: "/bad", header: map[string]string{"Accept": "text/html"}}), http.StatusGone, "has disabled this link or its destination")
	}
	sel := shortener.Selection{Host: "evil.example"}
	if n, err := s.service.TakeDown(t.Context(), sel, "phishing", ""); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	seen()
	for _, link := range []holder{h, limited} {
		wantAnswer(t, link.manage("GET", ""), http.StatusOK, `"taken_down":true,"blocked":false`)
		wantAnswer(t, link.manage("PATCH", `{"url":"https://example.org/"}`), http.StatusForbidden, "so it cannot be changed or deleted")
		wantAnswer(t, link.manage("DELETE", ""), http.StatusForbidden, "so it cannot be changed or deleted")
	}
	if _, err := s.service.BringBack(t.Context(), sel, ""); err != nil {
		t.Fatal(err)
	}
	wantLocation(t, s, "/bad", http.StatusFound, "https://evil.example/")
	wantVisit(t, s, "/few", "https://evil.example/")

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

// Of a link that is gone the page says what may have happened, whatever it was, and a
// visitor cannot tell one that was deleted from one that has expired.
func TestGoneIsTrueOfAll(t *testing.T) {
	t.Parallel()
	const ended = "This link has expired, used up its visits or been deleted."
	const disabled = "The operator of this service has disabled this link or its destination."
	for cause, row := range map[string]struct {
		end  func(s *site, h holder) error
		want string
	}{
		"expired": {func(s *site, h holder) error { s.time.advance(time.Hour); return nil }, ended},
		"used up": {func(s *site, h holder) error {
			wantAnswer(t, h.manage("PATCH", `{"max_visits":1}`), http.StatusOK, "")
			wantVisit(t, s, "/mine", "https://evil.example/")
			return nil
		}, ended},
		"deleted": {func(s *site, h holder) error {
			wantAnswer(t, h.manage("DELETE", ""), http.StatusNoContent, "")
			return nil
		}, ended},
		"disabled": {func(s *site, _ holder) error {
			_, err := s.service.TakeDown(t.Context(), shortener.Selection{Slug: "mine"}, "spam", "")
			return err
		}, disabled},
		"host blocked": {func(s *site, _ holder) error {
			_, err := s.service.AddBlock(t.Context(), "evil.example", "")
			return err
		}, disabled},
	} {
		t.Log(cause)
		s := newSite(t, siteSetup{})
		h := made(t, s, `{"url":"https://evil.example/","slug":"mine","expires_at":"2026-11-29T11:00:00Z"}`)
		if err := row.end(s, h); err != nil {
			t.Fatal(err)
		}
		for _, target := range []string{"/mine", "/mine+", "/mine/qr.svg"} {
			wantAnswer(t, s.do(call{method: "GET", target: target}), http.StatusGone, `"detail":"`+row.want+`"`)
		}
		page := s.do(call{method: "GET", target: "/mine", header: map[string]string{"Accept": "text/html"}})
		wantAnswer(t, page, http.StatusGone, "<h1>This link no longer works</h1>")
	}
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
	page := parsePage(t, func(w io.Writer) error {
		_, err := s.do(call{method: "GET", target: "/"}).Body.WriteTo(w)
		return err
	})
	for _, id := range []string{"daily", "fresh", "opens"} { // a block ends when the operator wants it to
		if !page.id(t, id).hidden() {
			t.Errorf("who is blocked is told %q", page.id(t, id).text())
		}
	}
	wantAnswer(t, s.do(call{method: "GET", target: "/api/quota"}), http.StatusOK, `{"limit":0,"used":1,"remaining":0,"resets_at":"2026-11-30T00:00:00Z","open":false}`)
	wantAnswer(t, s.do(call{body: goodJSON, header: asJSON, from: "198.51.100.1:1"}), http.StatusTooManyRequests, "50 links per UTC day")
}
