package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestBrowserManages is about links after they were made, with Chromium.
func TestBrowserManages(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	for name, journey := range map[string]func(*testing.T, context.Context){
		"from making to deleting":        managesItsLink,
		"changes every field":            changesEveryField,
		"is told what is wrong":          isToldWhatIsWrongWithFields,
		"is told when to try again":      isToldWhenToTryAgain,
		"is told nothing of other links": isToldNothingOfOtherLinks,
		"without script":                 managesWithoutScript,
		"sees its visits":                seesItsVisits,
		"runs nothing that was typed":    runsNothingThatWasTyped,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journey(t, chromium)
		})
	}
}

// goes does what leads to another page, and waits for that.
func (v *tab) goes(step chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	if _, err := chromedp.RunResponse(v.ctx, step); err != nil {
		v.t.Fatal(err)
	}
}

// paste puts another end behind the page's address, and waits for what the page
// makes of it.
func (v *tab) paste(hash string) {
	v.t.Helper()
	ctx, stop := context.WithCancel(v.ctx)
	defer stop()
	loaded := make(chan struct{}, 1)
	if err := chromedp.Listen(ctx, func(event any) {
		if _, ok := event.(*page.EventLoadEventFired); ok {
			select {
			case loaded <- struct{}{}:
			default:
			}
		}
	}); err != nil {
		v.t.Fatal(err)
	}
	quoted, err := json.Marshal(hash)
	if err != nil {
		v.t.Fatal(err)
	}
	get(v, chromedp.Evaluate[chromedp.Void](`location.hash = `+string(quoted)))
	select {
	case <-loaded:
	case <-v.ctx.Done():
		v.t.Fatalf("nothing was loaded for %s", hash)
	}
}

// fill types over what a field holds.
func (v *tab) fill(id, text string) {
	v.t.Helper()
	v.do(chromedp.Focus(chromedp.ID(id)))
	get(v, chromedp.Evaluate[chromedp.Void](`document.activeElement.select()`))
	v.do(chromedp.KeyEvent(kb.Delete), chromedp.KeyEvent(text))
}

// typeTime types into a field of local time, part by part as Chromium has it.
func (v *tab) typeTime(id, parts string) {
	v.t.Helper()
	v.do(chromedp.Focus(chromedp.ID(id)), chromedp.KeyEvent(parts))
}

func (v *tab) wantValue(id, want string) {
	v.t.Helper()
	if got := get(v, chromedp.Value(chromedp.ID(id))); got != want {
		v.t.Errorf("#%s holds %q, want %q", id, got, want)
	}
}

func (v *tab) wantHidden(id string) {
	v.t.Helper()
	v.do(chromedp.WaitNotVisible(chromedp.ID(id)))
}

