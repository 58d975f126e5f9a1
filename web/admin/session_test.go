package admin

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"snip/shortener"
	"snip/shortener/memstore"
)

// visitor is a browser at the page, without a script.
type visitor struct {
	t      *testing.T
	h      http.Handler
	cookie string
	form   string // its session's form token
}

const origin = "http://example.com" // what httptest's requests are sent to

var formToken = regexp.MustCompile(`name="form_token" value="([^"]+)"`)

func (v *visitor) send(method, target string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	v.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if v.cookie != "" {
		r.Header.Set("Cookie", sessionCookie+"="+v.cookie)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	v.h.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		v.cookie = c.Value
	}
	return w
}

func (v *visitor) get(target string) *httptest.ResponseRecorder {
	v.t.Helper()
	return v.send("GET", target, nil)
}

// post sends a form of the page, with fields in pairs.
func (v *visitor) post(target string, fields ...string) *httptest.ResponseRecorder {
	v.t.Helper()
	form := url.Values{"form_token": {v.form}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return v.send("POST", target, form, "Origin", origin)
}

func (v *visitor) shows(token string) *httptest.ResponseRecorder {
	v.t.Helper()
	return v.post("/session", "token", token)
}

// signIn shows the right token and keeps the session's form token.
func signIn(t *testing.T, h http.Handler) *visitor {
	t.Helper()
	v := &visitor{t: t, h: h}
	if w := v.shows(token); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/" || v.cookie == "" {
		t.Fatalf("signing in: %d to %q", w.Code, w.Header().Get("Location"))
	}
	found := formToken.FindStringSubmatch(v.get("/").Body.String())
	if found == nil {
		t.Fatal("the page has no form token")
	}
	v.form = found[1]
	return v
}

// wantIn asserts that the page is shown and does what its forms say, or that
// neither is.
func (v *visitor) wantIn(s *shortener.Service, in bool) {
	v.t.Helper()
	page, live := v.get("/"), v.get("/live")
	if got := strings.Contains(page.Body.String(), "The newest links"); page.Code != http.StatusOK || got != in {
		v.t.Errorf("GET /: %d, the page: %t, want %t", page.Code, got, in)
	}
	if got := strings.Contains(live.Body.String(), "The newest links"); got != in || in != (live.Code == http.StatusOK) {
		v.t.Errorf("GET /live: %d, the page: %t, want %t", live.Code, got, in)
	}
	v.wantDone(s, v.post("/do/block", "host", "evil.example"), in)
}

