package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"snip/shortener"
)

// holder is whoever made a link.
type holder struct {
	*site
	slug, token string
}

// made makes a link and keeps its token.
func made(t *testing.T, s *site, body string) holder {
	t.Helper()
	w := s.post(body)
	wantAnswer(t, w, http.StatusCreated, "manage_token")
	var link struct {
		Slug  string `json:"slug"`
		Token string `json:"manage_token"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &link); err != nil {
		t.Fatal(err)
	}
	return holder{s, link.Slug, link.Token}
}

func (h holder) manage(method, body string) *httptest.ResponseRecorder {
	return h.do(call{method: method, target: "/api/links/" + h.slug, body: body,
		header: map[string]string{"Authorization": "Bearer " + h.token, "Content-Type": "application/json"}})
}

func TestManage(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	h := made(t, s, `{"url":"https://example.org/a","slug":"mine","max_visits":3}`)
	wantAnswer(t, h.manage("GET", ""), http.StatusOK,
		`{"slug":"mine","short_url":"https://s.example/mine","url":"https://example.org/a","created_at":"2026-11-29T10:00:00Z","expires_at":null,"max_visits":3,"forward_query":false,"show_destination":false,"direct_redirect":false,"visits":0,"taken_down":false,"blocked":false,"statistics":{"visits":0,`)
	wantVisit(t, s, "/mine", "https://example.org/a")
	wantAnswer(t, h.manage("GET", ""), http.StatusOK, `"visits":1`)

	wantAnswer(t, h.manage("PATCH", `{"url":" https://example.net/b?c#d "}`), http.StatusOK, `"url":"https://example.net/b?c#d"`)
	wantVisit(t, s, "/mine", "https://example.net/b?c#d")
	wantAnswer(t, h.manage("PATCH", `{"forward_query":true,"max_visits":null}`), http.StatusOK, `"max_visits":null,"forward_query":true,"show_destination":false,"direct_redirect":false,"visits":null`)
	wantLocation(t, s, "/mine?x=%2B&y", http.StatusFound, "https://example.net/b?c&x=%2B&y#d")

	wantAnswer(t, h.manage("PATCH", `{"expires_at":"2026-11-29T12:00:00+01:00"}`), http.StatusOK, `"expires_at":"2026-11-29T11:00:00Z"`)
	s.time.advance(time.Hour)
	wantAnswer(t, s.do(call{method: "GET", target: "/mine"}), http.StatusGone, "gone")
	wantAnswer(t, h.manage("PATCH", `{"expires_at":null}`), http.StatusOK, `"expires_at":null`)
	wantLocation(t, s, "/mine", http.StatusFound, "https://example.net/b?c#d")

	wantAnswer(t, h.manage("PATCH", `{}`), http.StatusOK, `"url":"https://example.net/b?c#d"`)

	used := s.used(t)
	if w := h.manage("DELETE", ""); w.Code != http.StatusNoContent || w.Body.Len() != 0 {
		t.Errorf("DELETE: %d %q", w.Code, w.Body)
	}
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		wantAnswer(t, h.manage(method, `{}`), http.StatusGone, "gone")
	}
	wantAnswer(t, s.do(call{method: "GET", target: "/mine"}), http.StatusGone, "gone")
	wantAnswer(t, s.post(`{"url":"https://example.org/","slug":"mine"}`), http.StatusConflict, "slug_taken")
	if got := s.used(t); got != used || used != 1 {
		t.Errorf("%d used after it was deleted, %d before, want 1", got, used)
	}
}

func wantLocation(t *testing.T, s *site, target string, status int, location string) {
	t.Helper()
	w := s.do(call{method: "GET", target: target})
	if got := w.Header().Get("Location"); w.Code != status || got != location {
		t.Errorf("GET %s: %d to %q, want %d to %q", target, w.Code, got, status, location)
	}
}

// wantVisit visits a link whose visits are limited.
func wantVisit(t *testing.T, s *site, target, location string) {
	t.Helper()
	w := s.do(call{method: "POST", target: target})
	if got := w.Header().Get("Location"); w.Code != http.StatusSeeOther || got != location {
		t.Errorf("POST %s: %d to %q, want 303 to %q", target, w.Code, got, location)
	}
}

// Nobody learns from a wrong token whether there is such a link.
func TestWrongToken(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	h := made(t, s, `{"url":"https://example.org/","slug":"mine"}`)
	other := made(t, s, `{"url":"https://example.org/","slug":"theirs"}`)
	s.put(t, shortener.Link{Slug: "untold", Destination: "https://example.org/"}) // made without a token
	gone := made(t, s, `{"url":"https://example.org/","slug":"gone"}`)
	gone.manage("DELETE", "")
	for _, method := range []string{"GET", "HEAD", "PATCH", "DELETE"} {
		want := holder{s, "unknown", h.token}.manage(method, `{"url":"https://evil.example/"}`)
		if want.Code != http.StatusNotFound {
			t.Errorf("%s of an unknown slug: %d", method, want.Code)
		}
		for _, wrong := range []holder{
			{s, "mine", other.token}, {s, "mine", strings.ToLower(h.token)}, {s, "mine", h.token + "x"}, {s, "Mine", h.token},
			{s, "untold", h.token}, {s, "untold", strings.Repeat("A", 26)}, {s, "gone", h.token}, {s, "-", h.token}, {s, "%00", h.token},
		} {
			got := wrong.manage(method, `{"url":"https://evil.example/"}`)
			if got.Code != want.Code || got.Body.String() != want.Body.String() {
				t.Errorf("%s %s with a wrong token: %d %q, want %d %q", method, wrong.slug, got.Code, got.Body, want.Code, want.Body)
			}
		}
	}
	wantLocation(t, s, "/mine", http.StatusFound, "https://example.org/")
}

func TestNoToken(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	h := made(t, s, `{"url":"https://example.org/","slug":"mine"}`)
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		for _, authorization := range []string{"", "Bearer", "Bearer ", h.token, "Basic " + h.token, "Bearer " + strings.Repeat("a", 257)} {
			header := map[string]string{"Content-Type": "application/json"}
			if authorization != "" {
				header["Authorization"] = authorization
			}
			w := s.do(call{method: method, target: "/api/links/mine?token=" + h.token, body: `{}`, header: header})
			wantAnswer(t, w, http.StatusUnauthorized, "unauthorized")
			if w.Header().Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("WWW-Authenticate %q", w.Header().Get("WWW-Authenticate"))
			}
		}
	}
	wantAnswer(t, s.do(call{method: "GET", target: "/api/links/mine", header: map[string]string{"Authorization": "bEARER  " + h.token}}), http.StatusOK, "mine")
}

// A change passes every rule that a new link does, and a refused one changes
// nothing.
func TestRefusedChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	h := made(t, s, `{"url":"https://example.org/","slug":"mine","max_visits":5}`)
	before := h.manage("GET", "").Body.String()
	for body, want := range map[string]string{
		`{"url":"javascript:alert(1)"}`:                  "invalid_url",
		`{"url":"https://s.example/x"}`:                  "blocked_destination",
		`{"url":"http://127.0.0.1/"}`:                    "blocked_destination",
		`{"url":null}`:                                   "url: must be a string",
		`{"url":7}`:                                      "url: must be a string",
		`{"expires_at":"2020-01-01T00:00:00Z"}`:          "invalid_expiry",
		`{"expires_at":"tomorrow"}`:                      "invalid_expiry",
		`{"max_visits":0}`:                               "from 1 to 10000",
		`{"max_visits":10001}`:                           "from 1 to 10000",
		`{"max_visits":"5"}`:                             "whole number",
		`{"max_visits":1.5}`:                             "whole number",
		`{"forward_query":null}`:                         "true or false",
		`{"forward_query":"yes"}`:                        "true or false",
		`{"slug":"other"}`:                               `unknown field \"slug\"`,
		`{"url":"https://example.net/","max_visits":-1}`: "from 1 to 10000",
		`{"url":"https://example.net/","url":"https://example.net/again"}`: "given twice",
		`[]`: "one JSON object",
		``:   "one JSON object",
	} {
		wantAnswer(t, h.manage("PATCH", body), http.StatusBadRequest, want)
	}
	w := s.do(call{method: "PATCH", target: "/api/links/mine", body: "url=https://example.net/",
		header: map[string]string{"Authorization": "Bearer " + h.token, "Content-Type": "application/x-www-form-urlencoded"}})
	wantAnswer(t, w, http.StatusUnsupportedMediaType, "unsupported_media_type")
	if strings.Contains(w.Body.String(), "or a form") {
		t.Errorf("a change is told to come as a form: %s", w.Body)
	}
	w = s.do(call{method: "PATCH", target: "/api/links/mine", body: "{}", header: map[string]string{"Authorization": "Bearer " + h.token}})
	wantAnswer(t, w, http.StatusUnsupportedMediaType, "no Content-Type")
	w = s.do(call{method: "PATCH", target: "/api/links/mine", body: "{}",
		header: map[string]string{"Authorization": "Bearer " + h.token, "Content-Type": "application/merge-patch+json"}})
	wantAnswer(t, w, http.StatusOK, "mine")
	w = s.do(call{method: "DELETE", target: "/api/links/mine",
		header: map[string]string{"Authorization": "Bearer " + h.token, "Sec-Fetch-Site": "cross-site"}})
	wantAnswer(t, w, http.StatusForbidden, "forbidden")
	if after := h.manage("GET", "").Body.String(); after != before {
		t.Errorf("changed by what was refused: %s", after)
	}
}

// A limit counts the visits that were made under one, and no others.
func TestVisitsOfALaterLimit(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	h := made(t, s, `{"url":"https://example.org/","slug":"mine","direct_redirect":true}`)
	visit := func(statuses ...int) {
		t.Helper()
		for _, status := range statuses {
			wantAnswer(t, s.do(call{method: "GET", target: "/mine"}), status, "")
		}
	}
	limit := func(to, counted string) {
		t.Helper()
		wantAnswer(t, h.manage("PATCH", `{"max_visits":`+to+`}`), http.StatusOK, `"visits":`+counted+`,`)
	}
	visit(302, 302, 302)
	limit("2", "0")
	visit(302, 302, 410)
	limit("null", "null")
	visit(302, 302)
	limit("3", "2")
	visit(302, 410)
	limit("3", "3")
	visit(410)
}

// limitedChange is what a limited change is told, whichever limit it is.
const limitedChange = `"code":"rate_limited","detail":"The limit for changes is reached. Wait as long as the Retry-After header says, then try again."`

// Changes have a throttle of their own: they take no token of creations, and
// creations none of theirs.
func TestChangesAreThrottled(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{every: 10 * time.Second, burst: 2, changes: true})
	h := made(t, s, `{"url":"https://example.org/","slug":"mine"}`)
	for range 2 {
		wantAnswer(t, h.manage("PATCH", `{"forward_query":true}`), http.StatusOK, "")
	}
	calls := s.store.calls.Load()
	for _, method := range []string{"PATCH", "DELETE"} {
		w := h.manage(method, `{}`)
		wantAnswer(t, w, http.StatusTooManyRequests, limitedChange)
		if w.Header().Get("Retry-After") != "10" {
			t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
		}
	}
	if s.store.calls.Load() != calls {
		t.Error("a refused change touched the store")
	}
	wantAnswer(t, h.manage("GET", ""), http.StatusOK, "mine") // reading is free
	wantAnswer(t, s.post(goodJSON), http.StatusCreated, "")
	wantAnswer(t, s.post(goodJSON), http.StatusTooManyRequests, "")
}