// wantVisit visits a short link as anybody would.
func (v *tab) wantVisit(short string, status int, location string) {
	v.t.Helper()
	method := http.MethodGet
	if status == http.StatusSeeOther { // a link whose visits are limited
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(v.ctx, method, short, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		v.t.Fatal(err)
	}
	response.Body.Close()
	if got := response.Header.Get("Location"); response.StatusCode != status || got != location {
		v.t.Errorf("%s: %d to %q, want %d to %q", short, response.StatusCode, got, status, location)
	}
}

func managesItsLink(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	short := s.origin + "/My-Event"
	v.do(chromedp.EmulateViewport(320, 640), chromedp.Navigate(s.origin+"/"))
	v.wantHidden("kept")
	v.do(chromedp.SendKeys(chromedp.ID("url"), "https://example.org/page"), chromedp.Click(chromedp.CSS("summary")))
	v.fill("slug", "My-Event")
	v.typeTime("expires_at", "013120300600PM")
	v.fill("max_visits", "3")
	v.do(chromedp.Click(chromedp.ID("forward_query")), chromedp.SendKeys(chromedp.ID("max_visits"), kb.Enter))
	v.wantFocus("#short")
	v.wantText("made", "Your short link Copy Leads to https://example.org/page "+
		"Ends on 31 January 2030 at 18:00 your time (31 January 2030 at 09:00 UTC) Ends after this many visits: 3 Open it "+keepIt)
	for _, id := range []string{"url", "slug", "expires_at", "max_visits"} {
		v.wantValue(id, "")
	}
	v.wantVisit(short+"?a=%2f", http.StatusSeeOther, "https://example.org/page?a=%2f")

	v.do(chromedp.Reload())
	v.wantText("kept-links", short+" https://example.org/page Copy QR code Manage")
	if width := get(v, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)); width > 320 {
		t.Errorf("the form is %d wide on a screen of 320", width)
	}
	v.do(chromedp.Click(chromedp.CSS("#kept-links .copy")))
	v.wantText("kept-links", short+" https://example.org/page Copied QR code Manage")
	v.goes(chromedp.Click(chromedp.CSS("#kept-links .manage")))
	v.wantText("visits", "1 of 3 used")
	if width := get(v, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)); width > 320 {
		t.Errorf("the manage page is %d wide on a screen of 320", width)
	}
	v.wantValue("short", short)
	v.wantValue("url", "https://example.org/page")
	v.wantValue("expires_at", "2030-01-31T18:00")
	v.wantText("made", "30 November 2026 at 07:00 your time (29 November 2026 at 22:00 UTC)")
	get(v, chromedp.Poll[bool](`document.querySelector('.qr').naturalWidth > 0`, chromedp.WithPollingInterval(20*time.Millisecond)))

	v.fill("url", "https://example.org/changed")
	v.do(chromedp.SendKeys(chromedp.ID("url"), kb.Enter))
	v.wantText("saved", "Saved.")
	v.wantVisit(short, http.StatusSeeOther, "https://example.org/changed")
	v.do(chromedp.Reload())
	v.wantText("visits", "2 of 3 used")

	// By keyboard, and not at the first press.
	v.do(chromedp.Focus(chromedp.ID("delete")), chromedp.KeyEvent(kb.Enter))
	v.wantFocus("#deleting button[value='']")
	v.do(chromedp.KeyEvent(kb.Escape))
	v.wantFocus("#delete")
	v.do(chromedp.KeyEvent(kb.Enter))
	v.wantFocus("#deleting button[value='']")
	v.do(chromedp.KeyEvent(kb.Enter))
	v.wantFocus("#delete")
	v.wantVisit(short, 303, "https://example.org/changed")
	v.do(chromedp.KeyEvent(kb.Enter))
	v.wantFocus("#deleting button[value='']")
	v.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(kb.ModifierShift)))
	v.wantFocus("#deleting button[value='yes']")
	v.do(chromedp.KeyEvent(kb.Enter))
	v.wantText("state", "The link is deleted.")
	v.wantFocus("#state")
	v.wantVisit(short, 410, "")
	v.do(chromedp.Reload())
	v.wantText("state", "This link has expired, used up its visits or been deleted.")

	at := get(v, chromedp.Location())
	_, token, _ := strings.Cut(at, "/-/manage#My-Event.")
	if len(token) < 26 {
		t.Fatalf("the page is at %s", at)
	}
	v.do(chromedp.Navigate(s.origin+"/"), chromedp.WaitReady(chromedp.ID("url")))
	v.wantHidden("kept")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.seen {
		if strings.Contains(line, token) {
			t.Errorf("a log could hold the token: %s", line)
		}
	}
}

