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

	"snip/static"
)

const hostile = `"><script>alert(1)</script>'&amp;` // what a page must show and never run

func testPages(t *testing.T, c Config) *pages {
	t.Helper()
	if c.PublicURL == nil {
		c.PublicURL = &url.URL{Scheme: "https", Host: "s.example"}
	}
	c.Now = func() time.Time { return time.Date(2026, 11, 29, 22, 0, 0, 0, time.UTC) }
	p, err := newPages(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

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
			page := parsePage(t, func(w io.Writer) error { return p.form(w, formPage{Allowance: row.allowance}) })
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
	limited := newProblem(http.StatusTooManyRequests, "rate_limited", "50 links per UTC day")
	limitedFor := func(wait time.Duration) *problem {
		p := *limited
		p.retryAfter = wait
		return &p
	}
	const shared = "No more links can be made from your address just now. Others may share it. "
	for _, row := range []struct {
		name        string
		typed       string
		problem     *problem
		want        string
		wantInvalid string
	}{
		{"what was typed is at fault", "ftp://example.org",
			newProblem(http.StatusBadRequest, "invalid_url", "url: must start with https://."),
			"This link must start with https://.", "true"},
		{"the service is at fault", "https://example.org", unavailable("Try again in a few seconds."),
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
				return p.form(w, formPage{URL: row.typed, Problem: row.problem})
			})
			problem, field := page.id(t, "problem"), page.id(t, "url")
			if got := problem.text(); got != row.want {
				t.Errorf("problem:\n got %q\nwant %q", got, row.want)
			}
			if got := problem.attr("role"); got != "alert" {
				t.Errorf("the problem's role is %q", got)
			}
			if got := field.attr("aria-describedby"); got != "problem allowance" {
				t.Errorf("the field is described by %q", got)
			}
			if got := field.attr("aria-invalid"); got != row.wantInvalid {
				t.Errorf("aria-invalid = %q, want %q", got, row.wantInvalid)
			}
			if got := field.attr("value"); got != row.typed {
				t.Errorf("the field holds %q, want %q", got, row.typed)
			}
		})
	}
}

func TestResultShowsTheLink(t *testing.T) {
	t.Parallel()
	p := testPages(t, Config{})
	page := parsePage(t, func(w io.Writer) error {
		return p.result(w, resultPage{
			ShortURL:    "https://s.example/kX3vR7q",
			Destination: "https://example.org/a?b=1&c=2",
			ExpiresAt:   time.Date(2027, 1, 31, 9, 0, 0, 0, time.UTC),
		})
	})
	if got := page.id(t, "short").attr("value"); got != "https://s.example/kX3vR7q" {
		t.Errorf("short link: %q", got)
	}
	for _, want := range []string{
		"Leads to https://example.org/a?b=1&c=2", "Ends on 31 January 2027 at 09:00 UTC", "Make another",
	} {
		if got := page.text(); !strings.Contains(got, want) {
			t.Errorf("the page lacks %q: %q", want, got)
		}
	}
}

func TestMessagesLeadOn(t *testing.T) {
	t.Parallel()
	p := testPages(t, Config{})
	for status, heading := range map[int]string{
		http.StatusForbidden:           "Refused",
		http.StatusNotFound:            "Nothing here",
		http.StatusMethodNotAllowed:    "That does not work here",
		http.StatusGone:                "This link has ended",
		http.StatusTeapot:              "I'm a teapot",
		http.StatusInternalServerError: "Something went wrong",
		http.StatusServiceUnavailable:  "Back in a moment",
	} {
		page := parsePage(t, func(w io.Writer) error { return p.message(w, newProblem(status, "some_code", "A sentence.")) })
		if got, want := page.text(), heading+" – Snip Snip "+heading+" A sentence. Make a short link"; got != want {
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
		page := parsePage(t, func(w io.Writer) error { return p.form(w, formPage{}) })
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
			return p.form(w, formPage{URL: hostile, Problem: newProblem(http.StatusBadRequest, "invalid_url", "%s", hostile)})
		}),
		"result": parsePage(t, func(w io.Writer) error {
			return p.result(w, resultPage{ShortURL: "https://s.example/abc", Destination: hostile})
		}),
		"message": parsePage(t, func(w io.Writer) error {
			return p.message(w, newProblem(http.StatusNotFound, "not_found", "%s", hostile))
		}),
	}
}

func TestPagesEscape(t *testing.T) {
	t.Parallel()
	for name, page := range everyPage(t, Config{}) {
		if !strings.Contains(page.text(), hostile) {
			t.Errorf("%s: the text is not shown as it is: %q", name, page.text())
		}
		if name == "form" && page.id(t, "url").attr("value") != hostile {
			t.Errorf("%s: the field holds %q", name, page.id(t, "url").attr("value"))
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
				if e.attr("src") != "/-/snip.js" || e.FirstChild != nil {
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

// TestFormIsLight holds the form with all that it loads to 30 kB, without any
// compression.
func TestFormIsLight(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	if err := testPages(t, Config{}).form(&page, formPage{}); err != nil {
		t.Fatal(err)
	}
	size := page.Len()
	for _, name := range []string{"snip.css", "snip.js", "snip.svg"} {
		content, err := static.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		size += len(content)
	}
	if size > 30_000 {
		t.Errorf("%d bytes", size)
	}
}

// node is an element as a reader meets it.
type node struct{ *html.Node }

func parsePage(t *testing.T, render func(io.Writer) error) node {
	t.Helper()
	var page bytes.Buffer
	if err := render(&page); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(&page)
	if err != nil {
		t.Fatal(err)
	}
	return node{root}
}

func (n node) attr(key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func (n node) hidden() bool {
	for _, a := range n.Attr {
		if a.Key == "hidden" {
			return true
		}
	}
	return n.Type == html.ElementNode && n.Data == "template"
}

func (n node) id(t *testing.T, id string) node {
	t.Helper()
	return n.first(t, "", "id", id)
}

// first returns the first element of that name, any name when it is empty, whose
// attribute has the value.
func (n node) first(t *testing.T, name, key, value string) node {
	t.Helper()
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && (name == "" || d.Data == name) && (node{d}).attr(key) == value {
			return node{d}
		}
	}
	t.Fatalf("no <%s %s=%q>", name, key, value)
	return node{}
}

// text returns what is not hidden, with blanks and line ends as one blank.
func (n node) text() string {
	var b strings.Builder
	var walk func(node)
	walk = func(n node) {
		if n.hidden() {
			return
		}
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		for c := range n.ChildNodes() {
			walk(node{c})
		}
	}
	walk(n)
	return strings.Join(strings.Fields(b.String()), " ")
}
