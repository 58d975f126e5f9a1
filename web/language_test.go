package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"golang.org/x/net/html"

	"snip/quota"
	"snip/shortener"
)

func TestLanguageIsChosen(t *testing.T) {
	t.Parallel()
	c := testCatalogue(t)
	long := strings.Repeat("fr-FR;q=0.1,", 100)
	for _, row := range []struct {
		query  string
		accept []string
		want   string
		chosen bool
	}{
		{"", nil, "en", false},
		{"", []string{""}, "en", false},
		{"", []string{"ko"}, "ko", false},
		{"", []string{"ko-KR,ko;q=0.9,en-US;q=0.8,en;q=0.7"}, "ko", false},
		{"", []string{"JA-jp"}, "ja", false},
		{"", []string{"en-US,en;q=0.9,ko;q=0.8"}, "en", false},
		{"", []string{"en;q=0.5, ja;q=0.6"}, "ja", false},
		{"", []string{"fr, ko;q=0.5"}, "ko", false},
		{"", []string{"fr"}, "en", false},
		{"", []string{"*"}, "en", false},
		{"", []string{"ko;q=0, ja;q=0.1"}, "ja", false},
		{"", []string{"fr", "ja"}, "ja", false},
		{"", []string{"ko, not_a tag"}, "en", false},
		{"", []string{"\xff\x00"}, "en", false},
		{"", []string{"ko," + long}, "ko", false},
		{"", []string{long + "ko"}, "en", false},
		{"", []string{strings.Repeat("x", 300)}, "en", false},
		{"lang=ko", nil, "ko", true},
		{"lang=en", []string{"ja"}, "en", true},
		{"a=b&lang=ja&c=d", []string{"ko"}, "ja", true},
		{"lang=ja&lang=ko", nil, "ja", true},
		{"lang=fr", []string{"ko"}, "ko", false},
		{"lang=", []string{"ko"}, "ko", false},
		{"lang=KO", nil, "en", false},
		{"lang=ko-KR", nil, "en", false},
		{"slang=ko", nil, "en", false},
		{"lang=%zz", nil, "en", false},
		{"lang=%22%3E", nil, "en", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/?"+row.query, nil)
		r.Header["Accept-Language"] = row.accept
		if got := c.choose(r); got.Tag != row.want || got.chosen != row.chosen {
			t.Errorf("?%s and %.50q: %s, %t, want %s, %t", row.query, row.accept, got.Tag, got.chosen, row.want, row.chosen)
		}
	}
}

// Without the header, a refusal is not made to wait for a language.
func TestNoLanguageCostsNothing(t *testing.T) {
	c := testCatalogue(t)
	r := httptest.NewRequest(http.MethodPost, "/api/links", nil)
	if allocated := testing.AllocsPerRun(100, func() { c.choose(r) }); allocated > 0 {
		t.Errorf("%g allocations", allocated)
	}
}

func decode(t *testing.T, w *httptest.ResponseRecorder, v any) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), v, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatalf("%q: %v", w.Body, err)
	}
}