// openManage makes a link and opens its page.
func (v *tab) openManage(s *site, body string) (short string) {
	v.t.Helper()
	response, err := http.Post(s.origin+"/api/links", "application/json", strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	defer response.Body.Close()
	var link map[string]any
	if err := json.NewDecoder(response.Body).Decode(&link); err != nil || response.StatusCode != http.StatusCreated {
		v.t.Fatalf("%d %v", response.StatusCode, err)
	}
	v.do(chromedp.Navigate(s.origin+"/-/manage#"+link["slug"].(string)+"."+link["manage_token"].(string)), chromedp.WaitVisible(chromedp.ID("managed")))
	return link["short_url"].(string)
}

func changesEveryField(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	short := v.openManage(s, `{"url":"https://example.org/","expires_at":"2030-01-31T18:00:07.5+09:00","max_visits":1}`)
	v.wantValue("expires_at", "2030-01-31T18:00:07")
	v.do(chromedp.Click(chromedp.CSS("#change button[type=submit]")))
	v.wantText("saved", "Nothing to save.")
	v.wantVisit(short, 303, "https://example.org/")
	v.wantVisit(short, 410, "")
	v.do(chromedp.Reload())
	const usedUp = "Its visits are used up. To open it again, set more visits than were used, or any number."
	v.wantText("ended", usedUp)
	if _, err := s.service.AddBlock(t.Context(), "example.org", ""); err != nil {
		t.Fatal(err)
	}
	v.do(chromedp.Reload())
	v.wantText("ended", "The host that it leads to is blocked here. To open it again, set another destination. "+usedUp)
	if err := s.service.RemoveBlock(t.Context(), "example.org", ""); err != nil {
		t.Fatal(err)
	}
	v.do(chromedp.Reload())
	v.wantText("ended", usedUp)

	// What is not typed over stays as it is, to the fraction of a second.
	v.fill("max_visits", "2")
	v.do(chromedp.Click(chromedp.ID("forward_query")), chromedp.Click(chromedp.CSS("#change button[type=submit]")))
	v.wantText("visits", "1 of 2 used")
	v.wantHidden("ended")
	response, err := http.Get(short + "+")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var preview map[string]any
	if err := json.NewDecoder(response.Body).Decode(&preview); err != nil || preview["expires_at"] != "2030-01-31T09:00:07.5Z" {
		t.Errorf("it ends at %v, %v", preview["expires_at"], err)
	}
	v.wantVisit(short+"?q=1", 303, "https://example.org/?q=1")

	get(v, chromedp.Evaluate[chromedp.Void](`document.getElementById('expires_at').value = ''`)) // what the field's own button does
	v.fill("max_visits", "")
	v.do(chromedp.Click(chromedp.CSS("#change button[type=submit]")))
	v.wantText("saved", "Saved.")
	v.do(chromedp.WaitVisible(chromedp.ID("endless")))
	for range 2 {
		v.wantVisit(short, 302, "https://example.org/")
	}
	v.typeTime("expires_at", "020120300600PM")
	v.do(chromedp.Click(chromedp.CSS("#change button[type=submit]")))
	v.wantText("ends", "1 February 2030 at 18:00 your time (1 February 2030 at 09:00 UTC)")
}

// A wait is told in seconds where it is short, else as the time of day.
func isToldWhenToTryAgain(t *testing.T, chromium context.Context) {
	for every, want := range map[time.Duration]string{
		time.Second:      "Try again in 1 second.",
		90 * time.Second: "Try again in 90 seconds.",
		91 * time.Second: "Try again at 07:02 your time (22:02 UTC).",
		11 * time.Hour:   "Try again at 18:00 your time (09:00 UTC).",
	} {
		s := openSite(t, siteConfig{daily: 50, changes: every})
		v := openTab(t, chromium, s.origin)
		v.openManage(s, `{"url":"https://example.org/","slug":"mine"}`)
		v.do(chromedp.Click(chromedp.ID("forward_query")), chromedp.Click(chromedp.CSS("#change button[type=submit]")))
		v.wantText("saved", "Saved.")
		v.do(chromedp.Click(chromedp.ID("forward_query")), chromedp.Click(chromedp.CSS("#change button[type=submit]")))
		v.wantText("problem", "The limit for changes is reached. "+want)
	}
}

func isToldWhatIsWrongWithFields(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	v.openManage(s, `{"url":"https://example.org/","slug":"taken"}`)
	v.fill("url", "ftp://example.org/")
	v.do(chromedp.Click(chromedp.CSS("#change button[type=submit]")))
	v.wantFocus("#url[aria-invalid=true]")
	if got := v.text("url-problem"); !strings.HasPrefix(got, "This link must ") {
		t.Errorf("the problem is %q", got)
	}
	v.fill("url", "https://example.org/")
	v.fill("max_visits", "10001")
	v.do(chromedp.Click(chromedp.CSS("#change button[type=submit]")))
	v.wantText("max_visits-problem", "The number of visits must be a whole number from 1 to 10000.")
	v.wantHidden("url-problem")
	v.fill("max_visits", "0") // not the same as none
	v.do(chromedp.Click(chromedp.CSS("#change button[type=submit]")))
	v.wantText("max_visits-problem", "The number of visits must be a whole number from 1 to 10000.")
	v.fill("max_visits", "many")
	v.do(chromedp.Click(chromedp.CSS("#change button[type=submit]")))
	v.wantText("max_visits-problem", "The number of visits must be a whole number from 1 to 10000.")
	v.typeTime("expires_at", "010120200600PM")
	v.fill("max_visits", "")
	v.do(chromedp.Click(chromedp.CSS("#change button[type=submit]")))
	v.wantText("expires_at-problem", "The end must lie in the future.")
	s.strange.Store(true)
	v.do(chromedp.Click(chromedp.CSS("#change button[type=submit]")))
	v.wantText("problem", "The answer (502) is not one that this page understands. Try again in a few seconds.")
	s.strange.Store(false)

	v.do(chromedp.Navigate(s.origin+"/"), chromedp.SendKeys(chromedp.ID("url"), "https://example.org/"), chromedp.Click(chromedp.CSS("summary")))
	v.fill("slug", "taken")
	v.fill("max_visits", "many")
	v.typeTime("expires_at", "0131")
	v.do(chromedp.Click(chromedp.CSS("summary")), chromedp.Click(chromedp.CSS("button")))
	v.wantFocus("#expires_at:invalid") // unfolded again; the browser says why
	v.do(chromedp.KeyEvent(kb.Backspace), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.Backspace))
	v.do(chromedp.Click(chromedp.CSS("summary")), chromedp.Click(chromedp.CSS("button")))
	v.wantText("max_visits-problem", "The number of visits must be a whole number from 1 to 10000.")
	v.wantFocus("#max_visits[aria-invalid=true]")
	v.fill("max_visits", "2")
	v.do(chromedp.Click(chromedp.CSS("summary")), chromedp.Click(chromedp.CSS("button")))
	v.wantText("slug-problem", "This name is taken; choose another, or leave it out to be given a random one.")
	v.wantFocus("#slug[aria-invalid=true]")
	v.wantHidden("problem")
	v.wantValue("url", "https://example.org/")
	v.wantValue("max_visits", "2")
	v.fill("slug", "free")
	v.do(chromedp.SendKeys(chromedp.ID("slug"), kb.Enter))
	v.wantFocus("#short")
	v.wantHidden("slug-problem")
	v.wantVisit(s.origin+"/free", 303, "https://example.org/")
}

