package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/memstore"
	"snip/web"
	"snip/web/admin"
)

// TestBrowserOperates visits the operator's page with Chromium.
func TestBrowserOperates(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	for name, journey := range map[string]func(*testing.T, context.Context){
		"with script":                 operatesWithScript,
		"without script":              operatesWithoutScript,
		"hostile texts":               isShownHostileTexts,
		"clocks apart":                isToldOfClocksApart,
		"looks at it in every colour": looksAtThePage,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journey(t, chromium)
		})
	}
}

const adminToken = "correct-horse-battery"

// desk is the operator's listener on loopback.
type desk struct {
	t       *testing.T
	origin  string
	service *shortener.Service
}

// busy wants to be asked later, so that the page has more to say.
type busy struct{}

func (busy) Check(context.Context, string) (shortener.Verdict, error) {
	return shortener.Verdict{}, &shortener.CheckError{Outcome: shortener.CheckThrottled, Pause: time.Hour, Err: errors.New("later")}
}

func openDesk(t *testing.T, now func() time.Time) desk {
	t.Helper()
	handler, service := newDesk(t, now)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return desk{t, server.URL, service}
}

// newDesk is the handler of a desk.
func newDesk(t *testing.T, now func() time.Time) (http.Handler, *shortener.Service) {
	t.Helper()
	public, err := url.Parse("https://s.example")
	if err != nil {
		t.Fatal(err)
	}
	destinations, err := shortener.NewDestinations(public, false)
	if err != nil {
		t.Fatal(err)
	}
	policy := quota.Policy{Client: 50, Network: 250, Service: 1000, Newcomers: 100}
	checks := &shortener.Checks{Reputation: busy{}, AllowOnFailure: true, Timeout: time.Second, Price: 500, Budget: 1_000_000, Calls: 2000, NetworkCalls: 500, ClientCalls: 100}
	service := shortener.New(shortener.Config{Store: memstore.New(), Policy: policy, Destinations: destinations, Checks: checks, Now: now})
	handler, err := admin.New(admin.Config{
		Service: service,
		Process: admin.Process{
			Version:     "snip v1",
			Started:     now().AddDate(0, 0, -2),
			Settings:    admin.Settings{Policy: policy, Every: 10 * time.Second, Burst: 3, Checks: checks},
			Connections: func() admin.Connections { return admin.Connections{} },
			Requests:    new(web.RequestTimes).Each,
			Throttle:    (*quota.Throttle)(nil).Stats,
			Changes:     (*quota.Throttle)(nil).Stats,
			Blocklist:   func() []admin.Blocklist { return []admin.Blocklist{{Path: longAddress, Names: 7, Error: "gone"}} },
			Alerts:      func() admin.Alerts { return admin.Alerts{} },
		},
		Token: adminToken,
		Log:   slog.New(slog.NewTextHandler(t.Output(), nil)),
		Now:   now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler, service
}

func (d desk) make(slug, destination string) {
	d.t.Helper()
	client := quota.ClientOf(netip.MustParseAddr("203.0.113.77"))
	if _, err := d.service.Create(d.t.Context(), client, shortener.NewLink{URL: destination, Slug: slug}, ""); err != nil {
		d.t.Fatal(err)
	}
}

// wantDown asserts whether a link is taken down.
func (d desk) wantDown(slug shortener.Slug, down bool) {
	d.t.Helper()
	m, err := d.service.Show(d.t.Context(), slug)
	if err != nil || (m.Link.TakenDown != "") != down {
		d.t.Errorf("%s: taken down %q, %v, want %t", slug, m.Link.TakenDown, err, down)
	}
}

func (v *tab) signIn(d desk) {
	v.t.Helper()
	v.arrive(d.origin+"/", http.StatusOK)
	v.wantStatus(http.StatusOK, chromedp.SendKeys(chromedp.ID("token"), adminToken+kb.Enter))
}

// press clicks a button that leads to another page.
func (v *tab) press(selector string) {
	v.t.Helper()
	v.wantStatus(http.StatusOK, chromedp.Click(chromedp.CSS(selector)))
}

// pointAt moves the pointer over an element.
func (v *tab) pointAt(selector string) {
	v.t.Helper()
	quoted, err := json.Marshal(selector)
	if err != nil {
		v.t.Fatal(err)
	}
	at := get(v, chromedp.Evaluate[[]float64](`(() => {
		const e = document.querySelector(`+string(quoted)+`);
		e.scrollIntoView({block: 'center'});
		const {x, y, width, height} = e.getBoundingClientRect();
		return [x + width / 2, y + height / 2];
	})()`))
	call(v, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: at[0], Y: at[1]})
	v.do(chromedp.WaitReady(chromedp.CSS(selector + ":hover")))
}

func (v *tab) wantIn(selector string, want ...string) {
	v.t.Helper()
	got := strings.Join(strings.Fields(get(v, chromedp.Text(chromedp.CSS(selector), chromedp.NodeReady))), " ")
	for _, text := range want {
		if !strings.Contains(got, text) {
			v.t.Errorf("%s shows no %q:\n%s", selector, text, got)
		}
	}
}

func operatesWithoutScript(t *testing.T, chromium context.Context) {
	d := openDesk(t, time.Now)
	v := openTab(t, chromium, d.origin)
	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	v.operates(d)
}

func operatesWithScript(t *testing.T, chromium context.Context) {
	d := openDesk(t, time.Now)
	v := openTab(t, chromium, d.origin)
	v.operates(d)
	v.signIn(d)
	v.wantHidden("clocks-apart")
	v.wantText("live", "Live: on")

	// What is new comes by itself, and what is being typed stays.
	v.insert("block-host", "half-typ")
	d.make("fresh", "https://example.org/fresh")
	v.do(chromedp.Click(chromedp.ID("live")))
	v.wantText("live", "Live: off")
	v.do(chromedp.Click(chromedp.ID("live")))
	v.do(chromedp.WaitVisible(chromedp.CSS(`#newest button[value="fresh"]`)))
	v.wantIn("#today", "4 links of 1,000")
	v.wantValue("block-host", "half-typ")

	// A list under the pointer stands still, or another button would be pressed.
	toggle := func() { v.do(chromedp.Focus(chromedp.ID("live")), chromedp.KeyEvent(kb.Enter)) }
	v.pointAt(`#newest button[value="fresh"]`)
	d.make("later", "https://example.org/later")
	toggle()
	v.wantText("live", "Live: off")
	toggle()
	v.wantText("made", "5")
	if get(v, chromedp.Evaluate[bool](`!!document.querySelector('#newest button[value="later"]')`)) {
		t.Error("the list has moved under the pointer")
	}
	v.pointAt("#live")
	toggle()
	toggle()
	v.do(chromedp.WaitVisible(chromedp.CSS(`#newest button[value="later"]`)))
	toggle()

	// What came by itself can be used.
	v.press(`#newest button[value="fresh"][name="slug"]`)
	v.wantText("said", "Taken down: 1 link of fresh.")
	d.wantDown("fresh", true)

	call(v, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}})
	v.do(chromedp.Reload())
	v.wantText("live", "Live: off")

	// Another tab signs out.
	get(v, chromedp.Evaluate[chromedp.Void](`document.cookie = 'other=1'`)) // the session's cookie is none of a script's business
	if cookies := get(v, chromedp.Evaluate[string](`document.cookie`)); cookies != "other=1" {
		t.Errorf("the script reads %q", cookies)
	}
	get(v, chromedp.Evaluate[chromedp.Void](
		`fetch('/session/end', {method: 'POST', redirect: 'manual', body: new URLSearchParams({form_token: document.querySelector('[name=form_token]').value})}).then(() => {})`,
		chromedp.EvalAwaitPromise))
	v.do(chromedp.Click(chromedp.ID("live")))
	v.wantText("live-state", "The session has ended: load the page again.")
}

