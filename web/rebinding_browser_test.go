package web_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// rebind serves the handler, and before it a page as the owner of a name would show
// it who lets the name point to the handler's address afterwards. It returns the port.
func rebind(t *testing.T, open func(port string) http.Handler) (port string) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	handler := open(port)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/trap" {
			handler.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!doctype html><title>trap</title><link rel=icon href="data:,">
<form id=form method=post action="/api/links"><input name=url value="https://example.org/form"></form>
<form id=session method=post action="/session"><input name=token value="`+adminToken+`"></form>`)
	})
	server.Start()
	t.Cleanup(server.Close)
	return port
}

// TestBrowserRebinding: a page whose name points to the service meanwhile makes no
// links with its visitors' allowance, and signs nobody in. Chromium takes its requests
// for such of one origin. At loopback's own names the same requests are the service's.
func TestBrowserRebinding(t *testing.T) {
	t.Parallel()
	browser := startChromium(t, chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1"))
	public := rebind(t, func(port string) http.Handler { return newAPI(t, "http://localhost:"+port) })
	operator := rebind(t, func(string) http.Handler {
		handler, _ := newDesk(t, time.Now)
		return handler
	})
	api := "http://127.0.0.1:" + public

	v := visit(t, browser)
	v.do(chromedp.Navigate("http://evil.example:" + public + "/trap"))
	const asJSON = `{method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{"url":"https://example.org/"}'}`
	for _, options := range []string{
		asJSON,
		`{method: 'POST', body: new URLSearchParams({url: 'https://example.org/'})}`,
		`{method: 'POST', referrerPolicy: 'no-referrer', body: new URLSearchParams({url: 'https://example.org/'})}`,
		`{method: 'POST', headers: {'X-Forwarded-Host': 'localhost', 'Forwarded': 'host=localhost'}, body: new URLSearchParams({url: 'https://example.org/'})}`,
	} {
		if got := v.fetch("/api/links", options); got.Status != http.StatusForbidden || strings.Contains(got.Body, "manage_token") {
			t.Errorf("%s: %+v", options, got)
		}
	}
	for _, method := range []string{"PATCH", "DELETE"} {
		if got := v.fetch("/api/links/abc", `{method: '`+method+`', headers: {Authorization: 'Bearer x'}}`); got.Status != http.StatusForbidden {
			t.Errorf("%s: %+v", method, got)
		}
	}
	v.wantStatus(http.StatusForbidden, chromedp.Submit(chromedp.ID("form")))
	wantUsed(t, api, 0)
	v.do(chromedp.Navigate("http://evil.example:" + operator + "/trap"))
	v.wantStatus(http.StatusForbidden, chromedp.Submit(chromedp.ID("session")))
	if got := v.fetch("/api/keys", `{method: 'POST', headers: {Authorization: 'Bearer `+adminToken+`'}, body: '{"name":"a","daily":1}'}`); got.Status != http.StatusForbidden {
		t.Errorf("a key is made: %+v", got)
	}

	for i, host := range []string{"localhost", "127.0.0.1"} {
		v := visit(t, browser)
		v.do(chromedp.Navigate("http://" + host + ":" + public + "/trap"))
		if got := v.fetch("/api/links", asJSON); got.Status != http.StatusCreated {
			t.Errorf("%s: %+v", host, got)
		}
		wantUsed(t, api, i+1)
		v.do(chromedp.Navigate("http://" + host + ":" + operator + "/trap"))
		v.wantStatus(http.StatusOK, chromedp.Submit(chromedp.ID("session")))
	}
}
