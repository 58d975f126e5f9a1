package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/memstore"
	"snip/web"
)

// openApp serves a page of another site on a port of its own. It has a form for
// the service, whose origin it is told in its query.
func openApp(t *testing.T) (origin string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><title>app</title><link rel=icon href="data:,">
<form id=form method=post action="%s/api/links"><input name=url value="https://example.org/form"></form>`, r.URL.Query().Get("api"))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// openAPI serves two links a day to pages of the listed origins.
func openAPI(t *testing.T, listed ...string) (origin string) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	origin = "http://" + server.Listener.Addr().String()
	server.Config.Handler = newAPI(t, origin, listed...)
	server.Start()
	t.Cleanup(server.Close)
	return origin
}

// newAPI is the handler of openAPI, for a public URL.
func newAPI(t *testing.T, address string, listed ...string) http.Handler {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 11, 29, 22, 0, 0, 0, time.UTC) }
	public, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	destinations, err := shortener.NewDestinations(public, false)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := web.New(web.Config{
		Service: shortener.New(shortener.Config{
			Store: memstore.New(), Policy: quota.Policy{Client: 2}, Destinations: destinations,
			Reserved: web.ReservedSlugs(public), Now: now,
		}),
		Rules:       web.Rules{Daily: 2},
		PublicURL:   public,
		CORSOrigins: listed,
		Log:         slog.New(slog.NewTextHandler(t.Output(), nil)),
		Now:         now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// answer is what a page could read of an answer.
type answer struct {
	Blocked    bool // the browser kept it all from the page
	Status     int
	Location   string
	RetryAfter string
	Vary       string // is not exposed
	Body       string
}

// fetch sends a request from the page in the tab.
func (v *tab) fetch(address, options string) answer {
	v.t.Helper()
	return get(v, chromedp.Evaluate[answer](fmt.Sprintf(`fetch(%q, %s).then(async r => ({
		Status: r.status, Location: r.headers.get('Location') || '', RetryAfter: r.headers.get('Retry-After') || '',
		Vary: r.headers.get('Vary') || '', Body: await r.text(),
	}), () => ({Blocked: true}))`, address, options), chromedp.EvalAwaitPromise))
}

// wantUsed asks past the browser how much its address has used.
func wantUsed(t *testing.T, api string, want int) {
	t.Helper()
	response, err := http.Get(api + "/api/quota")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(body), fmt.Sprintf(`"used":%d,`, want)) {
		t.Errorf("quota %s, %v; want %d used", body, err, want)
	}
}

// Each is a demand of its own.
const sendJSON = `{method: 'POST', headers: {'Content-Type': 'application/json', 'Idempotency-Key': crypto.randomUUID()}, body: '{"url":"https://example.org/fetched"}'}`

// A page of another port is a page of another origin, and Chromium does the asking.
func TestBrowserCORS(t *testing.T) {
	t.Parallel()
	browser := startChromium(t)
	app, other := openApp(t), openApp(t)

	t.Run("listed", func(t *testing.T) {
		t.Parallel()
		api := openAPI(t, app)
		v := visit(t, browser)
		v.do(chromedp.Navigate(app + "/?api=" + api))

		made := v.fetch(api+"/api/links", sendJSON)
		var link struct {
			Slug        string `json:"slug"`
			URL         string `json:"url"`
			ManageToken string `json:"manage_token"`
		}
		if err := json.Unmarshal([]byte(made.Body), &link); err != nil {
			t.Fatalf("%+v: %v", made, err)
		}
		if made.Status != http.StatusCreated || link.URL != "https://example.org/fetched" || made.Location != api+"/"+link.Slug || made.Vary != "" {
			t.Fatalf("%+v", made)
		}
		authorized := fmt.Sprintf(`headers: {'Content-Type': 'application/json', Authorization: 'Bearer %s'}`, link.ManageToken)
		for _, row := range []struct {
			path, options string
			status        int
			part          string
		}{
			{"/api/quota", `{}`, 200, `"used":1,`},
			{"/api/links/" + link.Slug, `{` + authorized + `}`, 200, link.Slug},
			{"/api/links/" + link.Slug, `{method: 'PATCH', body: '{"max_visits":9}', ` + authorized + `}`, 200, `"max_visits":9`},
			{"/api/links/" + link.Slug, `{method: 'DELETE', ` + authorized + `}`, 204, ""},
			{"/api/links", `{method: 'POST', body: new URLSearchParams({url: 'nonsense'})}`, 400, "invalid_url"},
			{"/api/links", `{}`, 405, "method_not_allowed"},
			{"/api/nothing", `{}`, 404, "not_found"},
		} {
			if got := v.fetch(api+row.path, row.options); got.Status != row.status || !strings.Contains(got.Body, row.part) {
				t.Errorf("%s %s: %+v, want %d with %q", row.path, row.options, got, row.status, row.part)
			}
		}
		// Cookies are neither needed nor allowed, and what is no API stays unreadable.
		for _, row := range [][2]string{{"/api/quota", `{credentials: 'include'}`}, {"/healthz", `{}`}, {"/", `{}`}} {
			if got := v.fetch(api+row[0], row[1]); !got.Blocked {
				t.Errorf("%s: %+v", row, got)
			}
		}

		_, err := chromedp.RunResponse(v.ctx, chromedp.Submit(chromedp.ID("form")))
		if err != nil {
			t.Fatal(err)
		}
		v.wantFocus("#short")
		v.wantLink(api+"/", "https://example.org/form")
		v.do(chromedp.Navigate(app + "/?api=" + api))
		if got := v.fetch(api+"/api/links", sendJSON); got.Status != http.StatusTooManyRequests || got.RetryAfter != "7200" {
			t.Errorf("beyond the quota: %+v", got)
		}
	})

	for name, listed := range map[string][]string{"not listed": {other}, "none listed": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := openAPI(t, listed...)
			v := visit(t, browser)
			v.do(chromedp.Navigate(app + "/?api=" + api))
			for _, row := range [][2]string{
				{"/api/links", sendJSON},
				{"/api/links", `{method: 'POST', body: new URLSearchParams({url: 'https://example.org/'})}`}, // without preflight
				{"/api/links", `{method: 'POST', body: '{"url":"https://example.org/"}'}`},
				{"/api/links/abc", `{headers: {Authorization: 'Bearer x'}}`},
				{"/api/quota", `{}`},
				{"/api/nothing", `{}`},
			} {
				if diff := cmp.Diff(answer{Blocked: true}, v.fetch(api+row[0], row[1])); diff != "" {
					t.Errorf("%s (-want +got):\n%s", row, diff)
				}
			}
			response, err := chromedp.RunResponse(v.ctx, chromedp.Submit(chromedp.ID("form")))
			if err != nil {
				t.Fatal(err)
			}
			if response.Status != http.StatusForbidden {
				t.Errorf("form: %d", response.Status)
			}
			wantUsed(t, api, 0)
		})
	}
}
