package web_test

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// plain is what no page could take for anything else.
var plain = regexp.MustCompile(`^[A-Za-z0-9:/.-]*$`)

// TestBrowserRoundTrip is TestRoundTrip for people with Chromium.
func TestBrowserRoundTrip(t *testing.T) {
	t.Parallel()
	rows := slices.DeleteFunc(acceptedDestinations(t), func(row acceptedDestination) bool { return plain.MatchString(row.Text) })
	chromium := startChromium(t)
	t.Run("by form and pages", func(t *testing.T) {
		t.Parallel()
		goesByPages(t, chromium)
	})
	for group := range slices.Chunk(rows, (len(rows)+3)/4) {
		t.Run("saved unchanged", func(t *testing.T) {
			t.Parallel()
			savesUnchanged(t, chromium, group)
		})
	}
}

// goesByPages does first without script what the browser can do alone: how it
// encodes a form and what it shows of a page is its own.
func goesByPages(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{})
	v := openTab(t, chromium, s.origin)
	h := &linkHolder{t: t, origin: s.origin}
	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	v.arrive(s.origin+"/", http.StatusOK)
	v.insert("url", everything.Text)
	v.wantStatus(http.StatusCreated, pressButton)
	v.wantShown(".destination", everything.Text)
	manage := get(v, chromedp.AttributeValue(chromedp.CSS(".manage"), "href")).Value
	h.takeToken(manage)
	h.wantSame("by form", everything.Text, everything.Location)
	v.arrive(s.origin+"/"+h.Slug+"+", http.StatusOK)
	v.wantShown("#address", everything.Text)

	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{})
	v.arrive(s.origin+manage, http.StatusOK)
	v.do(chromedp.WaitVisible(chromedp.ID("managed")))
	for _, to := range []acceptedDestination{
		{Text: other, Location: other},
		{Text: everything.Text, Location: everything.Location},
	} {
		v.insert("url", to.Text)
		v.save()
		v.wantValue("url", to.Text)
		h.wantSame("changed on the page", to.Text, to.Location)
	}
	if n := s.changes(); n != 2 {
		t.Errorf("two changes were sent as %d", n)
	}
}

// savesUnchanged opens each link's page and presses its button.
func savesUnchanged(t *testing.T, chromium context.Context, rows []acceptedDestination) {
	s := openSite(t, siteConfig{})
	shared := openTab(t, chromium, s.origin)
	shared.arrive(s.origin+"/-/manage", http.StatusOK)
	for _, row := range rows {
		t.Run(row.Name, func(t *testing.T) {
			v, h := &tab{t: t, ctx: shared.ctx}, &linkHolder{t: t, origin: s.origin}
			h.makesAsJSON(row)
			v.paste("#" + h.Slug + "." + h.ManageToken)
			v.do(chromedp.WaitVisible(chromedp.ID("managed")))
			v.wantValue("url", row.Stored)
			v.save()
			h.wantSame("saved unchanged", row.Stored, row.Location)
		})
	}
	if n := s.changes(); n != 0 {
		t.Errorf("saved unchanged, %d changes were sent", n)
	}
}

// wantShown checks what an element shows, blanks and all.
func (v *tab) wantShown(selector, want string) {
	v.t.Helper()
	if got := get(v, chromedp.Text(chromedp.CSS(selector))); got != want {
		v.t.Errorf("shown:\n got %+q\nwant %+q", got, want)
	}
}

// save presses the manage page's button, and waits for what it says then.
func (v *tab) save() {
	v.t.Helper()
	v.do(chromedp.Click(chromedp.CSS("#change button[type=submit]")),
		chromedp.WaitReady(chromedp.CSS("#change:not([aria-busy]) #saved:not(:empty)")))
}

// changes counts the changes that were asked for.
func (s *site) changes() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.seen {
		if strings.HasPrefix(line, "PATCH ") {
			n++
		}
	}
	return n
}
