package web

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"snip/shortener"
)

const slackbot = "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"

// hostileDestinations pass the rules for destinations, and would like to be more
// than text, or other text, on a page.
var hostileDestinations = map[string]string{
	"markup":     `https://example.org/` + hostile + `</p></main>{{.Title}}<!--`,
	"blanks":     "https://example.org/a  b   c\u00a0d\u3000e",
	"direction":  "https://example.org/\u202egpj.exe\u202c/\u2069\u2067\u05d0\u05d1/\u2066x",
	"invisible":  "https://example.org/a\u200bb\u00adc\ufeffd\u2028e\u3164f\ufe0fg\U000e0041h",
	"entities":   "https://example.org/?a=1&amp;b=2&copy;&#60;%3Cscript%3E+%2B",
	"long":       "https://example.org/" + strings.Repeat("<i>%2F\u202e", 100) + strings.Repeat("<i>%2F", 1200) + "x",
	"unbreaking": "https://example.org/" + strings.Repeat("a", 8172),
}

func (s *site) preview(target, accept string) *node {
	w := s.do(call{method: "GET", target: target, header: map[string]string{"Accept": accept}})
	root, err := html.Parse(bytes.NewReader(w.Body.Bytes()))
	if err != nil || w.Code != http.StatusOK || w.Header().Get("Content-Type") != mediaHTML {
		return nil
	}
	return &node{root}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	made := time.Date(2026, 11, 28, 23, 59, 0, 0, time.UTC)
	s.put(t, shortener.Link{Slug: "abc", Destination: "https://example.org/a?b#c", CreatedAt: made})
	s.put(t, shortener.Link{Slug: "ends", Destination: "https://example.org/", CreatedAt: made, ExpiresAt: s.time.now().Add(time.Minute)})
	s.put(t, shortener.Link{Slug: "few", Destination: "https://secret.example/", CreatedAt: made, MaxVisits: 1})
	s.put(t, shortener.Link{Slug: "old", Destination: "https://example.org/", ExpiresAt: s.time.now()})
	for _, row := range []struct {
		target, accept string
		status         int
		mediaType      string
		want           string // exactly, but for pages and problems
	}{
		{"/abc+", "", 200, mediaJSON, `{"slug":"abc","short_url":"https://s.example/abc","url":"https://example.org/a?b#c","created_at":"2026-11-28T23:59:00Z","expires_at":null}` + "\n"},
		{"/ends+", "application/json", 200, mediaJSON, `{"slug":"ends","short_url":"https://s.example/ends","url":"https://example.org/","created_at":"2026-11-28T23:59:00Z","expires_at":"2026-11-29T10:01:00Z"}` + "\n"},
		{"/few+", "*/*", 200, mediaJSON, `{"slug":"few","short_url":"https://s.example/few","url":null,"created_at":"2026-11-28T23:59:00Z","expires_at":null}` + "\n"},
		{"/abc+", "text/plain", 200, mediaText, "https://example.org/a?b#c\n"},
		{"/few+", "text/plain", 200, mediaText, "Where this link leads is shown to those who visit it: its visits are limited.\n"},
		{"/abc+", "text/html", 200, mediaHTML, ""},
		{"/few+", "text/html", 200, mediaHTML, ""},
		{"/abc%2B", "text/plain", 200, mediaText, "https://example.org/a?b#c\n"},
		{"/abc+/", "text/plain", 200, mediaText, "https://example.org/a?b#c\n"},
		{"/abc+).", "text/plain", 200, mediaText, "https://example.org/a?b#c\n"},
		{"/abc+?x=1", "text/plain", 200, mediaText, "https://example.org/a?b#c\n"},
		{"/none+", "", 404, mediaProblem, ""},
		{"/none+", "text/html", 404, mediaHTML, ""},
		{"/abc++", "", 404, mediaProblem, ""},
		{"/abc+//", "", 404, mediaProblem, ""},
		{"/abc/+", "", 404, mediaProblem, ""},
		{"/abc+d", "", 404, mediaProblem, ""},
		{"/ABC+", "", 404, mediaProblem, ""},
		{"/+", "", 404, mediaProblem, ""},
		{"/old+", "", 410, mediaProblem, ""},
	} {
		header := map[string]string{"Accept": row.accept}
		get := s.do(call{method: "GET", target: row.target, header: header})
		h := get.Header()
		if get.Code != row.status || h.Get("Content-Type") != row.mediaType || row.want != "" && get.Body.String() != row.want {
			t.Errorf("GET %s for %s: %d %s %q", row.target, row.accept, get.Code, h.Get("Content-Type"), get.Body)
		}
		if h.Get("Location") != "" || h.Get("Refresh") != "" || h.Get("Cache-Control") != "no-store" || !strings.HasPrefix(h.Get("Vary"), "Accept") {
			t.Errorf("GET %s: %v", row.target, h)
		}
		if strings.Contains(get.Body.String(), "secret") {
			t.Errorf("GET %s for %s tells where a limited link leads: %q", row.target, row.accept, get.Body)
		}
		head := s.do(call{method: "HEAD", target: row.target, header: header})
		if diff := cmp.Diff(h, head.Header()); head.Code != get.Code || diff != "" || head.Body.Len() != 0 {
			t.Errorf("HEAD %s: %d %q, headers (-GET +HEAD):\n%s", row.target, head.Code, head.Body, diff)
		}
	}
	wantAnswer(t, s.do(call{target: "/abc+"}), http.StatusMethodNotAllowed, "")
	wantVisit(t, s, "/few", "https://secret.example/") // no preview was one
	s.time.advance(time.Minute)
	wantAnswer(t, s.do(call{method: "GET", target: "/ends+"}), http.StatusGone, `"code":"gone"`)
}

func TestPreviewPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{public: "https://s.example/go", contact: "links@example.org"})
	made := time.Date(2026, 11, 28, 23, 59, 0, 0, time.UTC)
	s.put(t, shortener.Link{Slug: "plain", Destination: "https://www.example.org/a", CreatedAt: made})
	s.put(t, shortener.Link{Slug: "ends", Destination: "https://example.org/", CreatedAt: made, ExpiresAt: s.time.now().Add(time.Hour)})
	s.put(t, shortener.Link{Slug: "ours", Destination: "https://한국.example/", CreatedAt: made})
	s.put(t, shortener.Link{Slug: "fake", Destination: "https://аpple.example/", CreatedAt: made})
	s.put(t, shortener.Link{Slug: "few", Destination: "https://secret.example/", CreatedAt: made, MaxVisits: 3})
	s.put(t, shortener.Link{Slug: "odd", Destination: "read by no rule of today", CreatedAt: made})
	const head = "Where this link leads – Snip Snip Where this link leads "
	const foot = " Report this link Questions, or a link to report: links@example.org English · 한국어 · 日本語"
	for slug, want := range map[string]struct{ page, title string }{
		"plain": {"www.example.org The whole address https://www.example.org/a Made on 28 November 2026. It does not expire. 0 visits so far. Go there",
			"A short link to www.example.org"},
		"ends": {"example.org The whole address https://example.org/ Made on 28 November 2026. It expires on 29 November 2026 at 11:00 UTC. 0 visits so far. Go there",
			"A short link to example.org"},
		"ours": {"한국.example The name has letters other than a to z, some of which look like them. Browsers know it as xn--3e0b707e.example " +
			"The whole address https://한국.example/ Made on 28 November 2026. It does not expire. 0 visits so far. Go there",
			"A short link to xn--3e0b707e.example"},
		"fake": {"аpple.example The name has letters other than a to z, some of which look like them. Browsers know it as xn--pple-43d.example " +
			"It mixes letters of different scripts, as imitations of well-known names do. Go on only if you expected that. " +
			"The whole address https://аpple.example/ Made on 28 November 2026. It does not expire. 0 visits so far. Go there",
			"A short link to xn--pple-43d.example"},
		"few": {"This link may be visited a limited number of times, so where it leads is shown to those who visit it. The button uses one visit. " +
			"Made on 28 November 2026. It does not expire. Visit it",
			"A short link"},
		"odd": {"The whole address read by no rule of today Made on 28 November 2026. It does not expire. 0 visits so far. Go there",
			"A short link"},
	} {
		page := s.preview("/go/"+slug+"+", "text/html")
		if page == nil {
			t.Fatalf("%s: no page", slug)
		}
		if got := page.text(); got != head+want.page+foot {
			t.Errorf("%s:\n got %q\nwant %q", slug, got, head+want.page+foot)
		}
		if got := page.first(t, "meta", "property", "og:title").attr("content"); got != want.title {
			t.Errorf("%s: og:title %q, want %q", slug, got, want.title)
		}
		if got := page.first(t, "meta", "name", "robots").attr("content"); got != "noindex" {
			t.Errorf("%s: robots %q", slug, got)
		}
		onward := page.id(t, "onward")
		if slug == "few" {
			form := page.first(t, "form", "method", "post")
			if onward.Data != "button" || onward.Parent != form.Node || form.attr("action") != "/go/few" {
				t.Errorf("few: onward %q in %q to %q", onward.Data, onward.Parent.Data, form.attr("action"))
			}
		} else if onward.attr("href") != "https://s.example/go/"+slug || onward.attr("rel") != "noreferrer nofollow" {
			t.Errorf("%s: onward %q, rel %q", slug, onward.attr("href"), onward.attr("rel"))
		}
		if got, want := page.id(t, "report").attr("href"), "mailto:links@example.org?subject=https%3A%2F%2Fs.example%2Fgo%2F"+slug; got != want {
			t.Errorf("%s: report %q, want %q", slug, got, want)
		}
	}
	without := newSite(t, siteSetup{})
	without.put(t, shortener.Link{Slug: "abc", Destination: "https://example.org/"})
	if got := without.preview("/abc+", "text/html").text(); strings.Contains(got, "eport") {
		t.Errorf("without a contact: %q", got)
	}
}