// refusals cause a problem of every kind that a request can.
func refusals(t *testing.T) map[string]func(accept, language string) *httptest.ResponseRecorder {
	t.Helper()
	s := newSite(t, siteSetup{})
	limited := newSite(t, siteSetup{policy: &quota.Policy{Client: 1}})
	wantAnswer(t, limited.post(goodJSON), http.StatusCreated, "")
	keyed := newSite(t, siteSetup{})
	wantAnswer(t, keyed.do(call{body: `{"url":"https://example.net/"}`, header: merged(asJSON, map[string]string{idempotencyHeader: testKey})}), http.StatusCreated, "")
	broken := newSite(t, siteSetup{})
	broken.store.fail = func() error { return shortener.ErrUnavailable }
	s.put(t, shortener.Link{Slug: "taken", Destination: "https://example.org/"})
	s.put(t, shortener.Link{Slug: "gone", Destination: "https://example.org/", ExpiresAt: s.time.now()})
	ask := func(s *site, c call) func(accept, language string) *httptest.ResponseRecorder {
		return func(accept, language string) *httptest.ResponseRecorder {
			c.header = merged(c.header, map[string]string{"Accept": accept, "Accept-Language": language})
			return s.do(c)
		}
	}
	post := func(body string) func(accept, language string) *httptest.ResponseRecorder {
		return ask(s, call{body: body, header: asJSON})
	}
	form := func(body string) func(accept, language string) *httptest.ResponseRecorder {
		return ask(s, call{body: body, header: map[string]string{"Content-Type": mediaForm}})
	}
	get := func(target string) func(accept, language string) *httptest.ResponseRecorder {
		return ask(s, call{method: "GET", target: target})
	}
	return map[string]func(accept, language string) *httptest.ResponseRecorder{
		"limited":           ask(limited, call{body: goodJSON, header: asJSON}),
		"unavailable":       ask(broken, call{body: goodJSON, header: asJSON}),
		"not ready":         ask(broken, call{method: "GET", target: "/readyz"}),
		"foreign":           ask(s, call{body: goodJSON, header: map[string]string{"Sec-Fetch-Site": "cross-site"}}),
		"too large":         post(strings.Repeat(" ", maxBody+1)),
		"no type":           ask(s, call{body: "x"}),
		"looks like JSON":   ask(s, call{body: goodJSON}),
		"other type":        ask(s, call{body: "x", header: map[string]string{"Content-Type": "image/png"}}),
		"change of no type": ask(s, call{method: "PATCH", target: "/api/links/taken", body: "x", header: map[string]string{"Authorization": "Bearer x"}}),
		"no object":         post(`5`),
		"no list":           post(`[]`),
		"list":              post(`[{"url":"ftp://example.org/"},{"url":"https://example.org/","slug":"a b"},{"colour":1}]`),
		"list, one wrong":   post(`[{"url":"ftp://example.org/"}]`),
		"taken in a list":   post(`[{"url":"https://example.org/","slug":"taken"}]`),
		"list of no text":   ask(s, call{body: "\xff", header: map[string]string{"Content-Type": mediaPlain}}),
		"lines with a slug": form("url=https://a.example/%0Ahttps://b.example/&slug=abc"),
		"no key":            ask(s, call{body: goodJSON, header: merged(asJSON, map[string]string{idempotencyHeader: "short"})}),
		"key of another":    ask(keyed, call{body: goodJSON, header: merged(asJSON, map[string]string{idempotencyHeader: testKey})}),
		"no JSON":           post(`{"url":}`),
		"unknown field":     post(`{"colour":1}`),
		"twice":             post(`{"url":"a","url":"b"}`),
		"wrong type":        post(`{"url":1}`),
		"missing":           post(`{}`),
		"ftp":               post(`{"url":"ftp://example.org/"}`),
		"blocked":           post(`{"url":"http://localhost/"}`),
		"long":              post(`{"url":"https://example.org/` + strings.Repeat("x", shortener.MaxDestination) + `"}`),
		"slug":              post(`{"url":"https://example.org/","slug":"a b"}`),
		"taken":             post(`{"url":"https://example.org/","slug":"taken"}`),
		"expiry":            post(`{"url":"https://example.org/","expires_at":"tomorrow"}`),
		"visits":            post(`{"url":"https://example.org/","max_visits":0}`),
		"form":              form("url=https://example.org/?a&b"),
		"form twice":        form("url=a&url=b"),
		"form number":       form("url=https://example.org/&max_visits=many"),
		"form escape":       form("url=%zz"),
		"not found":         get("/nothing"),
		"gone":              get("/gone"),
		"gone preview":      get("/gone+"),
		"picture":           get("/taken/qr.svg?size=1"),
		"picture's query":   get("/taken/qr.svg?colour=red"),
		"method":            ask(s, call{method: "PUT", target: "/taken"}),
		"no token":          get("/api/links/taken"),
		"wrong token":       ask(s, call{method: "GET", target: "/api/links/taken", header: map[string]string{"Authorization": "Bearer x"}}),
	}
}

// Whatever is refused is told in the reader's language; what programs go by is
// the same in each.
func TestProblemsInEveryLanguage(t *testing.T) {
	t.Parallel()
	type told struct {
		Type, Title, Code, Field, Detail string
		Status                           int
	}
	for name, refuse := range refusals(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var english told
			for _, tongue := range testCatalogue(t).tongues {
				for _, accept := range []string{"", "text/plain", "text/html"} {
					w := refuse(accept, tongue.Tag)
					h, body := w.Header(), w.Body.String()
					if h.Get("Content-Language") != tongue.Tag && name != "picture's query" || !strings.Contains(h.Get("Vary"), "Accept-Language") {
						t.Errorf("%s as %q: headers %v", tongue.Tag, accept, h)
					}
					if w.Code < 400 || strings.Contains(body, "<no value>") || strings.Contains(body, "&lt;no value") || strings.Contains(body, "{{") && accept != "text/html" {
						t.Errorf("%s as %q: %d %q", tongue.Tag, accept, w.Code, body)
					}
					if accept != "" {
						continue
					}
					var got told
					decode(t, w, &got)
					if tongue.Tag == "en" {
						english = got
					}
					if same := got.Detail == english.Detail; same != (tongue.Tag == "en") && name != "picture's query" {
						t.Errorf("%s: %q", tongue.Tag, got.Detail)
					}
					if got.Field != "" && !strings.HasPrefix(got.Detail, got.Field+": ") {
						t.Errorf("%s: the field %q and the detail %q", tongue.Tag, got.Field, got.Detail)
					}
					got.Detail = english.Detail
					if got != english {
						t.Errorf("%s: %+v, want %+v", tongue.Tag, got, english)
					}
				}
			}
		})
	}
}

