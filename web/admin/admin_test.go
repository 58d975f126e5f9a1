package admin

import (
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/memstore"
)

const token = "correct-horse-battery"

func newAdmin(t *testing.T) http.Handler {
	t.Helper()
	h, _ := openAdmin(t, memstore.New(), time.Now)
	return h
}

// openAdmin has the default limits, but for a dry run of the network level, and
// began with the day before the clock's.
func openAdmin(t *testing.T, store shortener.Store, now func() time.Time) (http.Handler, *shortener.Service) {
	t.Helper()
	return openChecked(t, store, now, nil)
}

// openChecked is openAdmin with checks of destinations.
func openChecked(t *testing.T, store shortener.Store, now func() time.Time, checks *shortener.Checks) (http.Handler, *shortener.Service) {
	t.Helper()
	policy := quota.Policy{
		Client: 50, Network: 250, Service: 1000, Newcomers: 100,
		DryRun: map[quota.Level]bool{quota.LevelNetwork: true},
	}
	public, err := url.Parse("https://s.example")
	if err != nil {
		t.Fatal(err)
	}
	destinations, err := shortener.NewDestinations(public, false)
	if err != nil {
		t.Fatal(err)
	}
	service := shortener.New(shortener.Config{Store: store, Policy: policy, Destinations: destinations, Checks: checks, Now: now})
	h, err := New(Config{
		Service: service,
		Process: Process{
			Version:  "snip v1",
			Started:  dayStart(now()).AddDate(0, 0, -1),
			Settings: Settings{Policy: policy, Every: 10 * time.Second, Burst: 3, Checks: checks},
			Requests: func(each func(string, string, shortener.HistogramCounts)) {
				var h shortener.Histogram
				h.Observe(3 * time.Millisecond)
				each("/{slug}", "3xx", h.Counts())
			},
			Connections: func() Connections {
				return Connections{Limit: 960, Open: map[string]int64{"idle": 5}, Closed: map[string]int64{"service": 6}, Refused: map[string]int64{"client": 4}}
			},
			Throttle:  (*quota.Throttle)(nil).Stats,
			Changes:   (*quota.Throttle)(nil).Stats,
			Blocklist: func() []Blocklist { return []Blocklist{{Path: "hosts", Names: 7, Error: "gone"}} },
			Alerts:    func() Alerts { return Alerts{Delivered: 3, Failed: 2} },
		},
		Token:  token,
		Listen: "snip.internal:8081",
		Origin: origin,
		Log:    slog.New(slog.DiscardHandler),
		Now:    now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return h, service
}

// ask sends a request with what it shows, and headers in pairs.
func ask(h http.Handler, method, target, authorization, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func wantAnswer(t *testing.T, w *httptest.ResponseRecorder, status int, contains string) {
	t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), contains) {
		t.Errorf("answer %d %q, want %d with %q", w.Code, w.Body, status, contains)
	}
}

// Nothing is told to whoever does not show the token, not even what there is.
func TestOnlyTheTokenGetsIn(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/healthz", "/readyz", "/api/keys", "/metrics", "/debug/pprof/", "/debug/pprof/cmdline", "/unknown", "/-/", "//", "/live/", "/do/block"} {
		h := newAdmin(t) // one has not as many tries
		for _, shown := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer " + token + "x", "Bearer " + token[1:], "Bearer\t" + token, "Basic " + token, token} {
			w := ask(h, "GET", target, shown, "")
			wantAnswer(t, w, http.StatusUnauthorized, `"code":"unauthorized"`)
			if got := w.Header().Get("WWW-Authenticate"); got != "Bearer" {
				t.Errorf("GET %s: WWW-Authenticate %q", target, got)
			}
		}
	}
	h := newAdmin(t)
	for target, contains := range map[string]string{"/healthz": "ok", "/readyz": "ready", "/api/keys": `{"keys":[]}`, "/debug/pprof/": "goroutine"} {
		wantAnswer(t, ask(h, "GET", target, "Bearer "+token, ""), http.StatusOK, contains)
	}
	wantAnswer(t, ask(h, "GET", "/healthz", "bearer  "+token, ""), http.StatusOK, "ok")
}