func TestReportURL(t *testing.T) {
	t.Parallel()
	for contact, want := range map[string]string{
		"":                                      "",
		"https://example.org/tell":              "https://example.org/tell",
		"mailto:a@example.org":                  "mailto:a@example.org?subject=https%3A%2F%2Fs.example%2Fa%20%26b",
		"mailto:a@example.org?cc=b@example.org": "mailto:a@example.org?cc=b@example.org&subject=https%3A%2F%2Fs.example%2Fa%20%26b",
	} {
		if got := reportURL(contact, "https://s.example/a &b"); got != want {
			t.Errorf("%q: %q, want %q", contact, got, want)
		}
	}
}

// wantAddress checks that a page shows an address whole and as nothing but text.
func wantAddress(t *testing.T, page node, want string) {
	t.Helper()
	var shown strings.Builder
	for n := range page.id(t, "address").Descendants() {
		switch {
		case n.Type == html.TextNode:
			shown.WriteString(n.Data)
		case n.Type != html.ElementNode || n.Data != "bdi":
			t.Errorf("%.80q became an element %q", want, n.Data)
		}
	}
	if shown.String() != want {
		t.Errorf("shown:\n got %q\nwant %q", shown.String(), want)
	}
}

func TestPreviewKeepsHostileDestinations(t *testing.T) {
	t.Parallel()
	for name, destination := range hostileDestinations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, siteSetup{})
			body, err := json.Marshal(map[string]string{"url": destination, "slug": "abc"})
			if err != nil {
				t.Fatal(err)
			}
			wantAnswer(t, s.post(string(body)), http.StatusCreated, "")
			page := s.preview("/abc+", "text/html")
			if page == nil {
				t.Fatal("no page")
			}
			wantAddress(t, *page, destination)
			for n := range page.Descendants() {
				if n.Type == html.ElementNode && (n.Data == "script" || n.Data == "i") {
					t.Errorf("the page has a <%s>", n.Data)
				}
			}
			var shown struct{ URL string }
			if err := json.Unmarshal(s.do(call{method: "GET", target: "/abc+"}).Body.Bytes(), &shown); err != nil || shown.URL != destination {
				t.Errorf("JSON %q, %v", shown.URL, err)
			}
		})
	}
}

// TestPreviewKeepsRealDestinations takes every fiftieth: all of them take two
// minutes under the race detector.
func TestPreviewKeepsRealDestinations(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../shortener/testdata/urls.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	p := testPages(t, Config{})
	n := 0
	for lines := bufio.NewScanner(unzipped); lines.Scan(); n++ {
		if n%50 != 0 {
			continue
		}
		destination := lines.Text()
		page := parsePage(t, func(w io.Writer) error {
			return p.preview(w, p.english(), previewOf(p.languages.english(), shortener.Link{Destination: destination}, "https://s.example/abc"))
		})
		wantAddress(t, page, destination)
		if host := page.id(t, "host").text(); host == "" || !strings.HasPrefix(strings.ToLower(destination), "https://"+host) {
			t.Errorf("%q: host %q", destination, host)
		}
	}
	if n < 48_000 {
		t.Errorf("read %d destinations", n)
	}
}

