package web_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"snip/shortener"
)

// TestBrowserLists makes links at once, with Chromium.
func TestBrowserLists(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	for name, journey := range map[string]func(*testing.T, context.Context){
		"a list by keyboard":            makesList,
		"a list without script":         makesListWithoutScript,
		"a list without a clipboard":    copiesWithoutClipboard,
		"a list with wrong lines":       isToldWhichLines,
		"a list of strange blanks":      meansTheSameByABlank,
		"a list on a phone":             makesListOnAPhone,
		"a list that is too long":       isToldThatFewerAreLeft,
		"a list with a name":            namesNoList,
		"a list that cannot be shown":   getsNoScriptForLists,
		"a list without a connection":   sendsListOffline,
		"a list that the page fails at": isToldThatThePageFailed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journey(t, chromium)
		})
	}
}

// rows are what the table of a list has made.
func (v *tab) rows() (rows [][3]string) {
	v.t.Helper()
	return get(v, chromedp.Evaluate[[][3]string](`[...document.querySelectorAll('.list tbody tr')].map((row) =>
		[row.querySelector('.destination').textContent, row.querySelector('.short').href, row.querySelector('.manage').href])`))
}

// wantRows compares the destinations in the table, and follows its links.
func (v *tab) wantRows(destinations ...string) [][3]string {
	v.t.Helper()
	rows := v.rows()
	if len(rows) != len(destinations) {
		v.t.Fatalf("the table has %q, want %q", rows, destinations)
	}
	for i, row := range rows {
		if row[0] != destinations[i] {
			v.t.Errorf("row %d leads to %q, want %q", i, row[0], destinations[i])
		}
		v.wantVisit(row[1], http.StatusFound, shortener.Location(destinations[i]))
	}
	return rows
}

func makesList(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		call(v, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted, BrowserContextID: v.browserContext(),
		})
	}
	v.do(chromedp.Navigate(s.origin + "/"))
	v.wantFocus("#url")
	height := `document.getElementById('url').clientHeight`
	low := get(v, chromedp.Evaluate[int](height))
	const quoted = `https://example.org/"2"?a,b;=1+1`
	v.do(chromedp.KeyEvent("example.org/1"))
	v.pressEnter(kb.ModifierShift)
	v.do(chromedp.KeyEvent(quoted))
	if high := get(v, chromedp.Evaluate[int](height)); high <= low {
		t.Errorf("with two lines the field is %d high, and was %d", high, low)
	}
	v.pressEnter(kb.ModifierNone)
	v.wantFocus("#made button")
	rows := v.wantRows("https://example.org/1", quoted)
	v.wantText("daily", "50 links a day, 48 left today.")
	v.wantValue("url", "")
	if high := get(v, chromedp.Evaluate[int](height)); high != low {
		t.Errorf("when it is empty again, the field is %d high, and was %d", high, low)
	}

	v.do(chromedp.KeyEvent(kb.Enter))
	v.wantText("made", "Copied Download Leads to Short link https://example.org/1 "+rows[0][1]+" Manage "+quoted+" "+rows[1][1]+" Manage "+
		"Keep the manage links to change or delete the short links later.")
	if got := get(v, chromedp.Evaluate[string](`navigator.clipboard.readText()`, chromedp.EvalAwaitPromise)); got != rows[0][1]+"\n"+rows[1][1] {
		t.Errorf("copied %q", got)
	}
	v.do(chromedp.KeyEvent(kb.Tab))
	file := v.saves("snip-links.csv", chromedp.KeyEvent(kb.Enter))
	text, marked := bytes.CutPrefix(file, []byte("\ufeff"))
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if !marked || err != nil || len(lines) != 3 || strings.Join(lines[0], " ") != "url short_url manage_url" || [3]string(lines[1]) != rows[0] || [3]string(lines[2]) != rows[1] {
		t.Errorf("downloaded %q, %v; want %q", file, err, rows)
	}
	for _, cell := range slices.Concat(lines[1:]...) {
		if !strings.HasPrefix(cell, "http") {
			t.Errorf("the cell %q could be taken for a formula", cell)
		}
	}
	if got := strings.Count(string(text), `"`) - 2*strings.Count(quoted, `"`); got != 2*9 {
		t.Errorf("%d quotes around 9 fields of %s", got, text)
	}
	if got := get(v, chromedp.Evaluate[string](`[...document.querySelectorAll('#made .manage')].map((a) => a.ariaLabel).join()`)); got != "Manage "+rows[0][1]+",Manage "+rows[1][1] {
		t.Errorf("the manage links are called %q", got)
	}

	// All are kept, the latest first, and managed from there.
	v.wantText("kept-links", rows[0][1]+" https://example.org/1 Copy QR code Manage "+rows[1][1]+" "+quoted+" Copy QR code Manage")
	v.goes(chromedp.Click(chromedp.CSS("#made tbody tr:nth-child(2) .manage")))
	v.do(chromedp.WaitVisible(chromedp.ID("endless")))
	v.wantValue("url", quoted)
}

