package web

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"snip/shortener"
)

// What programs and browsers send that nobody has clicked: no visit of a limited link.
var noVisits = []call{
	{method: "GET"},
	{method: "GET", header: map[string]string{"User-Agent": firefox, "Accept": "text/html"}}, // a mail scanner, for all that is known
	{method: "GET", header: map[string]string{"User-Agent": firefox, "Sec-Fetch-User": "?1", "Sec-Fetch-Mode": "navigate"}},
	{method: "GET", header: map[string]string{"User-Agent": firefox, "Sec-Purpose": "prefetch"}},
	{method: "GET", header: map[string]string{"User-Agent": firefox, "Sec-Purpose": "prefetch;prerender"}},
	{method: "GET", header: map[string]string{"User-Agent": firefox, "Purpose": "prefetch"}},
	{method: "GET", header: map[string]string{"User-Agent": firefox, "X-Moz": "prefetch"}},
	{method: "GET", header: map[string]string{"User-Agent": slackbot}},
	{method: "GET", header: map[string]string{"User-Agent": "Synapse (bot; +https://github.com/matrix-org/synapse)"}},
	{method: "GET", header: map[string]string{"User-Agent": "Mozilla/5.0 (compatible; ZulipURLPreview/9.4; +https://chat.example.org)"}},
	{method: "GET", header: map[string]string{"User-Agent": "curl/8.14.1", "Accept": "*/*"}},
	{method: "GET", header: map[string]string{"User-Agent": "Googlebot-Image/1.0"}},
	{method: "GET", header: map[string]string{"Accept": "application/json"}},
	{method: "GET", header: map[string]string{"X-HTTP-Method-Override": "POST"}},
	{method: "HEAD"},
	{method: "HEAD", header: map[string]string{"User-Agent": firefox}},
}

func TestLimitedLinkAsks(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{public: "https://s.example/go", policy: nil})
	s.put(t, shortener.Link{Slug: "once", Destination: "https://secret.example/", MaxVisits: 1})
	for _, c := range noVisits {
		for _, target := range []string{"/go/once", "/once/", "/once.", "/once?_method=POST", "/go/once+"} {
			c.target = target
			w := s.do(c)
			h := w.Header()
			if w.Code != http.StatusOK || h.Get("Location") != "" || h.Get("Refresh") != "" || h.Get("Cache-Control") != "no-store" || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%s %s, %v: %d %v %q", c.method, target, c.header, w.Code, h, w.Body)
			}
			if target == "/go/once+" || c.method == "HEAD" {
				continue
			}
			for _, want := range []string{`<form class="next" method="post">`, `<button id="onward">`, `property="og:title" content="A short link"`, "The button uses one visit."} {
				if !strings.Contains(w.Body.String(), want) {
					t.Errorf("%s %s, %v: no %s in %q", c.method, target, c.header, want, w.Body)
				}
			}
			if csp := h.Get("Content-Security-Policy"); strings.Contains(csp, "form-action") || !strings.Contains(csp, "default-src 'none'") {
				t.Errorf("policy %q", csp)
			}
			if got := h.Get("Referrer-Policy"); got != "same-origin" {
				t.Errorf("Referrer-Policy %q", got)
			}
		}
	}
	w := s.do(call{method: "POST", target: "/go/once", header: map[string]string{"Origin": "https://s.example", "Sec-Fetch-Site": "same-origin"}}) // its page, whose host httptest calls so
	h := w.Header()
	if w.Code != http.StatusSeeOther || h.Get("Location") != "https://secret.example/" || h.Get("Cache-Control") != "no-store" || h.Get("X-Robots-Tag") != "noindex" || w.Body.Len() > 0 {
		t.Errorf("the click: %d %v %q", w.Code, h, w.Body)
	}
	for _, method := range []string{"GET", "HEAD", "POST"} {
		wantAnswer(t, s.do(call{method: method, target: "/go/once"}), http.StatusGone, "")
	}
}