// A field is named where one is at fault, and only there.
func TestProblemsNameTheirField(t *testing.T) {
	t.Parallel()
	ask := refusals(t)
	for name, want := range map[string]string{
		"ftp": "url", "missing": "url", "wrong type": "url", "form twice": "url", "blocked": "url", "slug": "slug", "taken": "slug",
		"expiry": "expires_at", "visits": "max_visits", "form number": "max_visits",
		"unknown field": "", "no JSON": "", "twice": "", "form": "", "limited": "", "not found": "",
	} {
		var got struct{ Field *string }
		decode(t, ask[name]("", ""), &got)
		switch {
		case want == "" && got.Field != nil, want != "" && (got.Field == nil || *got.Field != want):
			t.Errorf("%s: field %v, want %q", name, got.Field, want)
		}
	}
}

// own reports whether a text of a page is what every language writes alike, or
// has letters of the language.
func own(text string) bool {
	alike := []string{"Snip", "English", "ops@example.org", "https://", "00:00\u00a0UTC"}
	return slices.Contains(alike, text) || !strings.ContainsFunc(text, unicode.IsLetter) || strings.ContainsFunc(text, func(c rune) bool {
		return unicode.In(c, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Han)
	})
}

// What people typed, and what programs read, is not the page's own.
func typedOrForPrograms(n node) bool {
	switch n.Data {
	case "script", "code", "pre", "bdi", "textarea":
		return true
	}
	return n.attr("id") == "address" || n.attr("class") == "short" || n.attr("class") == "destination" || n.attr("class") == "whole"
}

func TestPagesInEveryLanguage(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{contact: "ops@example.org"})
	s.put(t, shortener.Link{Slug: "plain", Destination: "https://example.org/", ExpiresAt: s.time.now().AddDate(1, 0, 0), CreatedAt: s.time.now()})
	s.put(t, shortener.Link{Slug: "fake", Destination: "https://аpple.example/", CreatedAt: s.time.now()})
	s.put(t, shortener.Link{Slug: "few", Destination: "https://example.org/", MaxVisits: 3, CreatedAt: s.time.now()})
	get := func(target string) call { return call{method: "GET", target: target} }
	post := func(form string) call { return call{target: "/api/links", body: form} }
	pages := map[string]call{
		"form": get("/"), "manage": get("/-/manage"), "preview": get("/plain+"), "mixed": get("/fake+"), "limited": get("/few+"),
		"made":           post("url=https://example.org/&expires_at=2030-01-01T00:00:00Z&max_visits=5"),
		"refused":        post("url=ftp://example.org/"),
		"refused field":  post("url=https://example.org/&slug=a"),
		"refused visits": post("url=https://example.org/&max_visits=many"),
	}
	for _, tag := range []string{"ko", "ja"} {
		for name, c := range pages {
			c.header = map[string]string{"Accept": "text/html", "Accept-Language": tag, "Content-Type": mediaForm}
			wantOwnWords(t, tag+" "+name, tag, s.do(c))
		}
		for name, refuse := range refusals(t) {
			if name != "picture's query" { // it asks for a language itself
				wantOwnWords(t, tag+" "+name, tag, refuse("text/html", tag))
			}
		}
	}
}

