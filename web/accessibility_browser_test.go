package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"snip/shortener"
)

// TestBrowserAccessibility holds every page, in each state that looks different,
// to axe-core's checks and to a width of 320 pixels (WCAG 2.2, criterion 1.4.10).
func TestBrowserAccessibility(t *testing.T) {
	t.Parallel()
	axe := readAxe(t)
	chromium := startChromium(t)
	rows := []pageState{
		{page: "form", open: func(v *tab, s *site) {
			v.arrive(s.origin+"/", http.StatusOK)
		}},
		{page: "form of a private service, with a wrong key", private: true, open: func(v *tab, s *site) {
			v.arrive(s.origin+"/", http.StatusOK)
			v.fill("key", "wrong")
			v.enter("https://example.org/")
			v.wantFocus("#key[aria-invalid=true]")
		}},
		{page: "form with a wrong field, without script", open: withoutScript(func(v *tab, s *site) {
			v.arrive(s.origin+"/", http.StatusOK)
			v.do(chromedp.Click(chromedp.CSS("summary")))
			v.fill("slug", "a b")
			v.fill("url", "https://example.org/")
			v.wantStatus(http.StatusBadRequest, pressButton)
		})},
		{page: "form with a 429", open: func(v *tab, s *site) {
			s.make(v.t, "https://example.org/")
			v.arrive(s.origin+"/", http.StatusOK)
			v.enter("https://example.org/")
			v.do(chromedp.WaitVisible(chromedp.ID("limited")))
		}},
		{page: "form with a link made", open: func(v *tab, s *site) {
			v.makeByForm(s)
			v.do(chromedp.WaitVisible(chromedp.ID("kept")))
		}},
		{page: "form with a list made", open: func(v *tab, s *site) {
			v.arrive(s.origin+"/", http.StatusOK)
			v.insert("url", longAddress+"\nhttps://example.org/")
			v.pressEnter(kb.ModifierNone)
			v.wantFocus("#made button")
		}},
		{page: "form with wrong lines", open: func(v *tab, s *site) {
			v.arrive(s.origin+"/", http.StatusOK)
			v.insert("url", longAddress+"\nftp:x\nhttps://a..b/")
			v.pressEnter(kb.ModifierNone)
			v.do(chromedp.WaitVisible(chromedp.ID("wrong")))
		}},
		{page: "form asking whether to forget", open: func(v *tab, s *site) {
			v.makeByForm(s)
			v.do(chromedp.Click(chromedp.ID("forget")), chromedp.WaitVisible(chromedp.ID("forgetting")))
		}},
		{page: "result, without script", open: withoutScript(func(v *tab, s *site) {
			v.arrive(s.origin+"/", http.StatusOK)
			v.do(chromedp.Click(chromedp.CSS("summary")))
			v.fill("max_visits", "3")
			v.insert("url", longAddress)
			v.wantStatus(http.StatusCreated, pressButton)
		})},
		{page: "result of a list, without script", open: withoutScript(func(v *tab, s *site) {
			v.arrive(s.origin+"/", http.StatusOK)
			v.insert("url", longAddress+"\nhttps://example.org/")
			v.wantStatus(http.StatusCreated, pressButton)
		})},
		{page: "preview", open: func(v *tab, s *site) {
			v.arrive(s.make(v.t, "https://аpple.example/\u202egpj.exe/"+longAddress)+"+", http.StatusOK)
			v.do(chromedp.WaitVisible(chromedp.ID("warning")))
		}},
		{page: "preview of a limited link", open: func(v *tab, s *site) {
			v.openManage(s, `{"url":"https://example.org/","slug":"few","max_visits":3,"expires_at":"2030-01-31T18:00:00Z"}`)
			v.arrive(s.origin+"/few+", http.StatusOK)
		}},
		{page: "limited link that shows its destination", open: func(v *tab, s *site) {
			v.openManage(s, `{"url":"`+longAddress+`","slug":"shown","max_visits":3,"show_destination":true}`)
			v.arrive(s.origin+"/shown", http.StatusOK)
		}},
		{page: "manage with visits", open: func(v *tab, s *site) {
			v.openManage(s, `{"url":"`+longAddress+`","slug":"many"}`)
			for host, n := range map[string]int{"news.example": 7, "a-host-with-a-name-that-is-longer-than-a-small-screen-is-wide.example": 3} {
				for range n {
					s.service.CountVisit("many", shortener.Person, host)
				}
			}
			s.service.CountVisit("many", shortener.Crawler, "")
			if lost, err := s.service.StoreVisits(v.ctx, func() {}); lost != 0 || err != nil {
				v.t.Fatal(lost, err)
			}
			v.do(chromedp.Reload(), chromedp.WaitVisible(chromedp.ID("by-referrer")))
			get(v, chromedp.Evaluate[chromedp.Void](`for (const d of document.querySelectorAll('details')) d.open = true`))
		}},
		{page: "manage with a wrong field", open: func(v *tab, s *site) {
			v.openManage(s, `{"url":"https://example.org/","max_visits":1}`)
			v.fill("max_visits", "0")
			v.do(chromedp.SendKeys(chromedp.ID("max_visits"), kb.Enter))
			v.wantFocus("#max_visits[aria-invalid=true]")
		}},
		{page: "manage asking whether to delete", open: func(v *tab, s *site) {
			v.openManage(s, `{"url":"https://example.org/"}`)
			v.do(chromedp.Click(chromedp.ID("delete")), chromedp.WaitVisible(chromedp.ID("deleting")))
		}},
		{page: "manage, without script", open: withoutScript(func(v *tab, s *site) {
			v.arrive(s.origin+"/-/manage#unknown.TOKEN", http.StatusOK)
			v.do(chromedp.WaitVisible(chromedp.CSS("noscript")))
		})},
		{page: "404", open: func(v *tab, s *site) {
			v.arrive(s.origin+"/nowhere", http.StatusNotFound)
		}},
		{page: "410", open: func(v *tab, s *site) {
			short := v.openManage(s, `{"url":"https://example.org/","max_visits":1}`)
			v.wantVisit(short, http.StatusSeeOther, "https://example.org/")
			v.arrive(short, http.StatusGone)
		}},
		{page: "405", open: func(v *tab, s *site) {
			v.arrive(s.origin+"/api/links", http.StatusMethodNotAllowed)
		}},
	}
	// A tab of its own for each would compile the checks as often.
	for group := range slices.Chunk(rows, 2) {
		t.Run("in one tab", func(t *testing.T) {
			t.Parallel()
			shared := visit(t, chromium)
			for _, row := range group {
				for _, language := range []string{"en", "ko", "ja"} {
					t.Run(row.page+" in "+language, func(t *testing.T) {
						s := openSite(t, siteConfig{daily: 50, every: 10 * time.Second, contact: "mailto:links@example.org", private: row.private})
						v := &tab{t: t, ctx: shared.ctx}
						v.prefers(language)
						row.open(v, s)
						// Colours and targets are the same in every language; how much
						// room words take is not.
						themes := []string{"light"}
						if language == "en" {
							themes = []string{"light", "dark"}
						}
						for _, fault := range v.faults(axe, themes...) {
							t.Error(fault)
						}
					})
				}
			}
		})
	}
	t.Run("not ours, and broken", func(t *testing.T) {
		t.Parallel()
		findsFaults(t, chromium, axe)
	})
}

