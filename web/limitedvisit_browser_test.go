package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestLimitedVisitInBrowser visits links whose visits are limited, with Chromium, which holds
// each redirect after a form against the policy of the form's page.
func TestLimitedVisitInBrowser(t *testing.T) {
	t.Parallel()
	browser := startChromium(t)
	for name, journey := range map[string]func(*testing.T, context.Context){
		"by the button":                 visitsByButton,
		"by the button, without script": visitsWithoutScript,
		"once by two clicks":            visitsOnceByTwoClicks,
		"from the preview":              visitsFromPreview,
		"not from a foreign page":       visitsNotFromForeignPage,
		"not by loading the link ahead": visitsNotAhead,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journey(t, browser)
		})
	}
}

// elsewhere is another site, whose /start redirects once more, to another name of the machine.
type elsewhere struct {
	origin string
	page   string // at /page

	mu       sync.Mutex
	arrivals []string // the query and Referer of each
}

func openElsewhere(t *testing.T, page string) *elsewhere {
	t.Helper()
	e := &elsewhere{page: page}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/start":
			_, port, _ := strings.Cut(r.Host, ":")
			http.Redirect(w, r, "http://localhost:"+port+"/arrived?"+r.URL.RawQuery, http.StatusFound)
		case "/arrived":
			e.mu.Lock()
			e.arrivals = append(e.arrivals, fmt.Sprintf("%s ?%s from %q", r.Method, r.URL.RawQuery, r.Referer()))
			e.mu.Unlock()
			fmt.Fprint(w, "<!doctype html><title>Arrived</title><p id=arrived>Arrived.")
		default:
			fmt.Fprint(w, "<!doctype html><title>Elsewhere</title>"+e.page)
		}
	}))
	t.Cleanup(server.Close)
	e.origin = server.URL
	return e
}

func (e *elsewhere) wantArrivals(t *testing.T, want ...string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if fmt.Sprintf("%q", e.arrivals) != fmt.Sprintf("%q", want) {
		t.Errorf("arrivals %q, want %q", e.arrivals, want)
	}
}

// makeLimited makes a link of two visits and returns its short URL and what its visits are read by.
func (s *site) makeLimited(t *testing.T, destination, more string) (short string, visits func() float64) {
	t.Helper()
	response, err := http.Post(s.origin+"/api/links", "application/json", strings.NewReader(fmt.Sprintf(`{"url":%q,"max_visits":2%s}`, destination, more)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var link map[string]any
	if err := json.NewDecoder(response.Body).Decode(&link); err != nil || response.StatusCode != http.StatusCreated {
		t.Fatalf("%v, %v", link, err)
	}
	return link["short_url"].(string), func() float64 {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.origin+"/api/links/"+link["slug"].(string), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+link["manage_token"].(string))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var managed map[string]any
		if err := json.NewDecoder(response.Body).Decode(&managed); err != nil {
			t.Fatal(err)
		}
		return managed["visits"].(float64)
	}
}

func (v *tab) wantNoComplaints() {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, complaint := range v.complaints {
		v.t.Errorf("the browser complained: %s", complaint)
	}
}

func visitsByButton(t *testing.T, browser context.Context) {
	s, e := openSite(t, siteConfig{daily: 50, inside: true}), openElsewhere(t, "")
	short, visits := s.makeLimited(t, e.origin+"/start?a=1", `,"forward_query":true`)
	v := visit(t, browser)
	v.do(chromedp.EmulateViewport(320, 640))
	v.arrive(short+"?b=%2B&lang=ja", http.StatusOK)
	if width := get(v, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)); width > 320 {
		t.Errorf("the page is %d wide on a screen of 320", width)
	}
	v.do(chromedp.WaitReady(chromedp.CSS("html[lang=ja]"))) // without a switch, which would lose the query
	if n := visits(); n != 0 {
		t.Errorf("%v visits before the click", n)
	}
	v.do(chromedp.Click(chromedp.ID("onward")), chromedp.WaitVisible(chromedp.ID("arrived")))
	v.wantNoComplaints()
	e.wantArrivals(t, `GET ?a=1&b=%2B&lang=ja from ""`)
	if n := visits(); n != 1 {
		t.Errorf("%v visits after the click", n)
	}
	v.arrive(short, http.StatusOK)
	v.do(chromedp.Focus(chromedp.ID("onward")), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.ID("arrived")))
	v.arrive(short, http.StatusGone)
}