func wantOwnWords(t *testing.T, name, tag string, w *httptest.ResponseRecorder) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(w.Body.String()))
	if err != nil {
		t.Fatal(err)
	}
	if got := (node{root}).first(t, "html", "", "").attr("lang"); got != tag || w.Header().Get("Content-Language") != tag || w.Header().Get("Vary") == "" {
		t.Errorf("%s: the language %q, headers %v", name, got, w.Header())
	}
	var texts int
	var walk func(node)
	walk = func(n node) {
		if typedOrForPrograms(n) {
			return
		}
		if n.Type == html.TextNode {
			texts++
			if text := strings.TrimSpace(n.Data); !own(text) {
				t.Errorf("%s: says %q", name, text)
			}
		}
		for _, key := range []string{"alt", "aria-label", "title", "placeholder", "data-lead", "data-line"} {
			if text := n.attr(key); !own(text) {
				t.Errorf("%s: <%s %s=%q>", name, n.Data, key, text)
			}
		}
		for c := range n.ChildNodes() {
			walk(node{c})
		}
	}
	walk(node{root})
	if texts < 10 {
		t.Errorf("%s: only %d texts", name, texts)
	}
}

// The switch leads to the same page; what was chosen is handed on, and never to
// a short link or to where one leads.
func TestSwitch(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{public: "https://s.example/to"})
	s.put(t, shortener.Link{Slug: "plain", Destination: "https://example.org/", CreatedAt: s.time.now()})
	s.put(t, shortener.Link{Slug: "handed", Destination: "https://example.org/", ForwardQuery: true})
	form := map[string]string{"Content-Type": mediaForm, "Accept": "text/html"}
	page := map[string]string{"Accept": "text/html"}
	for _, row := range []struct {
		call call
		want string // where the switch to Korean leads
	}{
		{call{method: "GET", target: "/to/?lang=ja&x=%22%3E", header: page}, "/to/?lang=ko"},
		{call{method: "GET", target: "/to/-/manage?lang=ja", header: page}, "?lang=ko"},
		{call{method: "GET", target: "/to/nothing?lang=ja&x=y", header: page}, "?lang=ko"},
		{call{method: "GET", target: "/to/plain+?lang=ja", header: page}, "/to/plain+?lang=ko"},
		{call{target: "/to/api/links?lang=ja", body: "url=ftp://example.org/", header: form}, "/to/?lang=ko"},
	} {
		w := s.do(row.call)
		root, err := html.Parse(strings.NewReader(w.Body.String()))
		if err != nil {
			t.Fatal(err)
		}
		page := node{root}
		for _, tag := range []string{"en", "ko", "ja"} {
			link := page.first(t, "a", "hreflang", tag)
			if want := strings.Replace(row.want, "lang=ko", "lang="+tag, 1); link.attr("href") != want || link.attr("lang") != tag || link.attr("rel") != "alternate" {
				t.Errorf("%s: the switch to %s: %v", row.call.target, tag, link.Attr)
			}
			if link.has("aria-current") != (tag == "ja") {
				t.Errorf("%s: the switch to %s: %v", row.call.target, tag, link.Attr)
			}
		}
		if got := page.first(t, "a", "class", "home").attr("href"); got != "/to/?lang=ja" {
			t.Errorf("%s: home is %q", row.call.target, got)
		}
	}
	form["Accept-Language"] = "ko"
	w := s.do(call{target: "/to/api/links?lang=ja", body: "url=https://example.org/&slug=made", header: form})
	root, err := html.Parse(strings.NewReader(w.Body.String()))
	if err != nil {
		t.Fatal(err)
	}
	made := node{root}
	if got := made.first(t, "a", "class", "open").attr("href"); w.Code != http.StatusCreated || got != "https://s.example/to/made" {
		t.Errorf("%d, the short link %q", w.Code, got)
	}
	if got := made.first(t, "a", "class", "manage").attr("href"); !strings.HasPrefix(got, "/to/-/manage?lang=ja#made.") {
		t.Errorf("the manage link %q", got)
	}
	if got := made.first(t, "html", "", "").attr("lang"); got != "ja" {
		t.Errorf("language %q", got)
	}
	if strings.Contains(w.Body.String(), "hreflang") {
		t.Error("the page that shows the token leads away from it")
	}
	preview := s.do(call{method: "GET", target: "/to/plain+?lang=ja", header: page}).Body.String()
	if !strings.Contains(preview, `href="https://s.example/to/plain" rel=`) {
		t.Errorf("the preview's button: %s", preview)
	}
	if strings.Contains(s.do(call{method: "GET", target: "/to/", header: merged(page, map[string]string{"Accept-Language": "ja"})}).Body.String(), `action="/to/api/links?`) {
		t.Error("a language that nobody chose is handed on")
	}
	for target, want := range map[string]string{"/to/plain?lang=ko": "https://example.org/", "/to/handed?lang=ko": "https://example.org/?lang=ko"} {
		w := s.do(call{method: "GET", target: target, header: page})
		h := w.Header()
		if w.Code != http.StatusFound || h.Get("Location") != want || h.Get("Vary") != "" || h.Get("Content-Language") != "" {
			t.Errorf("%s: %d %v", target, w.Code, h)
		}
	}
}

