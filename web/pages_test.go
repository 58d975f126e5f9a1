package web

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"snip/shortener"
	"snip/static"
)

const hostile = `"><script>alert(1)</script>'&amp;` // what a page must show and never run

func testPages(t *testing.T, c Config) *pages {
	t.Helper()
	if c.PublicURL == nil {
		c.PublicURL = &url.URL{Scheme: "https", Host: "s.example"}
	}
	c.Now = func() time.Time { return time.Date(2026, 11, 29, 22, 0, 0, 0, time.UTC) }
	p, err := newPages(c, testCatalogue(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func testCatalogue(t testing.TB) *catalogue {
	t.Helper()
	c, err := newCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (p *pages) english() choice { return choice{tongue: p.languages.english()} }

// verbatim is a sentence that is in no catalogue, and so stands for itself.
func verbatim(text string) message { return message{key: text} }

func allowance(limit, used int64, open bool) *allowanceView {
	remaining := limit - used
	return &allowanceView{
		Limit: &limit, Used: &used, Remaining: &remaining,
		ResetsAt: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), Open: open,
	}
}

func TestFormSaysTheRules(t *testing.T) {
	t.Parallel()
	rules := Rules{Daily: 50, Every: 10 * time.Second}
	levelOff := func(open bool) *allowanceView {
		return &allowanceView{ResetsAt: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), Open: open}
	}
	for _, row := range []struct {
		name      string
		rules     Rules
		allowance *allowanceView
		want      string
	}{
		{"some left", rules, allowance(50, 3, true),
			"50 links a day, 47 left today. Starts afresh at 00:00 UTC. At most about one every 10 seconds."},
		{"none left", rules, allowance(50, 50, false),
			"50 links a day, 0 left today. Opens again at 00:00 UTC. At most about one every 10 seconds."},
		{"closed by a wider level", rules, allowance(50, 3, false),
			"50 links a day. Opens again at 00:00 UTC. At most about one every 10 seconds."},
		{"a limit of one's own", rules, allowance(1, 0, true),
			"1 link a day, 1 left today. Starts afresh at 00:00 UTC. At most about one every 10 seconds."},
		{"unknown", rules, nil,
			"50 links a day. Starts afresh at 00:00 UTC. At most about one every 10 seconds."},
		{"no throttle", Rules{Daily: 50}, allowance(50, 3, true),
			"50 links a day, 47 left today. Starts afresh at 00:00 UTC."},
		{"no daily rule", Rules{Every: 10 * time.Second}, levelOff(true),
			"At most about one every 10 seconds."},
		{"no daily rule, closed", Rules{Every: 10 * time.Second}, levelOff(false),
			"Opens again at 00:00 UTC. At most about one every 10 seconds."},
		{"no rules", Rules{}, levelOff(true), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := testPages(t, Config{Rules: row.rules})
			page := parsePage(t, func(w io.Writer) error { return p.form(w, p.english(), formPage{Allowance: row.allowance}) })
			if got := page.id(t, "allowance").text(); got != row.want {
				t.Errorf("allowance:\n got %q\nwant %q", got, row.want)
			}
			if !page.id(t, "problem").hidden() {
				t.Error("a problem is shown on the first visit")
			}
		})
	}
}

func TestFormSaysTheProblem(t *testing.T) {
	t.Parallel()
	limited := newProblem(http.StatusTooManyRequests, "rate_limited", verbatim("50 links per UTC day"))
	limitedFor := func(wait time.Duration) *problem {
		p := *limited
		p.retryAfter = wait
		return &p
	}
	const shared = "No more links can be made just now. You may share the limit with others, for example on the same IP address. "
	for _, row := range []struct {
		name        string
		typed       string
		problem     *problem
		want        string
		wantInvalid string
	}{
		{"what was typed is at fault", "ftp://example.org",
			invalidField("url", verbatim("must start with https://.")),
			"This link must start with https://.", "true"},
		{"the service is at fault", "https://example.org", unavailable(verbatim("Try again in a few seconds.")),
			"Try again in a few seconds.", ""},
		{"limited for seconds", "https://example.org", limitedFor(7100 * time.Millisecond),
			shared + "Try again in 8 seconds.", ""},
		{"limited for a second", "https://example.org", limitedFor(time.Second),
			shared + "Try again in 1 second.", ""},
		{"limited for hours", "https://example.org", limitedFor(2 * time.Hour),
			shared + "Try again at 00:00 UTC.", ""},
		{"limited before the body was read", "", limitedFor(time.Second),
			shared + "Try again in 1 second. What you typed is one step back in your browser.", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := testPages(t, Config{Rules: Rules{Daily: 50}})
			page := parsePage(t, func(w io.Writer) error {
				return p.form(w, p.english(), formPage{Typed: typedLink{URL: row.typed}, Problem: row.problem})
			})
			problem, field := page.id(t, "problem"), page.id(t, "url")
			if got := problem.text(); got != row.want {
				t.Errorf("problem:\n got %q\nwant %q", got, row.want)
			}
			if got := problem.attr("role"); got != "alert" {
				t.Errorf("the problem's role is %q", got)
			}
			if got := field.attr("aria-describedby"); got != "problem list allowance" {
				t.Errorf("the field is described by %q", got)
			}
			if got := field.attr("aria-invalid"); got != row.wantInvalid {
				t.Errorf("aria-invalid = %q, want %q", got, row.wantInvalid)
			}
			if got := field.value(); got != row.typed {
				t.Errorf("the field holds %q, want %q", got, row.typed)
			}
		})
	}
}