// A page of another site cannot write, whatever an operator's browser adds, also
// under a name of its own that leads here. A program may use any name.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		host    string
		header  []string
		refused bool
	}{
		{"evil.example:8081", nil, false},
		{"localhost:8081", []string{"Origin", "http://localhost:8081", "Sec-Fetch-Site", "same-origin"}, false},
		{"127.0.0.1:9999", []string{"Origin", "http://127.0.0.1:9999", "Sec-Fetch-Site", "same-origin"}, false},
		{"[::1]:8081", []string{"Origin", "http://[::1]:8081"}, false},
		{"192.168.1.5:8081", []string{"Origin", "http://192.168.1.5:8081"}, false},
		{"snip.internal:8081", []string{"Origin", "http://snip.internal:8081"}, false},
		{"example.com", []string{"Origin", origin, "Sec-Fetch-Site", "same-origin"}, false},
		{"127.0.0.1:8081", []string{"Origin", origin}, false}, // a proxy that changes Host
		{"localhost:8081", []string{"Sec-Fetch-Site", "cross-site"}, true},
		{"localhost:8081", []string{"Sec-Fetch-Site", "same-site"}, true},
		{"localhost:8081", []string{"Origin", "https://evil.example"}, true},
		{"localhost:8081", []string{"Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site"}, true},
		{"evil.example:8081", []string{"Origin", "http://evil.example:8081"}, true},
		{"evil.example:8081", []string{"Origin", "http://evil.example:8081", "Sec-Fetch-Site", "same-origin"}, true},
		{"evil.example:8081", []string{"Sec-Fetch-Site", "same-origin"}, true},
		{"evil.example:8081", []string{"Referer", "http://evil.example:8081/", "X-Forwarded-Host", "localhost:8081"}, true},
	} {
		h := newAdmin(t)
		at := "http://" + row.host
		w := ask(h, "POST", at+"/api/keys", "Bearer "+token, `{"name":"a","daily":1}`, row.header...)
		v := &visitor{t: t, h: h}
		page := v.send("POST", at+"/session", url.Values{"token": {token}}, row.header...)
		if row.refused {
			wantAnswer(t, w, http.StatusForbidden, "set its name with --admin-url")
			wantAnswer(t, page, http.StatusForbidden, "set its name with --admin-url")
			wantAnswer(t, ask(h, "GET", "/api/keys", "Bearer "+token, ""), http.StatusOK, `{"keys":[]}`)
		} else {
			wantAnswer(t, w, http.StatusCreated, `"name":"a"`)
			wantAnswer(t, page, http.StatusSeeOther, "")
		}
		if signedIn := v.cookie != ""; signedIn == row.refused {
			t.Errorf("%+v: signed in %t", row, signedIn)
		}
		wantAnswer(t, ask(h, "GET", at+"/api/keys", "Bearer "+token, ""), http.StatusOK, `{"keys":[`)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	h := newAdmin(t)
	do := func(method, target, body string, status int, contains string) {
		t.Helper()
		wantAnswer(t, ask(h, method, target, "Bearer "+token, body), status, contains)
	}
	do("POST", "/api/keys", `{"name":"a/b?c&d ../é","daily":5}`, http.StatusCreated, `"daily":5,"used":0,"created_at":"`)
	do("GET", "/api/keys", "", http.StatusOK, `{"keys":[{"name":"a/b?c&d ../é","id":"`)
	do("PATCH", "/api/keys?name=a%2Fb%3Fc%26d+..%2F%C3%A9", `{"daily":7}`, http.StatusOK, `"daily":7`)
	do("POST", "/api/keys", `{"name":"a/b?c&d ../é","daily":5}`, http.StatusConflict, "exists already")
	do("PATCH", "/api/keys?name=unknown", `{"daily":7}`, http.StatusNotFound, "does not exist.")
	do("DELETE", "/api/keys", "", http.StatusNotFound, "does not exist.")
	for _, body := range []string{"", "{", "[]", `{"name":"x"}`, `{"name":"x","daily":"5"}`, `{"name":"x","daily":5,"extra":1}`, `{"name":"","daily":5}`, `{"name":"x","daily":5} {}`} {
		do("POST", "/api/keys", body, http.StatusBadRequest, "invalid_request")
	}
	do("POST", "/api/keys", `{"name":"`+strings.Repeat("x", maxBody)+`","daily":5}`, http.StatusBadRequest, "the body cannot be used: it has more than 65536 bytes.")
	do("DELETE", "/api/keys?name=a%2Fb%3Fc%26d+..%2F%C3%A9", "", http.StatusNoContent, "")
	do("GET", "/api/keys", "", http.StatusOK, `{"keys":[]}`)
	do("PUT", "/api/keys", "", http.StatusMethodNotAllowed, "")
	if _, err := New(Config{Token: "short"}); err == nil {
		t.Error("a token that can be guessed is taken")
	}
}