// On a page about a fault of ours the address may be a living link's, whose query
// would be taken for a visitor's.
func TestSwitchOfAFault(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	s.store.fail = func() error { return shortener.ErrUnavailable }
	w := s.do(call{method: "GET", target: "/abc", header: map[string]string{"Accept": "text/html"}})
	wantAnswer(t, w, http.StatusServiceUnavailable, `href="/?lang=ko"`)
}

// A form that is refused comes back with all that was typed, also beyond the
// first thing that is wrong.
func TestRefusedFormKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	typed := url.Values{"max_visits": {"many "}, "url": {" ftp:x "}, "slug": {"a b"}, "expires_at": {"tomorrow"}, "forward_query": {"true"}}
	multipart := ""
	for name, values := range typed {
		multipart += "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + values[0] + "\r\n"
	}
	for mediaType, body := range map[string]string{
		mediaForm:                         "max_visits=many+&url=+ftp%3Ax+&slug=a+b&expires_at=tomorrow&forward_query=true",
		"multipart/form-data; boundary=b": multipart + "--b--\r\n",
	} {
		s := newSite(t, siteSetup{})
		w := s.do(call{body: body, header: map[string]string{"Content-Type": mediaType, "Accept": "text/html", "Accept-Language": "ko"}})
		wantAnswer(t, w, http.StatusBadRequest, "방문 횟수: 1부터 10000까지의 정수여야 합니다.")
		root, err := html.Parse(strings.NewReader(w.Body.String()))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"url", "slug", "expires_at", "max_visits"} {
			if got := (node{root}).id(t, name).value(); got != typed.Get(name) {
				t.Errorf("%s: %s holds %q, want %q", mediaType, name, got, typed.Get(name))
			}
		}
		if !(node{root}).id(t, "forward_query").has("checked") {
			t.Errorf("%s: the box is not checked", mediaType)
		}
	}
}

// Whatever is typed, the sentence about it is short and of printable characters,
// in every language.
func FuzzReasons(f *testing.F) {
	for _, seed := range []string{
		"", "a b", "ab\u202ecd", "abc!$%&()*+,", "api", strings.Repeat("\xff", 90), strings.Repeat("\u0085", 90), strings.Repeat("x", 99),
		"https://example.org/\x00", "\ufeffhttps://example.org/", "https://℀.example/", "https://" + strings.Repeat("日本語", 900) + ".example/",
		"https://example.org/" + strings.Repeat("x", 9000), "https://[::1", "{{.Reason}}", "<no value>",
	} {
		f.Add(seed)
	}
	c := testCatalogue(f)
	s := newSite(f, siteSetup{})
	f.Fuzz(func(t *testing.T, text string) {
		for _, wanted := range []shortener.NewLink{
			{URL: text, Slug: "a b"}, // never made
			{URL: "https://example.org/", Slug: text, ExpiresAt: "tomorrow"},
			{URL: "https://example.org/", ExpiresAt: text + " "},
		} {
			_, err := s.service.Create(t.Context(), quota.Client{}, wanted, "")
			p := (&server{}).problemOf(err)
			if p.field == "" {
				t.Fatalf("%+v: %v", wanted, err)
			}
			wantFitProblem(t, c, p)
		}
	})
}

// fieldNames are those of a new link, and none.
var fieldNames = []string{"", "url", "slug", "expires_at", "max_visits", "forward_query", "show_destination", "file", idempotencyHeader}

// wantFitProblem checks that an error about something sent is a problem whose
// detail shows nothing of it that is long or not printable, in every language,
// and names no field that there is not.
func wantFitProblem(t *testing.T, c *catalogue, err error) {
	t.Helper()
	p, ok := errors.AsType[*problem](err)
	if !ok || !slices.Contains(fieldNames, p.field) || p.field == "" && strings.HasPrefix(p.message.key, "reason.") {
		t.Fatalf("unfit error %q", err)
	}
	for _, tongue := range c.tongues {
		detail := p.detail(tongue)
		if !utf8.ValidString(detail) || len(detail) > 600 || strings.ContainsFunc(detail, unicode.IsControl) ||
			strings.Contains(detail, p.message.key) || strings.Contains(detail, "{{.") && !strings.Contains(fmt.Sprint(p.message.values), "{{.") {
			t.Errorf("in %s: %q", tongue.Tag, detail)
		}
	}
}