// A fault is told beside its field, where the keyboard's focus is too, and all
// that was typed is there still.
func TestFormSaysTheProblemBesideItsField(t *testing.T) {
	t.Parallel()
	typed := typedLink{URL: "https://example.org/", Slug: "a/b", ExpiresAt: "tomorrow", MaxVisits: "many", ForwardQuery: true}
	problems := map[string]string{
		"slug":       "This name is taken.",
		"expires_at": "The end is taken.",
		"max_visits": "The number of visits is taken.",
	}
	for faulty, want := range problems {
		p := testPages(t, Config{})
		page := parsePage(t, func(w io.Writer) error {
			return p.form(w, p.english(), formPage{Typed: typed, Problem: invalidField(faulty, verbatim("is taken."))})
		})
		for name := range problems {
			problem, field := page.id(t, name+"-problem"), page.id(t, name)
			shown, invalid := "", ""
			if name == faulty {
				shown, invalid = want, "true"
			}
			if got := problem.text(); got != shown {
				t.Errorf("%s: #%s-problem says %q, want %q", faulty, name, got, shown)
			}
			if got := field.attr("aria-invalid"); got != invalid {
				t.Errorf("%s: #%s aria-invalid = %q", faulty, name, got)
			}
			if got := field.has("autofocus"); got != (name == faulty) {
				t.Errorf("%s: #%s autofocus is %t", faulty, name, got)
			}
			if got := field.attr("aria-describedby"); !strings.HasPrefix(got, name+"-problem ") {
				t.Errorf("#%s is described by %q", name, got)
			}
		}
		if page.id(t, "url").has("autofocus") || page.id(t, "url").has("aria-invalid") || !page.id(t, "problem").hidden() {
			t.Errorf("%s: the destination is blamed", faulty)
		}
		for id, want := range map[string]string{"url": typed.URL, "slug": typed.Slug, "expires_at": typed.ExpiresAt, "max_visits": "many"} {
			if got := page.id(t, id).value(); got != want {
				t.Errorf("#%s holds %q, want %q", id, got, want)
			}
		}
		if !page.id(t, "forward_query").has("checked") || !page.id(t, "more").has("open") || page.id(t, "end").hidden() {
			t.Errorf("%s: not all that was typed is shown", faulty)
		}
	}
}

// What only some need is folded away, and what only the script can read hidden.
func TestFormIsShortAtFirst(t *testing.T) {
	t.Parallel()
	p := testPages(t, Config{})
	for _, typed := range []typedLink{{}, {URL: "https://example.org/"}} {
		page := parsePage(t, func(w io.Writer) error {
			return p.form(w, p.english(), formPage{Typed: typed, Problem: invalidField("url", verbatim("is wrong."))})
		})
		if page.id(t, "more").has("open") || !page.id(t, "end").hidden() || !page.id(t, "kept").hidden() || page.id(t, "forward_query").has("checked") {
			t.Errorf("%q: more is shown than the form", typed.URL)
		}
	}
}

// resultOf is the page of one link, made with the token SECRET.
func resultOf(link shortener.Link) resultPage {
	return resultPage{Short: "https://s.example/", Made: []shortener.Made{{Link: link, Token: "SECRET"}}}
}