// operates uses every form of the page.
func (v *tab) operates(d desk) {
	v.t.Helper()
	for _, slug := range []string{"one", "two", "six"} {
		d.make(slug, "https://evil.example/"+slug)
	}
	v.arrive(d.origin+"/", http.StatusOK)
	v.wantStatus(http.StatusForbidden, chromedp.SendKeys(chromedp.ID("token"), "wrong"+kb.Enter))
	v.wantIn(".alert", "That is not the token.")
	v.signIn(d)
	v.wantIn("#today", "3 links of 1,000, the last 100 for newcomers")
	v.wantIn("#health", "Links can be made yes")

	// Enter in a field does nothing to the first link.
	v.do(chromedp.SendKeys(chromedp.ID("newest-note"), "a note"+kb.Enter))
	v.press(`#newest button[value="two"][name="slug"]`)
	v.wantText("said", "Taken down: 1 link of two.")
	d.wantDown("one", false)
	d.wantDown("two", true)
	d.wantDown("six", false)
	v.wantIn("#audit", "disable two [1 link] (abuse): a note")
	v.press(`#newest button[value="two"][formaction="/do/enable"]`)
	d.wantDown("two", false)

	v.press(`#newest button[value="one"][name="creator_of"]`)
	v.wantText("question", "Take down every link of creator of one? That is 3 links; 0 taken down already.")
	v.press("main a")
	d.wantDown("one", false)
	v.press(`#newest button[value="one"][name="creator_of"]`)
	v.press("main button")
	v.wantText("said", "Taken down: 3 links of creator of one.")
	d.wantDown("six", true)

	v.wantStatus(http.StatusOK, chromedp.SendKeys(chromedp.ID("q"), "evil.example"+kb.Enter))
	v.wantIn("#found", "one https://evil.example/one", "six https://evil.example/six")
	v.press(`button[name="host"][formaction="/do/enable"]`)
	v.wantText("question", "Let every link of host evil.example lead on that was taken down? That is 3 links.")
	v.press("main button")
	v.wantText("said", "Brought back: 3 links of host evil.example.")
	v.wantValue("q", "evil.example")
	d.wantDown("six", false)
	v.press(`#found button[value="six"][formaction="/do/delete"]`)
	v.press("main button")
	v.wantText("said", "Deleted: six.")

	v.insert("block-host", "evil")
	v.wantStatus(http.StatusBadRequest, chromedp.Click(chromedp.CSS(`form[action="/do/block"] button`)))
	v.wantFocus(".wrong")
	v.wantIn(".wrong:focus", "Not done: ", "would block every host")
	v.wantValue("block-host", "evil")
	v.insert("block-host", "evil.example")
	v.press(`form[action="/do/block"] button`)
	v.wantText("said", "Blocked: evil.example and its subdomains.")
	v.press(`form[action="/do/unblock"] button`)
	v.wantText("said", "Not blocked any more: evil.example.")

	v.insert("override-target", "198.51.100.0/24")
	v.insert("override-limit", "7")
	v.insert("override-hours", "2")
	v.press(`form[action="/do/set-override"] button`)
	v.wantText("said", "The override of 198.51.100.0/24 is set.")
	v.press(`form[action="/do/remove-override"] button`)
	v.wantText("said", "The override of 198.51.100.0/24 is removed.")

	v.insert("key-name", "news")
	v.insert("key-daily", "500")
	v.press(`form[action="/do/create-key"] button`)
	v.wantIn("#said", `The key "news" may make 500 links a day.`)
	if _, ok := d.service.FindKey(shortener.Token(get(v, chromedp.Value(chromedp.ID("key-text"))))); !ok {
		v.t.Error("what is shown is no key")
	}
	v.insert("key-daily-0", "600")
	v.press(`form[action="/do/change-key"] button`)
	v.wantText("said", `The key "news" may make 600 links a day now.`)
	v.press(`form[action="/do/revoke-key"] button`)
	v.press("main button")
	v.wantText("said", `The key "news" is revoked.`)

	v.press(`form[action="/session/end"] button`)
	v.do(chromedp.WaitVisible(chromedp.ID("token")))
	v.arrive(d.origin+"/?q=one", http.StatusOK)
	v.do(chromedp.WaitVisible(chromedp.ID("token")))
}