// A visit of a link that says so is a GET, but for those that nobody makes.
func TestDirectRedirect(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	h := made(t, s, `{"url":"https://example.org/","slug":"few","max_visits":3,"direct_redirect":true}`)
	for _, c := range noVisits {
		c.target = "/few"
		if kind := knownAgents(t).visitorOf(&http.Request{Method: c.method, Header: headersOf(c)}); kind == shortener.Person || kind == shortener.Crawler {
			continue
		}
		if w := s.do(c); w.Code != http.StatusOK || w.Header().Get("Location") != "" {
			t.Errorf("%s, %v: %d %v", c.method, c.header, w.Code, w.Header())
		}
	}
	wantAnswer(t, h.manage("GET", ""), http.StatusOK, `"direct_redirect":true,"visits":0`)
	wantLocation(t, s, "/few", http.StatusFound, "https://example.org/")
	wantVisit(t, s, "/few", "https://example.org/")
	wantAnswer(t, h.manage("PATCH", `{"direct_redirect":false}`), http.StatusOK, `"direct_redirect":false,"visits":2`)
	wantAnswer(t, s.do(call{method: "GET", target: "/few"}), http.StatusOK, "The button uses one visit.")
	wantAnswer(t, h.manage("PATCH", `{"direct_redirect":null}`), http.StatusBadRequest, "direct_redirect: must be true or false.")
	wantAnswer(t, h.manage("PATCH", `{"direct_redirect":true}`), http.StatusOK, `"direct_redirect":true,"visits":2`)
	wantLocation(t, s, "/few", http.StatusFound, "https://example.org/")
	wantAnswer(t, s.do(call{method: "GET", target: "/few"}), http.StatusGone, "")
}

func headersOf(c call) http.Header {
	h := make(http.Header)
	for name, value := range c.header {
		h.Set(name, value)
	}
	return h
}

// A form sends its checkbox, and the page keeps it where the form is refused.
func TestDirectRedirectInTheForm(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	form := map[string]string{"Content-Type": mediaForm, "Accept": "text/html"}
	typed := url.Values{"url": {"https://example.org/"}, "slug": {"direct"}, "max_visits": {"1"}, "direct_redirect": {"true"}}
	wantAnswer(t, s.do(call{body: typed.Encode(), header: form}), http.StatusCreated, "")
	wantLocation(t, s, "/direct", http.StatusFound, "https://example.org/")
	wantAnswer(t, s.do(call{body: typed.Encode(), header: form}), http.StatusConflict, `id="direct_redirect" name="direct_redirect" type="checkbox" value="true" checked`)
	typed.Set("direct_redirect", "on")
	wantAnswer(t, s.do(call{body: typed.Encode(), header: map[string]string{"Content-Type": mediaForm}}), http.StatusBadRequest, "direct_redirect: must be true or false.")
}

// A page of another site must not use the visits up, and POST is no way to other links.
func TestWhoMayVisitByPOST(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	s.put(t, shortener.Link{Slug: "once", Destination: "https://example.org/", MaxVisits: 1})
	s.put(t, shortener.Link{Slug: "free", Destination: "https://example.org/"})
	s.put(t, shortener.Link{Slug: "old", Destination: "https://example.org/", MaxVisits: 1, ExpiresAt: s.time.now()})
	for _, header := range []map[string]string{
		{"Origin": "https://evil.example"},
		{"Origin": "null"},
		{"Sec-Fetch-Site": "cross-site"},
		{"Sec-Fetch-Site": "same-site", "Origin": "https://other.s.example"},
	} {
		wantAnswer(t, s.do(call{method: "POST", target: "/once", header: header}), http.StatusForbidden, "forbidden")
	}
	for target, status := range map[string]int{"/free": 405, "/none": 405, "/once+": 405, "/a/b": 405, "/wp-login.php": 405, "/old": 410} {
		w := s.do(call{method: "POST", target: target})
		if w.Code != status || status == 405 && w.Header().Get("Allow") != "GET, HEAD" || w.Header().Get("Location") != "" {
			t.Errorf("POST %s: %d %v, want %d", target, w.Code, w.Header(), status)
		}
	}
	for target, allow := range map[string]string{"/once": "GET, HEAD, POST", "/once.": "GET, HEAD, POST", "/free": "GET, HEAD", "/old": "GET, HEAD", "/none": "GET, HEAD"} {
		for _, method := range []string{"PUT", "DELETE", "OPTIONS", "FOO"} {
			if w := s.do(call{method: method, target: target}); w.Code != 405 || w.Header().Get("Allow") != allow {
				t.Errorf("%s %s: %d, Allow %q, want %q", method, target, w.Code, w.Header().Get("Allow"), allow)
			}
		}
	}
	wantVisit(t, s, "/once", "https://example.org/")
}

