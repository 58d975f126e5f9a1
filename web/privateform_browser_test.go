package web_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestBrowserShowsKey makes links on a private service, where the form asks for a
// key and the browser keeps it.
func TestBrowserShowsKey(t *testing.T) {
	t.Parallel()
	s := openSite(t, siteConfig{daily: 50, private: true})
	_, text, err := s.service.CreateKey(t.Context(), "me", 7)
	if err != nil {
		t.Fatal(err)
	}
	v := openTab(t, startChromium(t), s.origin)
	v.do(chromedp.Navigate(s.origin + "/"))
	if told := v.text("allowance"); told != "" {
		t.Errorf("an address is told %q", told)
	}
	const wrong = "Enter a valid key. If you have none, ask the operator for one."
	v.enter("example.org/page")
	v.wantText("key-problem", wrong)
	for _, typed := range []string{"snip_AAAAAAAAAAAAAAAAAAAAAAAAAA", "schlüssel", "two words"} {
		v.fill("key", typed)
		v.do(chromedp.SendKeys(chromedp.ID("key"), kb.Enter))
		v.wantText("key-problem", wrong)
		v.wantFocus("#key[aria-invalid=true]")
	}
	v.fill("key", " "+string(text)+" ") // as it is pasted
	v.do(chromedp.SendKeys(chromedp.ID("key"), kb.Enter))
	v.wantFocus("#short")
	v.wantLink(s.origin+"/", "https://example.org/page")
	v.wantText("allowance", "7 links a day, 6 left today. Starts afresh at 09:00 your time (00:00 UTC).")

	v.do(chromedp.Reload())
	if kept := get(v, chromedp.Value(chromedp.ID("key"))); kept != string(text) {
		t.Errorf("the browser keeps %q", kept)
	}
	v.wantText("allowance", "7 links a day, 6 left today. Starts afresh at 09:00 your time (00:00 UTC).")
	v.fill("url", "example.org/another")
	v.enter("")
	v.wantFocus("#short")
	v.wantLink(s.origin+"/", "https://example.org/another")

	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seen := range s.seen {
		if strings.Contains(seen, string(text)) {
			t.Errorf("a log could show the key: %s", seen)
		}
	}
}