// isShownHostileTexts is everything that somebody else may have typed.
func isShownHostileTexts(t *testing.T, chromium context.Context) {
	d := openDesk(t, time.Now)
	const hostile = `"'><script>document.title='ran'</script><img src=x onerror="document.title='ran'">{{.FormToken}}`
	d.hostile(hostile)
	v := openTab(t, chromium, d.origin)
	v.signIn(d)
	v.wantIn("#audit", hostile)
	v.wantIn("#newest", "xn--pple-43d.example", "%E2%80%AE", "hostile-slug_1")
	v.arrive(d.origin+"/?q="+url.QueryEscape(hostile), http.StatusOK)
	v.wantValue("q", hostile)
	v.arrive(d.origin+"/?q=xn--pple-43d.example", http.StatusOK)
	v.press(`#found button[value="hostile-slug_1"][formaction="/do/delete"]`)
	v.wantIn("#question", "hostile-slug_1 leads to https://xn--pple-43d.example/")
	if title := get(v, chromedp.Title()); title != "Are you sure? – Snip" {
		t.Errorf("the title is %q", title)
	}
}

func (d desk) hostile(text string) {
	d.t.Helper()
	d.make("hostile-slug_1", "https://аpple.example/\u202egpj.exe?"+text)
	for _, err := range []error{
		func() error { _, err := d.service.AddBlock(d.t.Context(), "evil.example", text); return err }(),
		func() error {
			_, err := d.service.PutOverride(d.t.Context(), shortener.Override{Target: "198.51.100.7", Limit: 5, Note: text})
			return err
		}(),
		func() error {
			_, _, err := d.service.CreateKey(d.t.Context(), text[:min(len(text), shortener.MaxKeyName)], 5)
			return err
		}(),
		d.service.Post(d.t.Context(), shortener.Notice{ID: "2026-11-29/store/1", At: time.Now(), Kind: "store", Text: text}),
		func() error {
			_, err := d.service.TakeDown(d.t.Context(), shortener.Selection{Slug: "hostile-slug_1"}, "spam", text)
			return err
		}(),
	} {
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

func isToldOfClocksApart(t *testing.T, chromium context.Context) {
	d := openDesk(t, func() time.Time { return time.Now().Add(-time.Hour) })
	v := openTab(t, chromium, d.origin)
	v.signIn(d)
	v.do(chromedp.WaitVisible(chromedp.ID("clocks-apart")))
	v.wantIn("#clocks-apart", "The server's clock and this browser's are 36", "s apart.")
}

// looksAtThePage holds the page, full of long texts, to axe-core's checks.
func looksAtThePage(t *testing.T, chromium context.Context) {
	axe := readAxe(t)
	d := openDesk(t, time.Now)
	d.hostile(strings.Repeat("x", 300))
	for range 5 {
		d.make("", longAddress)
	}
	d.make("a-slug-that-is-as-long-as-one-may-be-and-no-longer-than-64-chars", longAddress)
	if err := d.service.KeepHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := visit(t, chromium)
	check := func(page string) {
		t.Helper()
		for _, fault := range v.faults(axe, "light", "dark") {
			t.Errorf("%s: %s", page, fault)
		}
	}
	v.arrive(d.origin+"/", http.StatusOK)
	v.wantStatus(http.StatusForbidden, chromedp.SendKeys(chromedp.ID("token"), "wrong"+kb.Enter))
	check("sign in")
	v.signIn(d)
	v.arrive(d.origin+"/?q=example.org", http.StatusOK)
	get(v, chromedp.Evaluate[chromedp.Void](`for (const d of document.querySelectorAll('details')) d.open = true`))
	check("page")
	v.insert("key-name", "news")
	v.insert("key-daily", "many")
	v.wantStatus(http.StatusBadRequest, chromedp.Click(chromedp.CSS(`form[action="/do/create-key"] button`)))
	check("page with a wrong form")
	v.insert("key-daily", "5")
	v.press(`form[action="/do/create-key"] button`)
	check("page with a key")
	v.press(`form[action="/do/revoke-key"] button`)
	check("confirmation")
}