// wantDone asserts whether the form that blocks a host was obeyed, and takes it
// back.
func (v *visitor) wantDone(s *shortener.Service, w *httptest.ResponseRecorder, done bool) {
	v.t.Helper()
	blocks, err := s.Blocks(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	if got := len(blocks) == 1; got != done || done != (w.Code == http.StatusSeeOther) || !done && w.Code != http.StatusForbidden {
		v.t.Errorf("the form: %d, done: %t, want %t", w.Code, got, done)
	}
	if len(blocks) == 1 {
		if err := s.RemoveBlock(v.t.Context(), blocks[0].Host, ""); err != nil {
			v.t.Fatal(err)
		}
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		do func(*visitor, *clock)
		in bool
	}{
		"signed in":   {func(v *visitor, c *clock) {}, true},
		"no cookie":   {func(v *visitor, c *clock) { v.cookie = "" }, false},
		"made up":     {func(v *visitor, c *clock) { v.cookie = "AAAAAAAAAAAAAAAAAAAAAAAAAA" }, false},
		"cut":         {func(v *visitor, c *clock) { v.cookie = v.cookie[1:] }, false},
		"the token":   {func(v *visitor, c *clock) { v.cookie = token }, false},
		"signed out":  {func(v *visitor, c *clock) { old := v.cookie; v.post("/session/end"); v.cookie = old }, false},
		"almost idle": {func(v *visitor, c *clock) { c.advance(idleSession - 1) }, true},
		"idle":        {func(v *visitor, c *clock) { c.advance(idleSession) }, false},
		"looked at by the script alone": {func(v *visitor, c *clock) {
			c.advance(idleSession / 2)
			v.get("/live")
			c.advance(idleSession / 2)
		}, false},
		"in use for long": {func(v *visitor, c *clock) {
			for range 23 {
				c.advance(oldSession / 24)
				v.get("/")
			}
			c.advance(oldSession/24 - 1)
		}, true},
		"old": {func(v *visitor, c *clock) {
			for range 24 {
				c.advance(oldSession / 24)
				v.get("/")
			}
		}, false},
		"signed in elsewhere too": {func(v *visitor, c *clock) { signIn(v.t, v.h) }, true},
		"the longest idle of too many": {func(v *visitor, c *clock) {
			c.advance(time.Minute)
			for range mostSessions {
				signIn(v.t, v.h)
			}
		}, false},
		"not the longest idle of too many": {func(v *visitor, c *clock) {
			signIn(v.t, v.h)
			c.advance(time.Minute)
			v.get("/")
			c.advance(time.Minute)
			for range mostSessions - 1 {
				signIn(v.t, v.h)
			}
		}, true},
		"behind sessions that have ended": {func(v *visitor, c *clock) {
			for range mostSessions - 1 {
				signIn(v.t, v.h)
			}
			for range 2 {
				c.advance(idleSession * 2 / 3)
				v.get("/")
			}
			signIn(v.t, v.h)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &clock{t: time.Date(2026, 11, 29, 1, 0, 0, 0, time.UTC)}
			h, service := openAdmin(t, memstore.New(), c.now)
			v := signIn(t, h)
			row.do(v, c)
			v.wantIn(service, row.in)
		})
	}
}

// clock is moved by hand.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// A cookie that somebody has put into the browser does not become a session's, and
// signing in ends the session that was.
func TestSessionsAreNew(t *testing.T) {
	t.Parallel()
	h, service := openAdmin(t, memstore.New(), time.Now)
	v := &visitor{t: t, h: h, cookie: "PUT-THERE-BY-SOMEBODY-ELSE"}
	v.shows(token)
	if v.cookie == "PUT-THERE-BY-SOMEBODY-ELSE" {
		t.Error("the cookie was taken on")
	}
	(&visitor{t: t, h: h, cookie: "PUT-THERE-BY-SOMEBODY-ELSE"}).wantIn(service, false)
	first := *signIn(t, h)
	again := first
	again.shows(token)
	if again.cookie == first.cookie {
		t.Error("two sessions have one cookie")
	}
	first.wantIn(service, false)
}

func TestSessionCookie(t *testing.T) {
	t.Parallel()
	h := newAdmin(t)
	for _, row := range []struct {
		target, forwarded string
		secure            bool
	}{
		{"http://127.0.0.1:8081/session", "", false},
		{"http://127.0.0.1:8081/session", "http", false},
		{"http://admin.example/session", "https", true},
		{"https://admin.example/session", "", true},
	} {
		v := &visitor{t: t, h: h}
		form := url.Values{"token": {token}}
		c := v.send("POST", row.target, form, "X-Forwarded-Proto", row.forwarded).Result().Cookies()
		if len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode || c[0].Path != "/" || c[0].Domain != "" || c[0].Secure != row.secure {
			t.Errorf("%s, %q: %v", row.target, row.forwarded, c)
		}
	}
}

// A wrong token opens nothing.
func TestSigningInWithWrongTokens(t *testing.T) {
	t.Parallel()
	h, service := openAdmin(t, memstore.New(), time.Now)
	v := &visitor{t: t, h: h}
	for _, wrong := range []string{"", "wrong", token + "x", token[1:], "Bearer " + token} {
		wantAnswer(t, v.shows(wrong), http.StatusForbidden, "That is not the token.")
	}
	if v.cookie != "" {
		t.Errorf("a cookie was given: %q", v.cookie)
	}
	v.wantIn(service, false)
	signIn(t, h).wantIn(service, true)
}

// The cookie opens the page and nothing that the token opens.
func TestWhatTheCookieOpens(t *testing.T) {
	t.Parallel()
	h, service := openAdmin(t, memstore.New(), time.Now)
	v := signIn(t, h)
	for _, target := range []string{"/api/keys", "/api/status", "/api/links", "/metrics", "/debug/pprof/", "/debug/pprof/cmdline", "/healthz", "/readyz", "/unknown", "//", "/live/", "/-/page/page.html", "/-/form.js", "/-/"} {
		wantAnswer(t, v.get(target), http.StatusUnauthorized, `"code":"unauthorized"`)
	}
	for _, target := range []string{"/api/keys", "/api/blocks", "/api/links/disable", "/api/clock", "/", "/live", "/do/unknown"} {
		wantAnswer(t, v.post(target, "host", "evil.example"), http.StatusUnauthorized, `"code":"unauthorized"`)
	}
	wantAnswer(t, v.get("/do/block"), http.StatusUnauthorized, `"code":"unauthorized"`)
	v.wantIn(service, true)
}

// Only a form of the session's own page is obeyed.
func TestForeignForms(t *testing.T) {
	t.Parallel()
	h, service := openAdmin(t, memstore.New(), time.Now)
	v, other := signIn(t, h), signIn(t, h)
	for name, row := range map[string]struct {
		formToken string
		headers   []string
		done      bool
	}{
		"its own, over TLS":                {v.form, []string{"Origin", origin, "Sec-Fetch-Site", "same-origin"}, true},
		"its own, without TLS":             {v.form, []string{"Origin", origin}, true},
		"another site's":                   {v.form, []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, false},
		"another site's, without TLS":      {v.form, []string{"Origin", "http://evil.example"}, false},
		"another port's":                   {v.form, []string{"Origin", origin + ":8080", "Sec-Fetch-Site", "same-site"}, false},
		"another port's, without TLS":      {v.form, []string{"Origin", origin + ":8080"}, false},
		"a frame's without an origin":      {v.form, []string{"Origin", "null"}, false},
		"not a browser's":                  {v.form, nil, false},
		"without its token":                {"", []string{"Origin", origin}, false},
		"with a wrong one":                 {v.form[1:], []string{"Origin", origin}, false},
		"with that of another's session":   {other.form, []string{"Origin", origin}, false},
		"its own, and the token says nope": {"wrong", []string{"Origin", origin, "Sec-Fetch-Site", "same-origin"}, false},
	} {
		form := url.Values{"host": {"evil.example"}, "form_token": {row.formToken}}
		t.Log(name)
		v.wantDone(service, v.send("POST", "/do/block", form, row.headers...), row.done)
	}
	// A sign-in from elsewhere could only be with a token that it knows, but is refused too.
	stranger := &visitor{t: t, h: h}
	w := stranger.send("POST", "/session", url.Values{"token": {token}}, "Sec-Fetch-Site", "cross-site")
	if w.Code != http.StatusForbidden || stranger.cookie != "" {
		t.Errorf("signed in from another site: %d", w.Code)
	}
	// Nor is anybody signed out by another page.
	v.send("POST", "/session/end", url.Values{"form_token": {v.form}}, "Origin", "https://evil.example")
	v.wantIn(service, true)
}

func TestHeadersOfThePage(t *testing.T) {
	t.Parallel()
	h := newAdmin(t)
	v := signIn(t, h)
	for name, w := range map[string]*httptest.ResponseRecorder{
		"sign in":  (&visitor{t: t, h: h}).get("/"),
		"page":     v.get("/"),
		"live":     v.get("/live"),
		"refused":  v.post("/do/block", "host", "a b", "form", "block"),
		"confirm":  v.post("/do/disable", "host", "evil.example", "reason", "spam"),
		"no token": (&visitor{t: t, h: h}).post("/do/block", "host", "evil.example"),
	} {
		got := w.Header()
		if got.Get("Content-Security-Policy") != pageCSP || got.Get("Cache-Control") != "no-store" ||
			got.Get("X-Content-Type-Options") != "nosniff" || got.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: %v", name, got)
		}
		if strings.Contains(w.Body.String(), token) || v.cookie != "" && strings.Contains(w.Body.String(), v.cookie) {
			t.Errorf("%s shows a secret", name)
		}
	}
	for name, mediaType := range map[string]string{"snip.css": "text/css", "snip.svg": "image/svg+xml", "page/admin.css": "text/css", "page/admin.js": "text/javascript"} {
		w := v.get("/-/" + name)
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), mediaType) || w.Body.Len() == 0 {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
}
