package web_test

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestBrowserRetries is about answers that do not come, with Chromium.
func TestBrowserRetries(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	for name, journey := range map[string]func(*testing.T, context.Context){
		"a double click":               clicksTwice,
		"the script's own retry":       losesOneAnswer,
		"a retry by hand":              losesTwoAnswers,
		"a form that is edited":        losesAnswersAndEdits,
		"a text that is put in again":  losesAnswersAndPutsInAgain,
		"a list, with an API key":      losesAnswerToList,
		"another demand after success": asksTwice,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journey(t, chromium)
		})
	}
}

// lostAnswers opens a form that loses this many answers. Chromium itself would send
// again what is lost on a connection that it has used before.
func lostAnswers(t *testing.T, chromium context.Context, c siteConfig, n int64) (*site, *tab) {
	t.Helper()
	c.daily, c.closes = 50, true
	s := openSite(t, c)
	proxy := openCutter(t, s)
	v := openTab(t, chromium, proxy.origin)
	v.do(chromedp.Navigate(proxy.origin + "/"))
	v.wantFocus("#url")
	proxy.cuts.Store(n)
	return s, v
}

func (s *site) wantTries(t *testing.T, want int) {
	t.Helper()
	if got := s.tries(); got != want {
		t.Errorf("%d tries, want %d", got, want)
	}
}

const lost = "No answer came, so it is unknown whether the link was made. Check your connection and try again: that makes no second one."

func clicksTwice(t *testing.T, chromium context.Context) {
	s, v := lostAnswers(t, chromium, siteConfig{}, 0)
	v.do(chromedp.SendKeys(chromedp.ID("url"), "https://example.org/"), chromedp.DoubleClick(chromedp.CSS("#new .row button")))
	v.wantFocus("#short")
	v.wantText("allowance", fresh49)
	s.wantTries(t, 1)
	wantUsed(t, s.origin, 1)
}

func losesOneAnswer(t *testing.T, chromium context.Context) {
	s, v := lostAnswers(t, chromium, siteConfig{}, 1)
	v.enter("https://example.org/")
	v.wantFocus("#short")
	v.wantLink(s.origin+"/", "https://example.org/")
	s.wantTries(t, 2)
	wantUsed(t, s.origin, 1)
}

func losesTwoAnswers(t *testing.T, chromium context.Context) {
	s, v := lostAnswers(t, chromium, siteConfig{}, 2)
	v.enter("https://example.org/")
	v.wantText("problem", lost)
	s.wantTries(t, 2)
	wantUsed(t, s.origin, 1)
	v.do(pressButton)
	v.wantFocus("#short")
	v.wantLink(s.origin+"/", "https://example.org/")
	s.wantTries(t, 3)
	wantUsed(t, s.origin, 1)
}

func losesAnswersAndEdits(t *testing.T, chromium context.Context) {
	s, v := lostAnswers(t, chromium, siteConfig{}, 2)
	v.enter("https://example.org/")
	v.wantText("problem", lost)
	v.enter("other")
	v.wantFocus("#short")
	v.wantLink(s.origin+"/", "https://example.org/other")
	s.wantTries(t, 3)
	wantUsed(t, s.origin, 2)
}

// losesAnswersAndPutsInAgain asks for one link: what counts is what is sent, and not
// how it came into the form.
func losesAnswersAndPutsInAgain(t *testing.T, chromium context.Context) {
	s, v := lostAnswers(t, chromium, siteConfig{}, 2)
	v.enter("https://example.org/")
	v.wantText("problem", lost)
	v.insert("url", "https://example.org/other")
	v.do(pressButton)
	v.wantFocus("#short")
	wantUsed(t, s.origin, 2)
	v.insert("url", "https://example.org/")
	v.do(pressButton, chromedp.WaitReady(chromedp.CSS("#new:not([aria-busy])")))
	v.wantLink(s.origin+"/", "https://example.org/")
	s.wantTries(t, 4)
	wantUsed(t, s.origin, 2)
}

func losesAnswerToList(t *testing.T, chromium context.Context) {
	s, v := lostAnswers(t, chromium, siteConfig{private: true}, 1)
	_, text, err := s.service.CreateKey(t.Context(), "me", 7)
	if err != nil {
		t.Fatal(err)
	}
	v.fill("key", string(text))
	v.insert("url", "https://example.org/1\nhttps://example.org/2")
	v.do(pressButton)
	v.wantFocus("#made button")
	v.wantText("daily", "7 links a day, 5 left today.")
	s.wantTries(t, 2)
}

func asksTwice(t *testing.T, chromium context.Context) {
	s, v := lostAnswers(t, chromium, siteConfig{}, 0)
	for i := range 2 {
		v.enter("https://example.org/")
		v.wantFocus("#short")
		v.do(chromedp.WaitReady(chromedp.CSS("#new:not([aria-busy])")))
		s.wantTries(t, i+1)
		wantUsed(t, s.origin, i+1)
	}
}
