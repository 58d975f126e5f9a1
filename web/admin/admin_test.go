package admin

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/memstore"
)

const token = "correct-horse-battery"

func newAdmin(t *testing.T) http.Handler {
	t.Helper()
	h, err := New(Config{
		Service: shortener.New(shortener.Config{
			Store:  memstore.New(),
			Policy: quota.Policy{Client: 50, Network: 250, Service: 1000, Newcomers: 100},
			Now:    time.Now,
		}),
		Token: token,
		Log:   slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ask sends a request with what it shows, and headers in pairs.
func ask(h http.Handler, method, target, authorization, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func wantAnswer(t *testing.T, w *httptest.ResponseRecorder, status int, contains string) {
	t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), contains) {
		t.Errorf("answer %d %q, want %d with %q", w.Code, w.Body, status, contains)
	}
}

// Nothing is told to whoever does not show the token, not even what there is.
func TestOnlyTheTokenGetsIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newAdmin(t)
		for _, target := range []string{"/healthz", "/readyz", "/api/keys", "/debug/pprof/", "/debug/pprof/cmdline", "/", "/unknown"} {
			for _, shown := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer " + token + "x", "Bearer " + token[1:], "Basic " + token, token} {
				start := time.Now()
				w := ask(h, "GET", target, shown, "")
				wantAnswer(t, w, http.StatusUnauthorized, `"code":"unauthorized"`)
				if got := w.Header().Get("WWW-Authenticate"); got != "Bearer" {
					t.Errorf("GET %s: WWW-Authenticate %q", target, got)
				}
				if took := time.Since(start); shown != "" && took != slowness {
					t.Errorf("GET %s with %q is answered after %v", target, shown, took)
				}
			}
		}
		start := time.Now()
		for target, contains := range map[string]string{"/healthz": "ok", "/readyz": "ready", "/api/keys": `{"keys":[]}`, "/debug/pprof/": "goroutine"} {
			wantAnswer(t, ask(h, "GET", target, "Bearer "+token, ""), http.StatusOK, contains)
		}
		wantAnswer(t, ask(h, "GET", "/healthz", "bearer  "+token, ""), http.StatusOK, "ok")
		if took := time.Since(start); took != 0 {
			t.Errorf("the right token is slowed by %v", took)
		}
	})
}

// Whoever tries tokens at once waits all the same, or is told to; the operator
// is not kept out meanwhile.
func TestWrongTokensAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newAdmin(t)
		var group sync.WaitGroup
		var mu sync.Mutex
		answers := map[int]int{}
		for range 100 {
			group.Go(func() {
				w := ask(h, "GET", "/api/keys", "Bearer wrong", "")
				mu.Lock()
				defer mu.Unlock()
				answers[w.Code]++
				if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") != "1" {
					t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
				}
			})
		}
		synctest.Wait()
		wantAnswer(t, ask(h, "GET", "/api/keys", "Bearer "+token, ""), http.StatusOK, "keys")
		group.Wait()
		if answers[http.StatusUnauthorized] != mostSlowed || answers[http.StatusTooManyRequests] != 100-mostSlowed {
			t.Errorf("answers: %v", answers)
		}
	})
}

// A page of another site cannot write, whatever an operator's browser adds.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	h := newAdmin(t)
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}} {
		w := ask(h, "POST", "/api/keys", "Bearer "+token, `{"name":"a","daily":1}`, header...)
		wantAnswer(t, w, http.StatusForbidden, "")
	}
	wantAnswer(t, ask(h, "GET", "/api/keys", "Bearer "+token, ""), http.StatusOK, `{"keys":[]}`)
	wantAnswer(t, ask(h, "POST", "/api/keys", "Bearer "+token, `{"name":"a","daily":1}`, "Sec-Fetch-Site", "same-origin"), http.StatusCreated, `"name":"a"`)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	h := newAdmin(t)
	do := func(method, target, body string, status int, contains string) {
		t.Helper()
		wantAnswer(t, ask(h, method, target, "Bearer "+token, body), status, contains)
	}
	do("POST", "/api/keys", `{"name":"a/b?c&d ../é","daily":5}`, http.StatusCreated, `"daily":5,"used":0,"created_at":"`)
	do("GET", "/api/keys", "", http.StatusOK, `{"keys":[{"name":"a/b?c&d ../é","id":"`)
	do("PATCH", "/api/keys?name=a%2Fb%3Fc%26d+..%2F%C3%A9", `{"daily":7}`, http.StatusOK, `"daily":7`)
	do("POST", "/api/keys", `{"name":"a/b?c&d ../é","daily":5}`, http.StatusConflict, "exists already")
	do("PATCH", "/api/keys?name=unknown", `{"daily":7}`, http.StatusNotFound, "does not exist.")
	do("DELETE", "/api/keys", "", http.StatusNotFound, "does not exist.")
	for _, body := range []string{"", "{", "[]", `{"name":"x"}`, `{"name":"x","daily":"5"}`, `{"name":"x","daily":5,"extra":1}`, `{"name":"","daily":5}`, `{"name":"x","daily":5} {}`} {
		do("POST", "/api/keys", body, http.StatusBadRequest, "invalid_request")
	}
	do("POST", "/api/keys", `{"name":"`+strings.Repeat("x", maxBody)+`","daily":5}`, http.StatusBadRequest, "invalid_request")
	do("DELETE", "/api/keys?name=a%2Fb%3Fc%26d+..%2F%C3%A9", "", http.StatusNoContent, "")
	do("GET", "/api/keys", "", http.StatusOK, `{"keys":[]}`)
	do("PUT", "/api/keys", "", http.StatusMethodNotAllowed, "")
	if _, err := New(Config{Token: "short"}); err == nil {
		t.Error("a token that can be guessed is taken")
	}
}