func makesListWithoutScript(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	v.do(chromedp.Navigate(s.origin + "/"))
	v.wantFocus("#url")
	v.do(chromedp.KeyEvent("https://example.org/1"), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent("example.org/2"))
	v.wantStatus(http.StatusCreated, pressButton)
	v.wantRows("https://example.org/1", "https://example.org/2")
	v.do(chromedp.WaitNotVisible(chromedp.CSS(".list button")))
	if got := get(v, chromedp.Text(chromedp.CSS("h1"))); got != "2 links made" {
		t.Errorf("the heading is %q", got)
	}
}

// copiesWithoutClipboard is on a page without TLS that is not on this machine.
func copiesWithoutClipboard(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	call(v, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `Object.defineProperty(navigator, 'clipboard', {value: undefined}); document.execCommand = () => false`,
	})
	v.do(chromedp.Navigate(s.origin + "/"))
	v.insert("url", "https://example.org/1\nhttps://example.org/2")
	v.pressEnter(kb.ModifierNone)
	v.wantFocus("#made button")
	v.do(chromedp.KeyEvent(kb.Enter))
	v.wantFocus("#made textarea")
	rows := v.rows()
	if got := get(v, chromedp.Evaluate[string](`getSelection().toString()`)); len(rows) != 2 || got != rows[0][1]+"\n"+rows[1][1] {
		t.Errorf("selected %q of %q", got, rows)
	}
	press := chromedp.Click(chromedp.CSS("#made button"))
	v.do(press)
	v.wantFocus("#made textarea")
	if n := get(v, chromedp.Evaluate[int](`document.querySelectorAll('#made textarea').length`)); n != 1 {
		t.Errorf("the text is there %d times", n)
	}
	get(v, chromedp.Evaluate[chromedp.Void](`document.execCommand = () => true`))
	v.do(press)
	v.wantFocus("#made button")
	if got := get(v, chromedp.Evaluate[string](`document.querySelectorAll('#made textarea').length + document.activeElement.textContent`)); got != "0Copied" {
		t.Errorf("afterwards the page has %s", got)
	}
}