func isToldNothingOfOtherLinks(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	v.openManage(s, `{"url":"https://example.org/","slug":"known"}`)
	for hash, want := range map[string]string{
		"#known.WRONG":   "There is no link of that name that this token or key manages.",
		"#unknown.WRONG": "There is no link of that name that this token or key manages.",
		"#known":         "The address of this page is incomplete. It must end in what was shown when the link was made: # and more.",
		"":               "The address of this page is incomplete. It must end in what was shown when the link was made: # and more.",
		"#../quota.x":    "The address of this page is incomplete. It must end in what was shown when the link was made: # and more.",
	} {
		v.paste(hash)
		v.wantText("state", want)
		v.wantHidden("managed")
	}
}

func managesWithoutScript(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	v.do(chromedp.Navigate(s.origin+"/"), chromedp.Click(chromedp.CSS("summary")))
	v.wantHidden("end")
	v.fill("slug", "mine")
	v.fill("max_visits", "1")
	v.do(chromedp.Click(chromedp.ID("direct_redirect")))
	if response := v.submit("example.org/page"); response.Status != http.StatusCreated {
		t.Fatalf("status %d", response.Status)
	}
	v.wantLink(s.origin+"/mine", "https://example.org/page")
	v.wantVisit(s.origin+"/mine", 410, "")
	href := get(v, chromedp.AttributeValue(chromedp.CSS(".manage"), "href")).Value
	if !strings.HasPrefix(href, "/-/manage#mine.") {
		t.Errorf("the manage link leads to %q", href)
	}

	v.do(chromedp.Navigate(s.origin+"/"), chromedp.Click(chromedp.CSS("summary")))
	v.fill("slug", "mine")
	v.do(chromedp.Click(chromedp.ID("forward_query")))
	if response := v.submit("https://example.org/again"); response.Status != http.StatusConflict {
		t.Fatalf("status %d", response.Status)
	}
	v.wantFocus("#slug")
	v.wantText("slug-problem", "This name is taken; choose another, or leave it out to be given a random one.")
	v.wantValue("url", "https://example.org/again")
	v.wantValue("slug", "mine")
	v.do(chromedp.WaitReady(chromedp.CSS("#forward_query:checked")))

	v.do(chromedp.Navigate(s.origin+"/"), chromedp.Click(chromedp.CSS("summary")))
	v.fill("max_visits", "many")
	v.do(chromedp.Click(chromedp.CSS("summary"))) // folded away, a field must not hold the form back
	if response := v.submit("https://example.org/"); response.Status != http.StatusBadRequest {
		t.Fatalf("status %d", response.Status)
	}
	v.wantFocus("#max_visits")
	v.wantText("max_visits-problem", "The number of visits must be a whole number from 1 to 10000.")

	v.do(chromedp.Navigate(s.origin + href))
	if got := v.text("state"); got != "" {
		t.Errorf("the page says %q", got)
	}
	v.wantHidden("managed")
	if got := get(v, chromedp.Text(chromedp.CSS("noscript"))); !strings.HasPrefix(got, "This page needs JavaScript") || !strings.Contains(got, s.origin+"/api/links/SLUG") {
		t.Errorf("the page says %q", got)
	}
}