func TestResultShowsTheLink(t *testing.T) {
	t.Parallel()
	p := testPages(t, Config{})
	page := parsePage(t, func(w io.Writer) error {
		return p.result(w, p.english(), resultOf(shortener.Link{
			Slug: "kX3vR7q", Destination: "https://example.org/a?b=1&c=2", MaxVisits: 7,
			ExpiresAt: time.Date(2027, 1, 31, 9, 0, 0, 0, time.UTC),
		}))
	})
	if got := page.id(t, "short").attr("value"); got != "https://s.example/kX3vR7q" {
		t.Errorf("short link: %q", got)
	}
	for _, want := range []string{
		"Leads to https://example.org/a?b=1&c=2", "Ends on 31 January 2027 at 09:00 UTC", "Ends after this many visits: 7", "Make another",
		"Keep this manage link to change or delete the short link later.",
	} {
		if got := page.text(); !strings.Contains(got, want) {
			t.Errorf("the page lacks %q: %q", want, got)
		}
	}
	// Behind the # a token is in no log and no Referer.
	if got := page.first(t, "a", "class", "manage").attr("href"); got != "/-/manage#kX3vR7q.SECRET" {
		t.Errorf("the manage link leads to %q", got)
	}
	if got := page.first(t, "img", "class", "qr").attr("src"); got != "/kX3vR7q/qr.svg" {
		t.Errorf("the picture is %q", got)
	}
}

func TestResultOfAPlainLink(t *testing.T) {
	t.Parallel()
	p := testPages(t, Config{})
	page := parsePage(t, func(w io.Writer) error {
		return p.result(w, p.english(), resultOf(shortener.Link{Slug: "abc", Destination: "https://example.org/"}))
	})
	if got := page.text(); strings.Contains(got, "Ends") {
		t.Errorf("the link has no end: %q", got)
	}
}

func TestMessagesLeadOn(t *testing.T) {
	t.Parallel()
	p := testPages(t, Config{})
	for status, heading := range map[int]string{
		http.StatusForbidden:           "Refused",
		http.StatusNotFound:            "Nothing here",
		http.StatusMethodNotAllowed:    "That does not work here",
		http.StatusGone:                "This link no longer works",
		http.StatusTeapot:              "Refused",
		http.StatusInternalServerError: "Something went wrong",
		http.StatusServiceUnavailable:  "Temporarily unavailable",
	} {
		page := parsePage(t, func(w io.Writer) error {
			return p.message(w, p.english(), newProblem(status, "some_code", verbatim("A sentence.")))
		})
		if got, want := page.text(), heading+" – Snip Snip "+heading+" A sentence. Make a short link English · 한국어 · 日本語"; got != want {
			t.Errorf("%d:\n got %q\nwant %q", status, got, want)
		}
		if got := page.first(t, "meta", "name", "robots").attr("content"); got != "noindex" {
			t.Errorf("%d: robots: %q", status, got)
		}
	}
}

func TestContact(t *testing.T) {
	t.Parallel()
	for contact, want := range map[string]string{
		"links@example.org":        "mailto:links@example.org",
		"mailto:links@example.org": "mailto:links@example.org",
		"https://example.org/@us":  "https://example.org/@us",
		"javascript:alert(1)":      "#ZgotmplZ", // what html/template makes of a scheme that could run
	} {
		p := testPages(t, Config{Contact: contact})
		page := parsePage(t, func(w io.Writer) error { return p.form(w, p.english(), formPage{}) })
		if got := page.first(t, "footer", "", "").first(t, "a", "", "").attr("href"); got != want {
			t.Errorf("contact %q leads to %q, want %q", contact, got, want)
		}
	}
}

// everyPage renders each kind of page with hostile values wherever one may come
// from outside.
func everyPage(t *testing.T, c Config) map[string]node {
	t.Helper()
	p := testPages(t, c)
	return map[string]node{
		"form": parsePage(t, func(w io.Writer) error {
			typed := typedLink{URL: hostile, Slug: hostile, ExpiresAt: hostile, MaxVisits: hostile}
			return p.form(w, p.english(), formPage{Typed: typed, Problem: invalidRequest(verbatim(hostile))})
		}),
		"faulty field": parsePage(t, func(w io.Writer) error {
			return p.form(w, p.english(), formPage{Problem: invalidField("slug", verbatim(hostile))})
		}),
		"result": parsePage(t, func(w io.Writer) error {
			return p.result(w, p.english(), resultOf(shortener.Link{Slug: "abc", Destination: hostile}))
		}),
		"result of a list": parsePage(t, func(w io.Writer) error {
			v := resultOf(shortener.Link{Slug: "abc", Destination: hostile})
			v.Batch = true
			return p.result(w, p.english(), v)
		}),
		"faulty list": parsePage(t, func(w io.Writer) error {
			faulty := &problem{status: http.StatusBadRequest, items: []itemProblem{{1, 3, invalidField("url", verbatim(hostile))}}}
			return p.form(w, p.english(), formPage{Problem: faulty, Lines: []int{1, 3}})
		}),
		"manage": parsePage(t, func(w io.Writer) error { return p.manage(w, p.english()) }),
		"message": parsePage(t, func(w io.Writer) error {
			return p.message(w, p.english(), newProblem(http.StatusNotFound, "not_found", verbatim(hostile)))
		}),
	}
}