// meansTheSameByABlank puts in what JavaScript's trim and Go's take for different
// things: the server says what is a list, and of how many links.
func meansTheSameByABlank(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	v.do(chromedp.Navigate(s.origin + "/"))
	v.insert("url", "https://example.org/1\n\ufeff")
	v.do(pressButton)
	v.wantText("problem", "Line 2: This link must not start with the invisible character U+FEFF; remove it.")
	v.do(chromedp.WaitReady(chromedp.CSS("#new:not([aria-busy])")))
	v.insert("url", "https://example.org/1\n\u0085")
	v.do(pressButton)
	v.wantFocus("#short")
	v.wantLink(s.origin+"/", "https://example.org/1")

	blanks := get(v, chromedp.Evaluate[[]rune](`import('/-/list.js').then(({fewer}) => Array.from({length: 0x10000}, (_, c) => c).filter((c) => c !== 10 &&
		!fewer({get: () => 1}, 'a\n' + String.fromCharCode(c))))`, chromedp.EvalAwaitPromise))
	var want []rune
	for c := range rune(0x10000) {
		if unicode.IsSpace(c) && c != '\n' {
			want = append(want, c)
		}
	}
	if !slices.Equal(blanks, want) {
		t.Errorf("blanks are %U, want %U", blanks, want)
	}
}

// seen waits until the top of the element is on the screen.
func (v *tab) seen(id string) {
	v.t.Helper()
	_, err := chromedp.Run(v.ctx, chromedp.PollFunction[bool](
		`(id) => { const {top, height} = document.getElementById(id).getBoundingClientRect(); return height > 0 && top >= 0 && top < innerHeight - 20; }`,
		chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(5*time.Second), chromedp.WithPollingArgs(id),
	))
	if err != nil {
		v.t.Fatalf("#%s is not on the screen: %v", id, err)
	}
}

// makesListOnAPhone has no room for a list and what is said of it.
func makesListOnAPhone(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	for _, row := range []struct {
		screen []chromedp.EmulateViewportOption
		want   string
	}{
		{nil, "Several at once: one link a line, up to 50. Shift+Enter begins a line."},
		{[]chromedp.EmulateViewportOption{chromedp.EmulateMobile, chromedp.EmulateTouch}, "Several at once: one link a line, up to 50."},
	} {
		v.do(chromedp.EmulateViewport(360, 640, row.screen...), chromedp.Navigate(s.origin+"/"))
		v.wantText("list", row.want)
	}
	fifty := strings.TrimSuffix(strings.Repeat("https://example.org/\n", 50), "\n")
	for _, row := range []struct{ list, want string }{
		{fifty[:len(fifty)-1] + "\nftp:x", "Line 51: This link must start with http:// or https://; only a host with a dot, as in example.org/page, may stand without."},
		{strings.Repeat("ftp:x\n", 30) + "ftp:x", ""},
	} {
		v.insert("url", row.list)
		v.do(chromedp.Evaluate[chromedp.Void](`scrollTo(0, 0)`), pressButton)
		if row.want != "" {
			v.wantText("problem", row.want)
		}
		v.seen("problem")
	}
	v.insert("url", fifty)
	v.do(pressButton)
	v.wantFocus("#made button")
	v.seen("made")
	if rows := v.rows(); len(rows) != 50 {
		t.Errorf("%d links", len(rows))
	}
}

func isToldWhichLines(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	v.do(chromedp.Navigate(s.origin + "/"))
	const typed = "https://example.org/\n\nftp:x\n \nhttps://a..b/"
	v.insert("url", typed)
	v.pressEnter(kb.ModifierNone)
	v.wantText("problem", "Line 3: This link must start with http:// or https://; only a host with a dot, as in example.org/page, may stand without. "+
		"Line 5: This link must not have a host with nothing before or between its dots.")
	v.wantValue("url", typed)
	v.insert("url", "https://example.org/\nhttps://example.org/2")
	v.pressEnter(kb.ModifierNone)
	v.wantFocus("#made button")
	v.wantHidden("problem")
	v.wantText("daily", "50 links a day, 48 left today.") // the mistake cost nothing

	// One link after the list is shown as always, and so is what is wrong with it.
	v.enter("ftp:x")
	v.wantText("problem", "This link must start with http:// or https://; only a host with a dot, as in example.org/page, may stand without.")
	v.insert("url", "https://example.org/3")
	v.pressEnter(kb.ModifierNone)
	v.wantFocus("#short")
	v.wantLink(s.origin+"/", "https://example.org/3")
}

