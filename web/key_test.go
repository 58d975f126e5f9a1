package web

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

// makeKey makes a key of that many links a day and returns its text.
func (s *site) makeKey(t *testing.T, name string, daily int64) string {
	t.Helper()
	_, text, err := s.service.CreateKey(t.Context(), name, daily)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// with sends a request that shows a key or a token.
func (s *site) with(text string, c call) *httptest.ResponseRecorder {
	c.header = map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + text}
	return s.do(c)
}

// A key has a quota and a throttle of its own, wherever it calls from, and the
// service's level counts for it as for everyone.
func TestKeyIsAClient(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{policy: &quota.Policy{Client: 2, Network: 2, Service: 9}, every: time.Minute, burst: 2})
	key := s.makeKey(t, "newsletter", 5)
	make := func(text, from string) *httptest.ResponseRecorder {
		t.Helper()
		if text == "" {
			return s.do(call{body: goodJSON, header: asJSON, from: from})
		}
		return s.with(text, call{body: goodJSON, from: from})
	}
	const home, office, elsewhere = "198.51.100.1:1", "[2001:db8::1]:1", "192.0.2.1:1"
	for _, from := range []string{home, office} {
		wantAnswer(t, make(key, from), http.StatusCreated, "")
	}
	wantAnswer(t, make(key, elsewhere), http.StatusTooManyRequests, "This key may make 5 links per UTC day and about one every minute. The whole service may have a limit too. Wait")
	for range 2 { // the addresses have their own
		wantAnswer(t, make("", home), http.StatusCreated, "")
	}
	wantAnswer(t, make("", home), http.StatusTooManyRequests, "This client may make 2 links per UTC day")
	wantAnswer(t, s.with(key, call{method: "GET", target: "/api/quota"}), http.StatusOK, `{"limit":5,"used":2,"remaining":3,`)
	wantAnswer(t, s.do(call{method: "GET", target: "/api/quota", from: home}), http.StatusOK, `{"limit":2,"used":2,"remaining":0,`)

	s.time.advance(10 * time.Minute)
	for range 2 {
		wantAnswer(t, make(key, home), http.StatusCreated, "")
	}
	s.time.advance(10 * time.Minute)
	wantAnswer(t, make(key, home), http.StatusCreated, "")
	full, throttled := make(key, home), make(key, home)
	wantAnswer(t, full, http.StatusTooManyRequests, "This key may make 5 links")
	if full.Body.String() != throttled.Body.String() {
		t.Errorf("refused by the throttle: %s\nby the quota: %s", throttled.Body, full.Body)
	}
	if got := [2]string{throttled.Header().Get("Retry-After"), full.Header().Get("Retry-After")}; got != [2]string{"60", "49200"} {
		t.Errorf("Retry-After by the throttle and by the quota: %v", got)
	}
	// The service's day had nine.
	for _, from := range []string{office, elsewhere} {
		wantAnswer(t, make("", from), http.StatusCreated, "")
	}
	wantAnswer(t, make(s.makeKey(t, "late", 5), home), http.StatusTooManyRequests, "This key may make 5 links")
}