func visitsOnceByTwoClicks(t *testing.T, browser context.Context) {
	s, e := openSite(t, siteConfig{daily: 50, inside: true}), openElsewhere(t, "")
	short, visits := s.makeLimited(t, e.origin+"/start", "")
	v := visit(t, browser)
	v.arrive(short, http.StatusOK)
	get(v, chromedp.Evaluate[chromedp.Void](`for (let i = 0; i < 3; i++) document.getElementById('onward').click()`))
	v.do(chromedp.WaitVisible(chromedp.ID("arrived")))
	if n := visits(); n != 1 {
		t.Errorf("%v visits", n)
	}
	v.arrive(short, http.StatusOK)
	// As a browser shows the page again that it has kept: the button works once more.
	got := get(v, chromedp.Evaluate[string](`(() => {
		const {form} = document.getElementById('onward');
		const submit = () => {
			const event = new SubmitEvent('submit', {cancelable: true});
			form.dispatchEvent(event);
			return event.defaultPrevented;
		};
		const before = [submit(), submit()];
		dispatchEvent(new PageTransitionEvent('pageshow'));
		return JSON.stringify([...before, submit()]);
	})()`))
	if got != "[false,true,false]" {
		t.Errorf("prevented: %s", got)
	}
}

func visitsWithoutScript(t *testing.T, browser context.Context) {
	s, e := openSite(t, siteConfig{daily: 50, inside: true, prefix: "/to"}), openElsewhere(t, "")
	short, visits := s.makeLimited(t, e.origin+"/start", `,"show_destination":true`)
	v := visit(t, browser)
	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	v.arrive(short, http.StatusOK)
	if got := get(v, chromedp.Text(chromedp.ID("address"))); got != e.origin+"/start" {
		t.Errorf("the page shows %q", got)
	}
	v.do(chromedp.Click(chromedp.ID("onward")), chromedp.WaitVisible(chromedp.ID("arrived")))
	v.wantNoComplaints()
	if n := visits(); n != 1 {
		t.Errorf("%v visits", n)
	}
}

func visitsFromPreview(t *testing.T, browser context.Context) {
	s, e := openSite(t, siteConfig{daily: 50, inside: true}), openElsewhere(t, "")
	short, visits := s.makeLimited(t, e.origin+"/start", "")
	v := visit(t, browser)
	v.arrive(short+"+", http.StatusOK)
	v.do(chromedp.Click(chromedp.ID("onward")), chromedp.WaitVisible(chromedp.ID("arrived")))
	v.wantNoComplaints()
	e.wantArrivals(t, `GET ? from ""`)
	if n := visits(); n != 1 {
		t.Errorf("%v visits", n)
	}
}

func visitsNotFromForeignPage(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50, inside: true})
	short, visits := s.makeLimited(t, "https://example.org/", "")
	e := openElsewhere(t, `<form method="post" action="`+short+`"><button id="spend">Win</button></form>`)
	v := visit(t, browser)
	v.arrive(e.origin+"/page", http.StatusOK)
	v.wantStatus(http.StatusForbidden, chromedp.Click(chromedp.ID("spend")))
	if n := visits(); n != 0 {
		t.Errorf("%v visits", n)
	}
}

func visitsNotAhead(t *testing.T, browser context.Context) {
	s := openSite(t, siteConfig{daily: 50, inside: true})
	asks, visitsOfAsking := s.makeLimited(t, "https://example.org/", "")
	direct, visitsOfDirect := s.makeLimited(t, "https://example.org/", `,"direct_redirect":true`)
	e := openElsewhere(t, fmt.Sprintf(`<link rel="prefetch" href="%s" onload="done(this)" onerror="done(this)"><link rel="prefetch" href="%s" onload="done(this)" onerror="done(this)">
<script>let n = 0; function done() { if (++n === 2) document.body.id = 'ahead'; }</script><p>Elsewhere.`, asks, direct))
	v := visit(t, browser)
	v.arrive(e.origin+"/page", http.StatusOK)
	v.do(chromedp.WaitVisible(chromedp.ID("ahead")))
	s.mu.Lock()
	seen := len(s.seen)
	s.mu.Unlock()
	if seen != 4 { // two creations, and two that were loaded ahead
		t.Errorf("the service saw %q", s.seen)
	}
	if a, b := visitsOfAsking(), visitsOfDirect(); a != 0 || b != 0 {
		t.Errorf("%v and %v visits", a, b)
	}
}