// Every request of an operator's page and commands is answered, and what is wrong
// with one is said.
func TestRoutes(t *testing.T) {
	t.Parallel()
	h := newAdmin(t)
	for _, row := range []struct {
		method, target, body string
		status               int
		contains             string
	}{
		{"GET", "/api/status", "", 200, `"ready":true`},
		{"GET", "/api/status", "", 200, `"blocklists":[{"path":"hosts","names":7,"error":"gone"}]`},
		{"GET", "/api/history", "", 200, `{"days":[]}`},
		{"GET", "/api/history?limit=401", "", 400, "limit must be a whole number from 1 to 400"},
		{"GET", "/api/links", "", 200, `{"links":[],"more":false}`},
		{"GET", "/api/links?limit=0", "", 400, "limit must be a whole number from 1 to 10000"},
		{"GET", "/api/links?slug=unknown", "", 404, "no such link"},
		{"GET", "/api/links?host=a&creator_of=b", "", 400, "one of them"},
		{"GET", "/api/link?slug=unknown", "", 404, "no such link"},
		{"POST", "/api/links/disable", `{"slug":"unknown","reason":"spam"}`, 404, "no such link"},
		{"POST", "/api/links/disable", `{"slug":"unknown","reason":"boredom"}`, 400, "reason must be one of"},
		{"POST", "/api/links/enable", `{}`, 400, "is needed"},
		{"POST", "/api/links/delete", `{"slug":"unknown"}`, 404, "no such link"},
		{"POST", "/api/links/delete-expired", `{"expired_before":"2026-01-01T00:00:00Z"}`, 200, `{"links":0,"next":""}`},
		{"POST", "/api/links/delete-expired", `{"expired_before":"2999-01-01T00:00:00Z"}`, 400, "not in the future"},
		{"POST", "/api/links/delete-expired", `{}`, 400, "not in the future"},
		{"POST", "/api/links/delete-expired", `{"expired_before":"yesterday"}`, 400, "cannot be used"},
		{"POST", "/api/links/delete-expired", `{"expired_before":"2026-01-01T00:00:00Z","mark":"?"}`, 400, `"mark must be what an answer had in next."`},
		{"POST", "/api/links/delete", `{}`, 400, "a slug is needed"},
		{"GET", "/api/link", "", 400, "a slug is needed"},
		{"POST", "/api/blocks", `{"host":"Evil.Example."}`, 201, `"host":"evil.example"`},
		{"POST", "/api/blocks", `{"host":"evil.example"}`, 409, "exists already"},
		{"GET", "/api/blocks", "", 200, `{"blocks":[{"host":"evil.example","note":""`},
		{"DELETE", "/api/blocks?host=evil.example", "", 204, ""},
		{"DELETE", "/api/blocks?host=evil.example", "", 404, "does not exist"},
		{"GET", "/api/quota?target=192.0.2.1", "", 200, `"levels":[{"level":"service","used":0,"limit":1000,`},
		{"GET", "/api/quota?target=x", "", 400, "neither an address"},
		{"PUT", "/api/overrides", `{"target":"192.0.2.1","limit":null}`, 200, `{"target":"192.0.2.1/32","limit":null,`},
		{"PUT", "/api/overrides", `{"target":"192.0.2.1","limit":-1}`, 400, "limit must be at least 0"},
		{"PUT", "/api/overrides", `{"target":"192.0.2.1","until":"yesterday"}`, 400, "cannot be used"},
		{"GET", "/api/overrides", "", 200, `{"overrides":[{"target":"192.0.2.1/32","limit":null,`},
		{"DELETE", "/api/overrides?target=192.0.2.1", "", 204, ""},
		{"GET", "/api/audit?limit=1", "", 200, `"action":"remove override","target":"192.0.2.1/32"`},
		{"GET", "/api/audit?before=x", "", 400, "before must be a whole number"},
	} {
		w := ask(h, row.method, row.target, "Bearer "+token, row.body)
		if w.Code != row.status || !strings.Contains(w.Body.String(), row.contains) {
			t.Errorf("%s %s %s: %d %s, want %d with %s", row.method, row.target, row.body, w.Code, w.Body, row.status, row.contains)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	w := ask(newAdmin(t), "GET", "/metrics", "Bearer "+token, "")
	for _, line := range []string{
		`snip_creations_total{outcome="created"} 0`, `snip_creations_refused_total{level="client"} 0`, `snip_budget_limit_links 1000`,
		`snip_throttled_total{throttle="changes"} 0`, `snip_ready 1`, `snip_connections_limit 960`,
		`snip_connections{state="idle"} 5`, `snip_connections_closed_total{reason="service"} 6`, `snip_connections_refused_total{bound="client"} 4`,
		`snip_blocklists_failing 1`, `snip_blocklist_names 7`,
		`snip_alerts_delivered_total 3`, `snip_alert_attempts_failed_total 2`, `snip_build_info{version="snip v1"} 1`, "go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(w.Body.String(), "\n"+line) {
			t.Errorf("no %q in:\n%s", line, w.Body)
		}
	}
}

// Every metric of Snip's has its place in the operator's document, and none else.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Metrics\n")
	section, _, _ = strings.Cut(section, "\n## ")
	h, _ := openChecked(t, memstore.New(), time.Now, &shortener.Checks{})
	served, documented := make(map[string]bool), make(map[string]bool)
	for _, name := range regexp.MustCompile(`(?m)^# TYPE (snip_\w+) `).FindAllStringSubmatch(ask(h, "GET", "/metrics", "Bearer "+token, "").Body.String(), -1) {
		served[name[1]] = true
	}
	for _, name := range regexp.MustCompile("`(snip_\\w+)").FindAllStringSubmatch(section, -1) {
		documented[name[1]] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(served)), slices.Sorted(maps.Keys(documented))); diff != "" || len(served) < 25 {
		t.Errorf("metrics (-served +documented):\n%s", diff)
	}
}

// The alerting rules ask for metrics that are there, with labels that are there.
func TestAlertingRules(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("../../docs/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	h, _ := openChecked(t, memstore.New(), time.Now, &shortener.Checks{})
	metrics := ask(h, "GET", "/metrics", "Bearer "+token, "").Body.String()
	names := regexp.MustCompile(`snip_[a-z_]+(\{[^}]*\})?`).FindAllString(string(rules), -1)
	if len(names) < 8 {
		t.Errorf("only %v", names)
	}
	for _, name := range names {
		if !strings.Contains(metrics, "\n"+name) {
			t.Errorf("there is no metric %s", name)
		}
	}
}
