package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestPreviewInBrowser shows previews to people with Chromium.
func TestPreviewInBrowser(t *testing.T) {
	t.Parallel()
	browser := startChromium(t)
	for name, journey := range map[string]func(*testing.T, context.Context){
		"is text":              previewIsText,
		"reads left to right":  previewReadsLeftToRight,
		"leads on by keyboard": previewLeadsOn,
		"fits a small screen":  previewFits,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journey(t, browser)
		})
	}
}

// make makes a link and returns its short URL.
func (s *site) make(t *testing.T, destination string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"url": destination})
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(s.origin+"/api/links", "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		t.Fatalf("%.80q: status %d", destination, response.StatusCode)
	}
	return response.Header.Get("Location")
}

func previewIsText(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, browser, s.origin)
	for _, destination := range []string{
		`https://example.org/"><script>document.title='ran'</script><img src=x onerror="document.title='ran'">'&amp;`,
		"https://example.org/a  b   c\u00a0d\u3000e",
		"https://example.org/\u202egpj.exe\u202c/\u2069\u2067\u05d0\u05d1/\u2066x",
		"https://example.org/a\u200bb\u00adc\ufeffd\u3164e\ufe0ff\U000e0041g",
		"https://example.org/" + strings.Repeat("a", 8172),
		"https://example.org/" + strings.Repeat("<i>%2F\u202e", 100) + strings.Repeat("<i>%2F", 1200) + "x",
	} {
		v.do(chromedp.Navigate(s.make(t, destination) + "+"))
		if got := get(v, chromedp.Text(chromedp.ID("address"))); got != destination {
			t.Errorf("shown:\n got %+q\nwant %+q", got, destination)
		}
		if got := get(v, chromedp.Title()); got != "Where this link leads – Snip" {
			t.Errorf("%.80q: title %q", destination, got)
		}
		if got := v.text("host"); got != "example.org" {
			t.Errorf("%.80q: host %q", destination, got)
		}
	}
}

// previewReadsLeftToRight measures where each character stands: an override of
// the direction must move none.
func previewReadsLeftToRight(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, browser, s.origin)
	v.do(chromedp.EmulateViewport(1280, 800))
	for _, destination := range []string{
		"https://example.org/\u202egpj.exe",
		"https://example.org/\u2069\u202egpj\u2069.\u2067exe",
	} {
		v.do(chromedp.Navigate(s.make(t, destination) + "+"))
		order := get(v, chromedp.Evaluate[string](`(() => {
			const seen = [];
			const walk = document.createTreeWalker(document.getElementById('address'), NodeFilter.SHOW_TEXT);
			for (let node; node = walk.nextNode();) {
				if (node.parentElement.dataset.code) continue;
				for (let i = 0; i < node.length; i++) {
					const range = document.createRange();
					range.setStart(node, i);
					range.setEnd(node, i + 1);
					seen.push([range.getBoundingClientRect().left, node.data[i]]);
				}
			}
			return seen.sort((a, b) => a[0] - b[0]).map((c) => c[1]).join('');
		})()`))
		if order != "https://example.org/gpj.exe" {
			t.Errorf("%+q reads %q", destination, order)
		}
	}
}

func previewLeadsOn(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, browser, s.origin)
	short := s.make(t, "https://example.org/")
	v.do(chromedp.Navigate(short + "+"))
	if at := get(v, chromedp.Location()); at != short+"+" {
		t.Fatalf("the preview went on to %s", at)
	}
	v.do(chromedp.KeyEvent(kb.Tab))
	v.wantFocus(".home")
	v.do(chromedp.KeyEvent(kb.Tab))
	v.wantFocus("#onward")
	if to := get(v, chromedp.Evaluate[string](`document.activeElement.href`)); to != short {
		t.Errorf("the button leads to %s, want %s", to, short)
	}
}

func previewFits(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, browser, s.origin)
	v.do(chromedp.EmulateViewport(320, 640))
	for _, destination := range []string{
		"https://example.org/" + strings.Repeat("a", 8172),
		"https://" + strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + ".example/",
		"https://" + strings.Repeat("ü", 50) + ".example/",
	} {
		v.do(chromedp.Navigate(s.make(t, destination) + "+"))
		if width := get(v, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)); width > 320 {
			t.Errorf("%.80q: the page is %d wide on a screen of 320", destination, width)
		}
	}
}
