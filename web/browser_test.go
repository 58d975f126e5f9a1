package web_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestBrowser visits the pages as people do, with Chromium. Its journeys are in
// journeys_test.go.
func TestBrowser(t *testing.T) {
	t.Parallel()
	browser := startChromium(t)
	for name, journey := range map[string]func(*testing.T, context.Context){
		"makes a link":                    makesLink,
		"makes a link without script":     makesLinkWithoutScript,
		"makes a link by keyboard":        makesLinkByKeyboard,
		"makes a link under a prefix":     makesLinkUnderPrefix,
		"is told what is wrong":           isToldWhatIsWrong,
		"comes back tomorrow":             comesBackTomorrow,
		"comes back, without script":      comesBackWithoutScript,
		"comes back in seconds":           comesBackInSeconds,
		"gets no answer":                  getsNoAnswer,
		"gets an answer that is not ours": getsForeignAnswer,
		"is kept from foreign scripts":    isKeptFromForeignScripts,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journey(t, browser)
		})
	}
}

// startChromium returns a context in which tabs can be opened, of a browser with these
// options more. Without Chromium
// the test is skipped, but where CI promised it.
func startChromium(t *testing.T, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("Chromium is missing: install the package chromium")
		}
		t.Skip("no Chromium: install the package chromium to run the browser's tests")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // as root it does not start with one, and it meets nothing but our pages
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		// A mouse, which the machine may not have.
		chromedp.Flag("blink-settings", "primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"),
	)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return ctx
}

// tab is one visitor in Tokyo, nine hours ahead of UTC.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	requests   []string
	complaints []string // exceptions, and what the security policy blocked
}

// openTab opens a tab that shares nothing with others. When the test ends, it
// must have asked for nothing outside origin, and the browser must not have
// complained.
func openTab(t *testing.T, browser context.Context, origin string) *tab {
	t.Helper()
	tab := visit(t, browser)
	t.Cleanup(func() {
		tab.mu.Lock()
		defer tab.mu.Unlock()
		if len(tab.requests) == 0 {
			t.Error("no request was seen")
		}
		for _, url := range tab.requests {
			// The browser draws its own controls from data: URLs, which go nowhere; a
			// page's own would be blocked, and complained of.
			if !strings.HasPrefix(url, origin+"/") && !strings.HasPrefix(url, "data:") {
				t.Errorf("a request left the origin: %s", url)
			}
		}
		for _, complaint := range tab.complaints {
			t.Errorf("the browser complained: %s", complaint)
		}
	})
	return tab
}

func visit(t *testing.T, browser context.Context) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	tab := &tab{t: t}
	if err := chromedp.Listen(ctx, tab.record); err != nil {
		t.Fatalf("listen: %v", err)
	}
	ctx, cancel = context.WithTimeout(ctx, 30*time.Second)
	t.Cleanup(cancel)
	tab.ctx = ctx
	call(tab, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"})
	// Several tabs are open at once, and each must believe that it is in front.
	call(tab, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	return tab
}

func (v *tab) record(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		v.requests = append(v.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		v.complaints = append(v.complaints, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		// A refused request is an entry too, from the network.
		if e.Entry.Source == log.EntrySourceSecurity || strings.Contains(e.Entry.Text, "Content Security Policy") {
			v.complaints = append(v.complaints, e.Entry.Text)
		}
	}
}

// call sends a command that has no action of its own.
func call[P, R any](v *tab, command cdp.Command[P, R], params P) {
	v.t.Helper()
	if _, err := chromedp.Call(v.ctx, command, params); err != nil {
		v.t.Fatal(err)
	}
}

func (v *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	if err := chromedp.Do(v.ctx, steps...); err != nil {
		v.t.Fatal(err)
	}
}

// get runs one action in the tab.
func get[T any](v *tab, action chromedp.Action[T]) T {
	v.t.Helper()
	value, err := chromedp.Run(v.ctx, action)
	if err != nil {
		v.t.Fatal(err)
	}
	return value
}

// enter types the link and presses Enter. As kb.Enter has it, that would begin a
// line, because its event for the character comes apart from the one for the key, and
// also where the page has prevented that.
func (v *tab) enter(link string) {
	v.t.Helper()
	v.do(chromedp.SendKeys(chromedp.ID("url"), link))
	v.pressEnter(kb.ModifierNone)
}

// pressEnter presses the Enter key.
func (v *tab) pressEnter(held kb.Modifier) {
	v.t.Helper()
	for _, event := range []input.DispatchKeyEventParams{{Type: kb.KeyDown, Text: "\r"}, {Type: kb.KeyUp}} {
		event.Key, event.Code, event.WindowsVirtualKeyCode, event.Modifiers = "Enter", "Enter", 13, int64(held)
		call(v, input.DispatchKeyEvent, event)
	}
}

// pressButton sends the form: without script, Enter begins a line of its list.
var pressButton = chromedp.Click(chromedp.CSS("#new .row button"))

// submit types the link, presses the button and waits until a page has come.
func (v *tab) submit(link string) *network.Response {
	v.t.Helper()
	v.do(chromedp.SendKeys(chromedp.ID("url"), link))
	response, err := chromedp.RunResponse(v.ctx, pressButton)
	if err != nil {
		v.t.Fatal(err)
	}
	return response
}

// text returns what the element shows.
func (v *tab) text(id string) string {
	v.t.Helper()
	return strings.Join(strings.Fields(get(v, chromedp.Text(chromedp.ID(id), chromedp.NodeReady))), " ")
}

// wantText waits for a script to make the element show the text.
func (v *tab) wantText(id, want string) {
	v.t.Helper()
	_, err := chromedp.Run(v.ctx, chromedp.PollFunction[bool](
		`(id, want) => document.getElementById(id)?.innerText.replace(/\s+/g, ' ').trim() === want`,
		chromedp.WithPollingInterval(20*time.Millisecond), // frames are not drawn in every tab
		chromedp.WithPollingTimeout(10*time.Second),
		chromedp.WithPollingArgs(id, want),
	))
	if err != nil {
		v.t.Fatalf("#%s: %v\n got %q\nwant %q", id, err, v.text(id), want)
	}
}

// wantFocus waits until the keyboard's focus is on the element.
func (v *tab) wantFocus(selector string) {
	v.t.Helper()
	v.do(chromedp.WaitReady(chromedp.CSS(selector + ":focus")))
}