func TestPagesEscape(t *testing.T) {
	t.Parallel()
	for name, page := range everyPage(t, Config{}) {
		if name != "manage" && !strings.Contains(page.text(), hostile) { // that one is the same for everybody
			t.Errorf("%s: the text is not shown as it is: %q", name, page.text())
		}
		if name != "form" {
			continue
		}
		for _, field := range []string{"url", "slug", "expires_at", "max_visits"} {
			if got := page.id(t, field).value(); got != hostile {
				t.Errorf("the field %s holds %q", field, got)
			}
		}
	}
}

// TestPagesObeyTheirPolicy keeps out of the pages what pageCSP would block.
func TestPagesObeyTheirPolicy(t *testing.T) {
	t.Parallel()
	for name, page := range everyPage(t, Config{}) {
		for n := range page.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			switch e := (node{n}); e.Data {
			case "script":
				if e.attr("type") == mediaJSON { // data, which nothing runs
					continue
				}
				name, ok := strings.CutPrefix(e.attr("src"), "/-/")
				if _, err := static.Files.Open(name); !ok || err != nil || e.FirstChild != nil {
					t.Errorf("%s: a script from %q or inline", name, e.attr("src"))
				}
			case "style", "base", "iframe", "object":
				t.Errorf("%s: has a <%s>", name, e.Data)
			}
			for _, a := range n.Attr {
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
					t.Errorf("%s: <%s %s=%q>", name, n.Data, a.Key, a.Val)
				}
			}
		}
	}
}

// TestPagesStayUnderThePrefix finds addresses that would leave a public URL with
// a path.
func TestPagesStayUnderThePrefix(t *testing.T) {
	t.Parallel()
	public := &url.URL{Scheme: "https", Host: "example.org", Path: "/to go/"}
	for name, page := range everyPage(t, Config{PublicURL: public}) {
		found := 0
		for n := range page.Descendants() {
			for _, a := range n.Attr {
				switch a.Key {
				case "href", "src", "action", "data-source":
					if !strings.HasPrefix(a.Val, "/") {
						continue // the short link itself
					}
					found++
					if !strings.HasPrefix(a.Val, "/to%20go/") {
						t.Errorf("%s: %s=%q leaves the prefix", name, a.Key, a.Val)
					}
				}
			}
		}
		if found < 3 {
			t.Errorf("%s: only %d addresses found", name, found)
		}
	}
}

// TestPagesAreLight holds each page with all that it loads to 30,000 bytes, without any
// compression, in each language and with each setting that adds to it.
func TestPagesAreLight(t *testing.T) {
	t.Parallel()
	assets, err := loadAssets()
	if err != nil {
		t.Fatal(err)
	}
	limit, used, left := int64(50), int64(3), int64(47)
	rules := Rules{Daily: 50, Every: 10 * time.Second}
	for setting, config := range map[string]Config{
		"limits off": {},
		"as shipped": {Rules: rules},
		"everything": {Rules: rules, KeysOnly: true, Contact: "https://www.example.org/about-us/contact-the-operators",
			PublicURL: &url.URL{Scheme: "https", Host: "s.example", Path: "/a/rather/long/prefix"}},
	} {
		var v formPage
		if config.Rules != (Rules{}) {
			v.Allowance = &allowanceView{Limit: &limit, Used: &used, Remaining: &left, Open: true}
		}
		p := testPages(t, config)
		for _, tongue := range p.languages.tongues {
			c := choice{tongue, true}
			for name, row := range map[string]struct {
				render func(io.Writer) error
				files  int
			}{
				"form":   {func(w io.Writer) error { return p.form(w, c, v) }, 5},
				"manage": {func(w io.Writer) error { return p.manage(w, c) }, 6},
			} {
				var page bytes.Buffer
				if err := row.render(&page); err != nil {
					t.Fatal(err)
				}
				size, loaded := page.Len(), make(map[string]bool)
				for n := range parsePage(t, row.render).Descendants() {
					for _, a := range n.Attr {
						file, ok := strings.CutPrefix(a.Val, p.frame.Asset(""))
						if content := assets[file].content; ok && content != nil && !loaded[file] {
							loaded[file] = true
							size += len(content)
						}
					}
				}
				t.Logf("%s, %s, in %s: %d bytes", name, setting, tongue.Tag, size)
				if size > 30_000 || len(loaded) != row.files {
					t.Errorf("%s, %s, in %s: %d bytes with %v", name, setting, tongue.Tag, size, loaded)
				}
			}
		}
	}
}