// A key that is not known spends nothing, whoever shows it, and chooses no bucket.
func TestUnknownKey(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{every: time.Hour, burst: 1})
	key, revoked := s.makeKey(t, "script", 5), s.makeKey(t, "revoked", 5)
	if err := s.service.RevokeKey(t.Context(), "revoked", 0); err != nil {
		t.Fatal(err)
	}
	before := s.store.calls.Load()
	for _, header := range [][]string{
		{"Bearer " + revoked}, {"Bearer " + key + "x"}, {"Bearer " + strings.ToLower(key)}, {"Bearer"}, {"Bearer "}, {"bearer snip_"},
		{"Bearer " + strings.Repeat("A", 26)}, {"Bearer " + strings.Repeat("A", 10_000)}, {"Bearer " + key + ", Bearer " + key},
		{"Bearer " + key, "Bearer " + key}, {"Basic QTpC", "Bearer " + revoked},
		{key}, {"Basic " + key}, {"Token " + revoked},
		{"Bearer\t" + key}, {"bearer\t" + revoked}, {"Bearer \t" + key}, {"Bearer\u00a0" + key}, {"Bearer:" + key}, {"Bearer=" + key}, {"Bearer," + key},
		{"Bearer\"" + key + "\""}, {"Bearer \"" + key + "\""}, {"Bearer" + key}, {"Bearer\t"}, {"Bearer\t" + strings.Repeat("A", 26)},
		{"Token\t" + key}, {"\u00a0Bearer " + key}, {"Basic QTpC, Bearer " + key}, {`Token token="` + key + `"`},
		{"Basic " + base64.StdEncoding.EncodeToString([]byte(key+":"))}, {"basic " + base64.StdEncoding.EncodeToString([]byte("me:"+key))},
		{"Token " + strings.ToUpper(key)}, {"Bearer " + strings.ToUpper(key)},
	} {
		for _, target := range []string{"/api/links", "/api/quota", "/api/keys/self/links"} {
			method := map[bool]string{true: "POST", false: "GET"}[target == "/api/links"]
			body := &countedBody{Reader: strings.NewReader(goodJSON)}
			r := httptest.NewRequest(method, target, body)
			r.Header.Set("Content-Type", "application/json")
			r.Header["Authorization"] = header
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			wantAnswer(t, w, http.StatusUnauthorized, `"code":"unauthorized"`)
			if w.Header().Get("WWW-Authenticate") != "Bearer" || body.read > 0 {
				t.Errorf("%s %q: WWW-Authenticate %q, %d bytes were read", target, header, w.Header().Get("WWW-Authenticate"), body.read)
			}
		}
	}
	if n := s.store.calls.Load() - before; n != 0 {
		t.Errorf("%d calls to the store", n)
	}
	// Other schemes are a proxy's own, and the token of the throttle is still there.
	w := s.do(call{body: goodJSON, header: map[string]string{"Content-Type": "application/json", "Authorization": "Basic QTpC"}})
	wantAnswer(t, w, http.StatusCreated, "")
	wantAnswer(t, s.with(key, call{body: goodJSON}), http.StatusCreated, "")
}

func TestKeyManagesItsLinks(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{every: time.Hour, burst: 2, changes: true})
	key, other := s.makeKey(t, "script", 5), s.makeKey(t, "other", 5)
	w := s.with(key, call{body: `{"url":"https://example.org/","slug":"mine"}`})
	wantAnswer(t, w, http.StatusCreated, "manage_token")
	made(t, s, `{"url":"https://example.org/","slug":"plain"}`)
	mine := call{target: "/api/links/mine", body: `{"url":"https://example.net/"}`}
	as := func(method string) call {
		c := mine
		c.method = method
		return c
	}
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		wrong := s.with(other, as(method))
		unknown := as(method)
		unknown.target = "/api/links/unknown"
		want := s.with(other, unknown)
		wantAnswer(t, wrong, http.StatusNotFound, "not_found")
		if wrong.Body.String() != want.Body.String() {
			t.Errorf("%s of another's link: %s, of none: %s", method, wrong.Body, want.Body)
		}
		wantAnswer(t, s.with("snip_UNKNOWN", as(method)), http.StatusUnauthorized, "unauthorized")
		s.time.advance(2 * time.Hour)
	}
	plain := call{method: "GET", target: "/api/links/plain"}
	wantAnswer(t, s.with(key, plain), http.StatusNotFound, "not_found")

	wantAnswer(t, s.with(key, as("GET")), http.StatusOK, `"slug":"mine"`)
	wantAnswer(t, s.with(key, as("PATCH")), http.StatusOK, `"url":"https://example.net/"`)
	if w := s.with(key, as("DELETE")); w.Code != http.StatusNoContent {
		t.Errorf("DELETE: %d %s", w.Code, w.Body)
	}
	// The key's changes have a bucket of their own, apart from the address's.
	wantAnswer(t, s.with(key, as("PATCH")), http.StatusTooManyRequests, "rate_limited")
	wantAnswer(t, s.with(other, as("PATCH")), http.StatusNotFound, "not_found")
	wantAnswer(t, s.with(key, as("GET")), http.StatusGone, "gone")
}