// The button sends the visitor's query, which is handed on as it came.
func TestVisitForwardsQuery(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	s.put(t, shortener.Link{Slug: "sends", Destination: "https://example.org/?a=1#top", MaxVisits: 9, ForwardQuery: true})
	s.put(t, shortener.Link{Slug: "drops", Destination: "https://example.org/?a=1#top", MaxVisits: 9})
	const query = "?b=%2B&lang=ko&%zz&q=ä"
	wantVisit(t, s, "/sends"+query, "https://example.org/?a=1&b=%2B&lang=ko&%zz&q=%C3%A4#top")
	wantVisit(t, s, "/drops"+query, "https://example.org/?a=1#top")
	for target, languages := range map[string]int{"/sends": 3, "/sends" + query: 0, "/drops" + query: 3} {
		page := s.preview(target, "text/html") // its form has no action, and so the query of the page's own address
		if form := page.first(t, "form", "method", "post"); form.has("action") {
			t.Errorf("%s: action %q", target, form.attr("action"))
		}
		if got := strings.Count(page.text(), "日本語"); got*3 != languages { // in another language the page would lose the query
			t.Errorf("%s: languages to choose from: %q", target, page.text())
		}
	}
}

// Of many who visit a link with one visit left, one is led on.
func TestLastVisit(t *testing.T) {
	t.Parallel()
	for method, status := range map[string]int{"GET": http.StatusFound, "POST": http.StatusSeeOther} {
		s := newSite(t, siteSetup{})
		s.put(t, shortener.Link{Slug: "once", Destination: "https://example.org/", MaxVisits: 3, DirectRedirect: method == "GET"})
		for range 2 {
			wantAnswer(t, s.do(call{method: method, target: "/once"}), status, "")
		}
		var group sync.WaitGroup
		var led, gone atomic.Int64
		for range 20 {
			group.Go(func() {
				switch w := s.do(call{method: method, target: "/once"}); {
				case w.Code == status && w.Header().Get("Location") == "https://example.org/":
					led.Add(1)
				case w.Code == http.StatusGone && w.Header().Get("Location") == "":
					gone.Add(1)
				}
			})
		}
		group.Wait()
		if led.Load() != 1 || gone.Load() != 19 {
			t.Errorf("of 20 concurrent visits by %s %d were redirected and %d found it gone, want 1 and 19", method, led.Load(), gone.Load())
		}
	}
}

// When a visit cannot be counted, it does not happen; other links go on.
func TestVisitThatCannotBeCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	s.put(t, shortener.Link{Slug: "asks", Destination: "https://example.org/", MaxVisits: 3})
	s.put(t, shortener.Link{Slug: "direct", Destination: "https://example.org/", MaxVisits: 3, DirectRedirect: true})
	s.put(t, shortener.Link{Slug: "free", Destination: "https://example.org/"})
	s.store.failVisits.Store(true)
	for _, c := range []call{{method: "POST", target: "/asks"}, {method: "GET", target: "/direct"}} {
		w := s.do(c)
		wantAnswer(t, w, http.StatusServiceUnavailable, "unavailable")
		if w.Header().Get("Location") != "" || w.Header().Get("Retry-After") != "5" {
			t.Errorf("headers %v", w.Header())
		}
	}
	wantLocation(t, s, "/free", http.StatusFound, "https://example.org/")
	s.store.failVisits.Store(false)
	wantVisit(t, s, "/asks", "https://example.org/")
	wantLocation(t, s, "/direct", http.StatusFound, "https://example.org/")
}

// Of a link that asks, the visit is counted as what its visitor is, and what was no visit as
// what it was; a person who has only seen the page is not counted.
func TestStatisticsOfLimitedLink(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	h := made(t, s, `{"url":"https://example.org/","slug":"mine","max_visits":9}`)
	for _, c := range []call{
		{method: "GET", header: map[string]string{"User-Agent": firefox, "Referer": "https://news.example/"}},
		{method: "POST", header: map[string]string{"User-Agent": firefox, "Origin": "https://s.example", "Referer": "https://s.example/mine"}},
		{method: "POST", header: map[string]string{"User-Agent": "curl/8.14.1"}},
		{method: "GET", header: map[string]string{"User-Agent": slackbot}},
		{method: "GET", header: map[string]string{"User-Agent": firefox, "Sec-Purpose": "prefetch"}},
		{method: "HEAD"},
	} {
		c.target = "/mine"
		s.do(c)
	}
	if lost, err := s.service.StoreVisits(t.Context(), func() {}); lost != 0 || err != nil {
		t.Fatal(lost, err)
	}
	wantAnswer(t, h.manage("GET", ""), http.StatusOK,
		`"visits":2,"taken_down":false,"blocked":false,"statistics":{"visits":1,"crawlers":1,"previews":1,"heads":1,"prefetches":1,"days":[{"day":"2026-11-29","visits":1}],"referrers":[]}`)
}