func TestPieces(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][]piece{
		"":                 nil,
		"https://a b/ß":    {{Text: "https://a b/ß"}},
		"a\u202eb\u2069":   {{Text: "a"}, {"\u202e", "U+202E"}, {Text: "b"}, {"\u2069", "U+2069"}},
		"\u3000\U000e0041": {{"\u3000", "U+3000"}, {"\U000e0041", "U+E0041"}},
		"a\xff\u200b":      {{Text: "a\xff"}, {"\u200b", "U+200B"}},
	} {
		if diff := cmp.Diff(want, pieces(address)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", address, diff)
		}
	}
}

func TestFetchersGetThePreview(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	s.put(t, shortener.Link{Slug: "few", Destination: "https://secret.example/", MaxVisits: 1})
	s.put(t, shortener.Link{Slug: "many", Destination: "https://example.org/"})
	s.put(t, shortener.Link{Slug: "old", Destination: "https://example.org/", MaxVisits: 1, ExpiresAt: s.time.now()})
	fetch := func(method, target, agent string) (int, string, string) {
		w := s.do(call{method: method, target: target, header: map[string]string{"User-Agent": agent, "Accept": "*/*"}})
		return w.Code, w.Header().Get("Location"), w.Body.String()
	}
	for _, agent := range []string{
		slackbot,
		"Twitterbot/1.0",
		"facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
		"facebookexternalhit/1.1; kakaotalk-scrap/1.0; +https://devtalk.kakao.com/t/scrap/33984",
		"Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
		"WhatsApp/2.23.20.0 A",
		"TelegramBot (like TwitterBot)",
		"LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)",
		"Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5 skype-url-preview@microsoft.com",
		"Mattermost-Bot/1.1",
		"Mozilla/5.0 (compatible; Bluesky Cardyb/1.1; +mailto:support@bsky.app)",
		"http.rb/5.1.1 (Mastodon/4.2.10; +https://mastodon.example/)",
	} {
		for _, target := range []string{"/few", "/few/", "/few).", "/few+"} {
			status, location, body := fetch("GET", target, agent)
			if status != 200 || location != "" || !strings.Contains(body, `property="og:title" content="A short link"`) || strings.Contains(body, "secret") {
				t.Errorf("GET %s by %s: %d %q %q", target, agent, status, location, body)
			}
		}
		if status, location, body := fetch("HEAD", "/few", agent); status != 200 || location != "" || body != "" {
			t.Errorf("HEAD /few by %s: %d %q %q", agent, status, location, body)
		}
		if status, location, _ := fetch("GET", "/many", agent); status != 302 || location != "https://example.org/" {
			t.Errorf("GET /many by %s: %d %q", agent, status, location)
		}
		for target, want := range map[string]int{"/old": 410, "/none": 404} {
			if status, _, _ := fetch("GET", target, agent); status != want {
				t.Errorf("GET %s by %s: %d", target, agent, status)
			}
		}
	}
	wantVisit(t, s, "/few", "https://secret.example/") // which all of them left
}

// The maker of a link whose visits are limited may let its preview show where it
// leads.
func TestPreviewShownByItsMaker(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	h := made(t, s, `{"url":"https://example.org/","slug":"few","max_visits":1,"show_destination":true}`)
	see := func(contains string) {
		t.Helper()
		wantAnswer(t, s.do(call{method: "GET", target: "/few+"}), http.StatusOK, contains)
	}
	see(`"url":"https://example.org/"`)
	wantAnswer(t, h.manage("PATCH", `{"show_destination":false}`), http.StatusOK, `"show_destination":false`)
	see(`"url":null`)
	wantAnswer(t, h.manage("PATCH", `{"show_destination":true}`), http.StatusOK, `"show_destination":true`)
	see(`"url":"https://example.org/"`)
	wantAnswer(t, h.manage("PATCH", `{"show_destination":null}`), http.StatusBadRequest, "show_destination: must be true or false.")
	wantAnswer(t, s.do(call{method: "HEAD", target: "/few"}), http.StatusOK, "") // still not a visit, and no Location
	wantVisit(t, s, "/few", "https://example.org/")
}