// runsNothingThatWasTyped also relies on openTab: the browser would complain of
// what the security policy blocks.
func runsNothingThatWasTyped(t *testing.T, chromium context.Context) {
	const attack = `"'><script>document.title='ran'</script><img src=x onerror="document.title='ran'"><a href="javascript:document.title='ran'">x</a>`
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	inert := func(where, title string) {
		t.Helper()
		if got := get(v, chromedp.Title()); got != title {
			t.Errorf("%s: title %q", where, got)
		}
		if n := get(v, chromedp.Evaluate[int](`document.querySelectorAll('main img[src="x"], main script:not([src]), a[href^="javascript:"]').length`)); n > 0 {
			t.Errorf("%s: %d elements came from what was typed", where, n)
		}
	}
	const destination = "https://example.org/" + attack
	v.do(chromedp.Navigate(s.origin+"/"), chromedp.SendKeys(chromedp.ID("url"), destination), chromedp.Click(chromedp.CSS("summary")))
	v.fill("slug", attack)
	v.do(chromedp.SendKeys(chromedp.ID("slug"), kb.Enter))
	v.wantFocus("#slug[aria-invalid=true]")
	inert("a refused slug", "Snip: short links")
	v.fill("slug", "")
	v.do(chromedp.SendKeys(chromedp.ID("slug"), kb.Enter))
	v.wantFocus("#short")
	if got := get(v, chromedp.Evaluate[string](`[...document.querySelectorAll('.made .destination, #kept-links .destination')].map((e) => e.textContent).join('\n')`)); got != destination+"\n"+destination {
		t.Errorf("the page shows %q", got)
	}
	inert("a link made", "Snip: short links")
	v.goes(chromedp.Click(chromedp.CSS("#kept-links .manage")))
	v.do(chromedp.WaitVisible(chromedp.ID("endless")))
	v.wantValue("url", destination)
	if got := get(v, chromedp.Title()); !strings.HasPrefix(got, "Manage ") {
		t.Errorf("title %q", got)
	}
	v.paste(`#x"><script>document.title="ran"</script>.T`)
	v.wantHidden("managed")
	inert("a hostile address", "Manage a link – Snip")

	// Another program of the same origin may have written there.
	get(v, chromedp.Evaluate[chromedp.Void](`localStorage.setItem('snip.links /', JSON.stringify([null, 1, {slug: 1},
		{slug: 'javascript:document.title="ran"//', short_url: 'javascript:document.title="ran"', url: '<img src=x>', token: '"><script>'}]))`))
	v.do(chromedp.Navigate(s.origin + "/"))
	v.wantText("kept-links", `javascript:document.title="ran" <img src=x> Copy QR code Manage`)
	inert("a hostile list", "Snip: short links")
	if got := get(v, chromedp.Evaluate[bool](`[...document.querySelectorAll('#kept a')].every((a) => a.origin === location.origin)`)); !got {
		t.Error("a link of the list leads elsewhere")
	}
}
