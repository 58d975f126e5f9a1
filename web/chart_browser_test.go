package web_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/chromedp/chromedp"

	"snip/quota"
	"snip/shortener"
)

// seesItsVisits looks at the numbers of a link that many have visited: as a
// sentence, as bars, and as tables that say the same.
func seesItsVisits(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	who := quota.ClientOf(netip.MustParseAddr("192.0.2.1"))
	made, err := s.service.Create(t.Context(), who, shortener.NewLink{URL: "https://example.org/"}, "")
	link, token := made.Link, made.Token
	if err != nil {
		t.Fatal(err)
	}
	v := openTab(t, chromium, s.origin)
	v.do(chromedp.EmulateViewport(320, 640), chromedp.Navigate(s.origin+"/-/manage#"+string(link.Slug)+"."+string(token)))
	v.wantText("people", "By people: 0 visits.")
	v.wantHidden("by-day")
	v.wantHidden("by-referrer")

	for range 3 {
		s.service.CountVisit(link.Slug, shortener.Person, "news.example")
	}
	s.service.CountVisit(link.Slug, shortener.Person, "a-host-with-a-name-that-is-longer-than-a-small-screen-is-wide.example")
	s.service.CountVisit(link.Slug, shortener.Fetcher, "")
	for range 2 {
		s.service.CountVisit(link.Slug, shortener.Crawler, "")
		s.service.CountVisit(link.Slug, shortener.Head, "")
	}
	if lost, err := s.service.StoreVisits(t.Context(), func() {}); lost != 0 || err != nil {
		t.Fatal(lost, err)
	}
	v.do(chromedp.Reload())
	v.wantText("people", "By people: 4 visits, and not among them 2 crawler visits, 1 link preview, 2 looks without a visit.")
	get(v, chromedp.Evaluate[chromedp.Void](`for (const d of document.querySelectorAll('details')) d.open = true`))
	v.wantText("days", "2026-11-29 4")
	v.wantText("referrers", "news.example 3 a-host-with-a-name-that-is-longer-than-a-small-screen-is-wide.example 1")
	if bars := get(v, chromedp.Evaluate[int](`document.querySelectorAll('#bars rect').length`)); bars != 30 {
		t.Errorf("%d bars, want one for each of 30 days", bars)
	}
	if width := get(v, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)); width > 320 {
		t.Errorf("the page is %d wide on a screen of 320", width)
	}
}
