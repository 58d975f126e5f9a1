package web_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/memstore"
	"snip/web"
)

// siteConfig is what the journeys' services differ in.
type siteConfig struct {
	daily   int64         // links per client and day
	every   time.Duration // 0 turns the throttle off
	changes time.Duration // the throttle's of changes, likewise
	prefix  string
	contact string
	private bool // whether links are made by holders of a key only
	closes  bool // whether a connection is for one request only
	inside  bool // whether links may lead to this machine
}

// site is a whole service on loopback at 22:00 UTC.
type site struct {
	origin   string
	service  *shortener.Service
	strange  atomic.Bool // whether something else answers in the service's place
	shutDown func()

	mu   sync.Mutex
	seen []string // what a log could show of each request
}

func openSite(t *testing.T, c siteConfig) *site {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 11, 29, 22, 0, 0, 0, time.UTC) }
	server := httptest.NewUnstartedServer(nil)
	server.Config.SetKeepAlivesEnabled(!c.closes)
	s := &site{origin: "http://" + server.Listener.Addr().String(), shutDown: server.Close}
	public, err := url.Parse(s.origin + c.prefix)
	if err != nil {
		t.Fatal(err)
	}
	destinations, err := shortener.NewDestinations(public, c.inside)
	if err != nil {
		t.Fatal(err)
	}
	var throttle *quota.Throttle
	if c.every > 0 {
		throttle, err = quota.NewThrottle(quota.ThrottleConfig{Every: c.every, Burst: 1, Clients: 1, Now: now})
		if err != nil {
			t.Fatal(err)
		}
	}
	var changes *quota.Throttle
	if c.changes > 0 {
		changes, err = quota.NewThrottle(quota.ThrottleConfig{Every: c.changes, Burst: 1, Clients: 1, Now: now})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.service = shortener.New(shortener.Config{
		Store:        memstore.New(),
		Policy:       quota.Policy{Client: c.daily},
		Destinations: destinations,
		Reserved:     web.ReservedSlugs(public),
		Now:          now,
	})
	handler, err := web.New(web.Config{
		Service:   s.service,
		Throttle:  throttle,
		Changes:   changes,
		KeysOnly:  c.private,
		Rules:     web.Rules{Daily: c.daily, Every: c.every},
		PublicURL: public,
		Contact:   c.contact,
		Log:       slog.New(slog.NewTextHandler(t.Output(), nil)),
		Now:       now,
	})
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, fmt.Sprintf("%s %s from %q", r.Method, r.RequestURI, r.Referer()))
		s.mu.Unlock()
		if s.strange.Load() {
			http.Error(w, "<h1>Bad Gateway</h1>", http.StatusBadGateway)
			return
		}
		// The pages count a wait from here, and net/http would send the real time.
		w.Header().Set("Date", now().Format(http.TimeFormat))
		handler.ServeHTTP(w, r)
	})
	server.Start()
	t.Cleanup(server.Close)
	return s
}

const (
	fresh50 = "50 links a day, 50 left today. Starts afresh at 09:00 your time (00:00 UTC)."
	fresh49 = "50 links a day, 49 left today. Starts afresh at 09:00 your time (00:00 UTC)."
	keepIt  = "Keep this manage link to change or delete the short link later."
	refused = "No more links can be made just now. You may share the limit with others, for example on the same IP address. "
)

// wantLink checks that the tab shows a short link and that it leads to want.
func (v *tab) wantLink(prefix, want string) {
	v.t.Helper()
	short := get(v, chromedp.Value(chromedp.ID("short")))
	if !strings.HasPrefix(short, prefix) {
		v.t.Fatalf("short link %q, want it to begin with %q", short, prefix)
	}
	shown := get(v, chromedp.Text(chromedp.CSS(".made .destination")))
	if shown != want {
		v.t.Errorf("destination shown: %q, want %q", shown, want)
	}
	request, err := http.NewRequestWithContext(v.ctx, http.MethodGet, short, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(request) // follows nothing
	if err != nil {
		v.t.Fatal(err)
	}
	response.Body.Close()
	if got := response.Header.Get("Location"); got != want {
		v.t.Errorf("%s leads to %q, want %q", short, got, want)
	}
}

func makesLink(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, browser, s.origin)
	v.do(chromedp.EmulateViewport(320, 640), chromedp.Navigate(s.origin+"/"))
	v.wantFocus("#url")
	v.wantText("allowance", fresh50)

	v.enter("example.org/page")
	v.wantFocus("#short")
	v.wantLink(s.origin+"/", "https://example.org/page")
	v.wantText("allowance", fresh49)
	if at := get(v, chromedp.Location()); at != s.origin+"/" {
		t.Errorf("the page has changed to %s", at)
	}
	if typed := get(v, chromedp.Value(chromedp.ID("url"))); typed != "" {
		t.Errorf("the field still holds %q", typed)
	}
	if width := get(v, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)); width > 320 {
		t.Errorf("the page is %d wide on a screen of 320", width)
	}
	v.do(chromedp.Click(chromedp.CSS(".copy")))
	v.wantText("made", "Your short link Copied Leads to https://example.org/page Open it "+keepIt)
}

