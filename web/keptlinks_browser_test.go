package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestBrowserKeeps is about the links that a browser keeps, with Chromium.
func TestBrowserKeeps(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	for name, journey := range map[string]func(*testing.T, context.Context){
		"nothing without storage":  makesLinksWithoutStorage,
		"until they are forgotten": exportsAndForgets,
		"each service's apart":     keepsServicesApart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journey(t, chromium)
		})
	}
}

func makesLinksWithoutStorage(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	call(v, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('denied', 'SecurityError'); }})`,
	})
	v.do(chromedp.Navigate(s.origin + "/"))
	v.enter("https://example.org/")
	v.wantFocus("#short")
	v.wantLink(s.origin+"/", "https://example.org/")
	v.wantText("allowance", fresh49)
	v.wantHidden("kept")
	v.goes(chromedp.Click(chromedp.CSS("#made .manage")))
	v.do(chromedp.WaitVisible(chromedp.ID("endless")))
	v.fill("url", "https://example.org/changed")
	v.enter("")
	v.wantText("saved", "Saved.")
}

func exportsAndForgets(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	v.do(chromedp.Navigate(s.origin + "/"))
	for _, slug := range []string{"first", "second"} {
		v.do(chromedp.Click(chromedp.CSS("summary")))
		v.fill("slug", slug)
		v.enter("https://example.org/" + slug)
		v.wantFocus("#short")
	}
	v.wantText("kept-links", s.origin+"/second https://example.org/second Copy QR code Manage "+s.origin+"/first https://example.org/first Copy QR code Manage")
	file := v.saves("snip-links.json", chromedp.Click(chromedp.ID("export")))
	var links []map[string]string
	if err := json.Unmarshal(file, &links); err != nil {
		t.Fatal(err)
	}
	if len(links) != 2 || links[0]["slug"] != "second" || links[1]["url"] != "https://example.org/first" ||
		links[0]["short_url"] != s.origin+"/second" || len(links[1]["token"]) < 26 || links[0]["created_at"] != "2026-11-29T22:00:00Z" {
		t.Errorf("exported %s", file)
	}

	// Another browser has deleted one of them.
	request, err := http.NewRequestWithContext(v.ctx, http.MethodDelete, s.origin+"/api/links/second", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+links[0]["token"])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	v.goes(chromedp.Click(chromedp.CSS("#kept-links .manage")))
	v.wantText("state", "This link has expired, used up its visits or been deleted.")
	v.do(chromedp.Navigate(s.origin + "/"))
	v.wantText("kept-links", s.origin+"/first https://example.org/first Copy QR code Manage")

	v.do(chromedp.Click(chromedp.ID("forget")))
	v.wantFocus("#forgetting button[value='']")
	v.do(chromedp.KeyEvent(kb.Escape))
	v.wantFocus("#forget")
	v.do(chromedp.Reload(), chromedp.Click(chromedp.ID("forget")), chromedp.Click(chromedp.CSS("#forgetting button[value=yes]")))
	v.wantHidden("kept")
	v.wantFocus("#url")
	v.do(chromedp.Reload(), chromedp.WaitReady(chromedp.ID("url")))
	v.wantHidden("kept")
	v.wantVisit(s.origin+"/first", 302, "https://example.org/first")
}

// browserContext is what the tab shares nothing of with others.
func (v *tab) browserContext() cdp.BrowserContextID {
	v.t.Helper()
	info, err := chromedp.Call(v.ctx, target.GetTargetInfo, target.GetTargetInfoParams{})
	if err != nil {
		v.t.Fatal(err)
	}
	return info.TargetInfo.BrowserContextID
}

// saves does what makes the browser save a file, and returns it.
func (v *tab) saves(name string, step chromedp.Action[chromedp.Void]) []byte {
	v.t.Helper()
	directory := v.t.TempDir()
	downloaded := make(chan struct{}, 1)
	if err := chromedp.Listen(v.ctx, func(event any) {
		if e, ok := event.(*browser.EventDownloadProgress); ok && e.State == browser.DownloadProgressStateCompleted {
			downloaded <- struct{}{}
		}
	}); err != nil {
		v.t.Fatal(err)
	}
	call(v, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		BrowserContextID: v.browserContext(),
		Behavior:         browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: directory, EventsEnabled: new(true),
	})
	v.do(step)
	select {
	case <-downloaded:
	case <-v.ctx.Done():
		v.t.Fatal("nothing was downloaded")
	}
	file, err := os.ReadFile(filepath.Join(directory, name))
	if err != nil {
		v.t.Fatal(err)
	}
	return file
}

// keepsServicesApart fills what the browser keeps, for a service under a path.
func keepsServicesApart(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50, prefix: "/to/go"})
	v := openTab(t, chromium, s.origin)
	v.do(chromedp.Navigate(s.origin + "/to/go/"))
	get(v, chromedp.Evaluate[chromedp.Void](`localStorage.setItem('snip.links /to/go/', JSON.stringify(Array.from({length: 1000}, (_, i) => (
		{slug: 'old' + i, short_url: 'https://s.example/old' + i, url: 'https://example.org/' + i, token: 'T', created_at: ''}))))`))
	get(v, chromedp.Evaluate[chromedp.Void](`localStorage.setItem('snip.links /', 'not ours')`))
	v.do(chromedp.Reload())
	v.enter("https://example.org/")
	v.wantFocus("#short")
	if got := get(v, chromedp.Evaluate[string](`[...document.querySelectorAll('#kept-links .short')].map((e) => e.textContent).filter((_, i, a) => i === 1 || i === a.length - 1).concat(document.querySelectorAll('#kept-links li').length).join()`)); got != "https://s.example/old0,https://s.example/old998,1000" {
		t.Errorf("the list has %s", got)
	}
	if got := get(v, chromedp.Evaluate[string](`localStorage.getItem('snip.links /')`)); got != "not ours" {
		t.Errorf("the other service's list has become %q", got)
	}
	v.goes(chromedp.Click(chromedp.CSS("#kept-links .manage")))
	v.do(chromedp.WaitVisible(chromedp.ID("endless")))
	if at := get(v, chromedp.Location()); !strings.HasPrefix(at, s.origin+"/to/go/-/manage#") {
		t.Errorf("the page is at %s", at)
	}
}