func TestKeyListsItsLinks(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	key, other := s.makeKey(t, "script", 500), s.makeKey(t, "other", 500)
	var want []string
	for i := range 205 {
		slug := fmt.Sprintf("link-%03d", i)
		wantAnswer(t, s.with(key, call{body: fmt.Sprintf(`{"url":"https://example.org/%d","slug":"%s"}`, i, slug)}), http.StatusCreated, "")
		s.time.advance(time.Millisecond)
		want = append(want, slug)
	}
	slices.Reverse(want)
	list := func(text, target string) (page linkPage) {
		t.Helper()
		w := s.with(text, call{method: "GET", target: target})
		wantAnswer(t, w, http.StatusOK, `{"links":[`)
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		return page
	}
	var got []string
	for target := "/api/keys/self/links"; target != ""; {
		page := list(key, target)
		for _, link := range page.Links {
			got = append(got, string(link.Slug))
		}
		if target = ""; page.Next != nil {
			target = strings.TrimPrefix(*page.Next, "https://s.example")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("it lists %v", got)
	}
	if page := list(other, "/api/keys/self/links"); len(page.Links) != 0 || page.Next != nil {
		t.Errorf("another key lists %+v", page)
	}
	for _, before := range []string{"unknown", "-", strings.Repeat("a", 10_000), "%00"} {
		wantAnswer(t, s.with(key, call{method: "GET", target: "/api/keys/self/links?before=" + before}), http.StatusBadRequest, "before: ")
	}
	wantAnswer(t, s.with(other, call{method: "GET", target: "/api/keys/self/links?before=link-100"}), http.StatusBadRequest, "before: ")
	wantAnswer(t, s.do(call{method: "GET", target: "/api/keys/self/links"}), http.StatusUnauthorized, "unauthorized")
	for _, target := range []string{"/api/keys", "/api/keys/self", "/api/keys/other/links"} {
		wantAnswer(t, s.with(key, call{method: "GET", target: target}), http.StatusNotFound, "not_found")
	}
}

// A private instance makes links for holders of keys and nobody else; everything
// that visitors do goes on.
func TestPrivateInstance(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{keysOnly: true, every: time.Hour, burst: 1})
	before := s.store.calls.Load()
	for range 3 { // more than the throttle would let pass
		w := s.post(goodJSON)
		wantAnswer(t, w, http.StatusUnauthorized, "Links are made here by holders of a key only.")
		if got := w.Header().Get("WWW-Authenticate"); got != "Bearer" {
			t.Errorf("WWW-Authenticate %q", got)
		}
	}
	wantAnswer(t, s.do(call{method: "GET", target: "/api/quota"}), http.StatusUnauthorized, "unauthorized")
	if n := s.store.calls.Load() - before; n != 0 {
		t.Errorf("%d calls to the store", n)
	}
	// To leave the header out would be of no use.
	wantAnswer(t, s.with("snip_unknown", call{body: goodJSON}), http.StatusUnauthorized,
		`"detail":"Send the key that the operator gave you in the header Authorization: Bearer, once."`)
	key := s.makeKey(t, "me", 5)
	wantAnswer(t, s.with(key, call{body: `{"url":"https://example.org/","slug":"mine"}`}), http.StatusCreated, "")
	wantLocation(t, s, "/mine", http.StatusFound, "https://example.org/")
	wantAnswer(t, s.do(call{method: "GET", target: "/mine+"}), http.StatusOK, "https://example.org/")
	s.put(t, shortener.Link{Slug: "older", Destination: "https://example.org/older"})
	wantLocation(t, s, "/older", http.StatusFound, "https://example.org/older")
}