func makesLinkWithoutScript(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, browser, s.origin)
	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	v.do(chromedp.Navigate(s.origin + "/"))
	if got, want := v.text("allowance"), "50 links a day, 50 left today. Starts afresh at 00:00 UTC."; got != want {
		t.Errorf("allowance: %q, want %q", got, want)
	}
	if response := v.submit("example.org/page"); response.Status != http.StatusCreated {
		t.Fatalf("status %d", response.Status)
	}
	v.wantFocus("#short")
	v.wantLink(s.origin+"/", "https://example.org/page")
	v.do(chromedp.WaitNotVisible(chromedp.CSS(".copy")))

	v.do(chromedp.Click(chromedp.CSS(".next a")), chromedp.WaitReady(chromedp.ID("allowance")))
	if got, want := v.text("allowance"), "50 links a day, 49 left today. Starts afresh at 00:00 UTC."; got != want {
		t.Errorf("allowance: %q, want %q", got, want)
	}
}

func makesLinkByKeyboard(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, browser, s.origin)
	v.do(chromedp.Navigate(s.origin + "/"))
	v.wantFocus("#url")
	v.do(chromedp.KeyEvent("https://example.org/"), chromedp.KeyEvent(kb.Tab))
	v.wantFocus("button[type=submit]")
	v.do(chromedp.KeyEvent(kb.Enter))
	v.wantFocus("#short")
	v.do(chromedp.KeyEvent(kb.Tab))
	v.wantFocus(".copy")
	v.do(chromedp.KeyEvent(kb.Enter))
	v.wantText("made", "Your short link Copied Leads to https://example.org/ Open it "+keepIt)
	v.do(chromedp.KeyEvent(kb.Tab))
	v.wantFocus(".open")
}

func makesLinkUnderPrefix(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50, prefix: "/to/go"})
	v := openTab(t, browser, s.origin+"/to/go")
	v.do(chromedp.Navigate(s.origin + "/to/go/"))
	v.enter("https://example.org/")
	v.wantFocus("#short")
	v.wantLink(s.origin+"/to/go/", "https://example.org/")
	v.wantText("allowance", fresh49)
}

func isToldWhatIsWrong(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, browser, s.origin)
	v.do(chromedp.Navigate(s.origin+"/"), chromedp.SendKeys(chromedp.ID("url"), s.origin+"/abc"), chromedp.Click(chromedp.CSS("button")))
	v.wantText("problem", "This link leads back to this service; give the address that it should lead to in the end.")
	v.wantFocus("#url[aria-invalid=true][aria-describedby~=problem]")

	get(v, chromedp.Evaluate[chromedp.Void](`document.getElementById('url').select()`))
	v.do(chromedp.KeyEvent("https://example.org/" + kb.Enter))
	v.wantFocus("#short")
	v.do(chromedp.WaitNotVisible(chromedp.ID("problem")), chromedp.WaitReady(chromedp.CSS("#url:not([aria-invalid])")))
	v.wantText("allowance", fresh49) // the mistake cost nothing
}

func comesBackTomorrow(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 1})
	v := openTab(t, browser, s.origin)
	v.do(chromedp.Navigate(s.origin + "/"))
	v.enter("https://example.org/1")
	v.wantText("allowance", "1 link a day, 0 left today. Opens again at 09:00 your time (00:00 UTC).")
	v.enter("https://example.org/2")
	v.wantText("problem", refused+"Try again at 09:00 your time (00:00 UTC).")
	if typed := get(v, chromedp.Value(chromedp.ID("url"))); typed != "https://example.org/2" {
		t.Errorf("the field holds %q", typed)
	}
}

func comesBackWithoutScript(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 1})
	v := openTab(t, browser, s.origin)
	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	for i, want := range []int64{http.StatusCreated, http.StatusTooManyRequests} {
		v.do(chromedp.Navigate(s.origin + "/"))
		if response := v.submit(fmt.Sprintf("https://example.org/%d", i)); response.Status != want {
			t.Fatalf("status %d, want %d", response.Status, want)
		}
	}
	if got, want := v.text("problem"), refused+"Try again at 00:00 UTC."; got != want {
		t.Errorf("problem: %q, want %q", got, want)
	}
	if typed := get(v, chromedp.Value(chromedp.ID("url"))); typed != "https://example.org/1" {
		t.Errorf("the field holds %q", typed)
	}
}

func comesBackInSeconds(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50, every: 10 * time.Second})
	v := openTab(t, browser, s.origin)
	v.do(chromedp.Navigate(s.origin + "/"))
	v.enter("https://example.org/1")
	v.wantText("allowance", fresh49+" At most about one every 10 seconds.")
	v.enter("https://example.org/2")
	v.wantText("problem", refused+"Try again in 10 seconds.")
}

func getsNoAnswer(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, browser, s.origin)
	v.do(chromedp.Navigate(s.origin + "/"))
	s.shutDown()
	v.enter("https://example.org/")
	v.wantText("problem", "No answer came, so it is unknown whether the link was made. Check your connection and try again: that makes no second one.")
}

func getsForeignAnswer(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, browser, s.origin)
	v.do(chromedp.Navigate(s.origin + "/"))
	s.strange.Store(true)
	v.enter("https://example.org/")
	v.wantText("problem", "The answer (502) is not one that this page understands. Try again in a few seconds.")
}

// isKeptFromForeignScripts also shows that the other journeys would have seen
// what the policy blocks.
func isKeptFromForeignScripts(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := visit(t, browser)
	v.do(chromedp.Navigate(s.origin + "/"))
	ran := get(v, chromedp.Evaluate[bool](`(() => {
		const script = document.createElement('script');
		script.textContent = 'window.ran = true';
		document.body.append(script);
		return window.ran === true;
	})()`))
	if ran {
		t.Error("a script in the page ran")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.complaints) == 0 {
		t.Error("the browser did not say that the policy blocked it")
	}
}