func isToldThatFewerAreLeft(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 3})
	v := openTab(t, chromium, s.origin)
	v.do(chromedp.Navigate(s.origin + "/"))
	const three = "https://example.org/1\nhttps://example.org/2\nhttps://example.org/3"
	v.insert("url", three+"\nhttps://example.org/4")
	v.pressEnter(kb.ModifierNone)
	v.wantText("problem", "The list has 4 links; this client may make 3 a day.") // tomorrow as well
	v.insert("url", "https://example.org/0")
	v.pressEnter(kb.ModifierNone)
	v.wantFocus("#short")
	v.do(chromedp.WaitReady(chromedp.CSS("#new:not([aria-busy])")))
	v.insert("url", three)
	v.pressEnter(kb.ModifierNone)
	v.wantText("problem", "Fewer links are left for you today than the list has. Try again at 09:00 your time (00:00 UTC).")
	v.insert("url", "https://example.org/1\nhttps://example.org/2")
	v.pressEnter(kb.ModifierNone)
	v.wantFocus("#made button")
	v.enter("https://example.org/3")
	v.wantText("problem", refused+"Try again at 09:00 your time (00:00 UTC).")
}

func namesNoList(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	v.do(chromedp.Navigate(s.origin+"/"), chromedp.Click(chromedp.CSS("summary")))
	v.fill("slug", "abc")
	v.fill("max_visits", "1")
	v.do(chromedp.Click(chromedp.ID("direct_redirect")))
	v.insert("url", "https://example.org/1\nhttps://example.org/2")
	v.pressEnter(kb.ModifierNone)
	v.wantText("slug-problem", "This name names one link only; leave it out where there are several.")
	v.wantFocus("#slug[aria-invalid=true]")
	v.fill("slug", "")
	v.do(pressButton)
	v.wantFocus("#made button")
	for _, row := range v.wantRows("https://example.org/1", "https://example.org/2") {
		v.wantVisit(row[1], http.StatusGone, "") // one visit was for each of them
	}
}

// sendsListOffline is told of no link that could have been made.
func sendsListOffline(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	v.do(chromedp.Navigate(s.origin + "/"))
	offline := func(off bool) {
		call(v, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: off, DownloadThroughput: -1, UploadThroughput: -1})
		call(v, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Offline: off, DownloadThroughput: -1, UploadThroughput: -1}},
		})
	}
	for _, list := range []string{"https://example.org/1\nhttps://example.org/2", "https://example.org/"} {
		offline(true)
		v.insert("url", list)
		v.do(pressButton)
		v.wantText("problem", notSent)
		s.wantTries(t, 0)
	}
	offline(false)
	v.do(pressButton)
	v.wantFocus("#short")
}

const notSent = "No answer came. Check your connection and try again."

// isToldThatThePageFailed meets a fault that nobody has thought of.
func isToldThatThePageFailed(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	v.do(chromedp.Navigate(s.origin + "/"))
	get(v, chromedp.Evaluate[chromedp.Void](`document.getElementById('table').remove()`))
	v.insert("url", "https://example.org/1\nhttps://example.org/2")
	const failed = "Something went wrong on this page. Try again: that makes no second link."
	for range 2 {
		v.do(pressButton)
		v.wantText("problem", failed)
		v.do(chromedp.WaitReady(chromedp.CSS("#new:not([aria-busy])")))
		wantUsed(t, s.origin, 2)
	}
	s.wantTries(t, 2)
}

// getsNoScriptForLists asks for nothing that it could not show.
func getsNoScriptForLists(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 50})
	v := openTab(t, chromium, s.origin)
	v.do(chromedp.Navigate(s.origin + "/"))
	s.strange.Store(true)
	v.insert("url", "https://example.org/1\nhttps://example.org/2")
	v.pressEnter(kb.ModifierNone)
	v.wantText("problem", notSent)
	s.wantTries(t, 0)
}