// pageState is a page in a state that looks different from others, and how to
// get there.
type pageState struct {
	page    string
	open    func(*tab, *site)
	private bool // whether links are made by holders of a key only
}

// longAddress has no place where a line may end.
var longAddress = "https://example.org/" + strings.Repeat("a", 300)

// readAxe returns axe-core as a script that leaves nothing to return.
func readAxe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	return string(script) + ";undefined"
}

// withoutScript opens a page without the page's script, and allows it
// afterwards: the checks are a script.
func withoutScript(open func(*tab, *site)) func(*tab, *site) {
	return func(v *tab, s *site) {
		v.t.Helper()
		call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		open(v, s)
		call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{})
	}
}

// wantStatus does what leads to another page, which must come with the status.
func (v *tab) wantStatus(want int64, step chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	response, err := chromedp.RunResponse(v.ctx, step)
	if err != nil {
		v.t.Fatal(err)
	}
	if response.Status != want {
		v.t.Fatalf("%s: status %d, want %d", response.URL, response.Status, want)
	}
}

func (v *tab) arrive(url string, want int64) {
	v.t.Helper()
	v.wantStatus(want, chromedp.Navigate(url))
}

// insert puts a text into a field in one go, as from the clipboard, in place of
// what it holds.
func (v *tab) insert(id, text string) {
	v.t.Helper()
	v.do(chromedp.Focus(chromedp.ID(id)))
	get(v, chromedp.Evaluate[chromedp.Void](`document.activeElement.select()`))
	call(v, input.InsertText, input.InsertTextParams{Text: text})
}

func (v *tab) makeByForm(s *site) {
	v.t.Helper()
	v.arrive(s.origin+"/", http.StatusOK)
	v.insert("url", longAddress)
	v.do(chromedp.KeyEvent(kb.Enter))
	v.wantFocus("#short")
}

// audit runs the checks of WCAG 2.2, levels A and AA, and of those that are only
// good practice reports what would keep people from using the page. No rule of
// these reads style sheets, which axe-core would fetch for each run.
const audit = `axe.run({
	resultTypes: ['violations'], preload: false,
	runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
}).then(({violations}) => violations
	.filter(({tags, impact}) => !tags.includes('best-practice') || ['serious', 'critical'].includes(impact))
	.map(({id, impact, nodes}) => id + ' (' + impact + ') at ' + nodes.map(({target}) => target.join(' ')).join(', ')))`

// faults returns what is wrong with the page on screens of several widths, in
// these themes.
func (v *tab) faults(axe string, themes ...string) []string {
	v.t.Helper()
	get(v, chromedp.Evaluate[chromedp.Void](axe))
	var faults []string
	for _, width := range []int64{320, 768, 1280} {
		v.do(chromedp.EmulateViewport(width, 800))
		if wide := get(v, chromedp.Evaluate[int64](`document.documentElement.scrollWidth`)); wide > width {
			faults = append(faults, fmt.Sprintf("%d px: scrolls sideways to %d", width, wide))
		}
		for _, theme := range themes {
			call(v, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: theme},
				{Name: "prefers-reduced-motion", Value: "reduce"}, // a colour on its way to another is neither
			}})
			for _, violation := range get(v, chromedp.Evaluate[[]string](audit, chromedp.EvalAwaitPromise)) {
				faults = append(faults, fmt.Sprintf("%d px, %s: %s", width, theme, violation))
			}
		}
	}
	return faults
}

// findsFaults shows that the checks see what each width and theme does to a page.
func findsFaults(t *testing.T, chromium context.Context, axe string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!doctype html>
<html lang="en"><head><title>Broken</title><link rel="icon" href="data:,"><style>
body { background: #fff; color: #000 }
@media (prefers-color-scheme: dark) { #dim { color: #777; background: #555 } }
@media (width < 700px) { #wide { width: 400px } }
button { width: 44px; height: 44px; padding: 0; border: 0 }
@media (700px < width < 1000px) { button { width: 9px; height: 9px } }
</style></head><body><main><h1>Broken</h1>
<p id="dim">Dim in the dark</p><div id="wide">Wide on a small screen</div>
<div><button id="one" aria-label="one"></button><button id="two" aria-label="two"></button></div>
<p><input id="nameless"></p><h4>After a heading of the first level</h4>
</main></body></html>`)
	}))
	t.Cleanup(server.Close)
	v := openTab(t, chromium, server.URL)
	v.arrive(server.URL+"/", http.StatusOK)
	want := []string{
		"320 px: scrolls sideways to 408",
		"320 px, light: label (critical) at #nameless",
		"320 px, dark: color-contrast (serious) at #dim",
		"320 px, dark: label (critical) at #nameless",
		"768 px, light: label (critical) at #nameless",
		"768 px, light: target-size (serious) at #one, #two",
		"768 px, dark: color-contrast (serious) at #dim",
		"768 px, dark: label (critical) at #nameless",
		"768 px, dark: target-size (serious) at #one, #two",
		"1280 px, light: label (critical) at #nameless",
		"1280 px, dark: color-contrast (serious) at #dim",
		"1280 px, dark: label (critical) at #nameless",
	}
	if got := v.faults(axe, "light", "dark"); !slices.Equal(got, want) {
		t.Errorf("found:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
