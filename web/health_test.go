package web

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"snip/quota"
	"snip/shortener"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	wantAnswer(t, s.do(call{method: "GET", target: "/healthz"}), http.StatusOK, `{"status":"ok"}`)
	wantAnswer(t, s.do(call{method: "GET", target: "/readyz"}), http.StatusOK, `{"status":"ready"}`)
	reasons := map[string]error{"store": errors.New("/data/snip.db: no space left"), "clock": quota.ErrClock, "blocklist": shortener.ErrBlocklist}
	page := apiPage(t)
	if n := strings.Count(page, "`Reason: "); n != len(reasons) {
		t.Errorf("docs/api.md tells of %d reasons", n)
	}
	for reason, fault := range reasons {
		if !strings.Contains(page, "`Reason: "+reason+".`") {
			t.Errorf("docs/api.md does not tell of the reason %s", reason)
		}
		s.store.fail = func() error { return fault }
		w := s.do(call{method: "GET", target: "/readyz"})
		wantAnswer(t, w, http.StatusServiceUnavailable, "Reason: "+reason+".")
		if strings.Contains(w.Body.String(), "/data") || w.Header().Get("Retry-After") == "" {
			t.Errorf("headers %v, body %q", w.Header(), w.Body)
		}
		if !strings.Contains(s.log.String(), fault.Error()) {
			t.Errorf("%v is not in the log:\n%s", fault, s.log)
		}
		if strings.Contains(s.log.String(), "internal") {
			t.Errorf("the fault is logged a second time, as one that nobody knows:\n%s", s.log)
		}
		wantAnswer(t, s.do(call{method: "GET", target: "/healthz"}), http.StatusOK, "ok")
	}
}

func TestAllowance(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{policy: &quota.Policy{Client: 2, Network: 2, Service: 2}, every: 1e9, burst: 2})
	get := func() string { return strings.TrimSpace(s.do(call{method: "GET", target: "/api/quota"}).Body.String()) }
	const resets = `"resets_at":"2026-11-30T00:00:00Z"`
	for i, want := range []string{
		`{"limit":2,"used":0,"remaining":2,` + resets + `,"open":true}`,
		`{"limit":2,"used":1,"remaining":1,` + resets + `,"open":true}`,
		`{"limit":2,"used":2,"remaining":0,` + resets + `,"open":false}`,
	} {
		if got := get(); got != want {
			t.Errorf("after %d links: %s, want %s", i, got, want)
		}
		if i < 2 {
			wantAnswer(t, s.post(goodJSON), http.StatusCreated, "")
		}
	}
	other := s.do(call{method: "GET", target: "/api/quota", from: "198.51.100.1:1"})
	wantAnswer(t, other, http.StatusOK, `{"limit":2,"used":0,"remaining":2,`+resets+`,"open":false}`)

	off := newSite(t, siteSetup{policy: &quota.Policy{}})
	wantAnswer(t, off.do(call{method: "GET", target: "/api/quota"}), http.StatusOK,
		`{"limit":null,"used":null,"remaining":null,`+resets+`,"open":true}`)
}

func TestAssets(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	w := s.do(call{method: "GET", target: "/-/snip.css?v=1"})
	wantAnswer(t, w, http.StatusOK, "{")
	if got := w.Header().Get("Cache-Control"); got != "no-cache" {
		t.Errorf("Cache-Control %q", got)
	}
	etag := w.Header().Get("ETag")
	w = s.do(call{method: "GET", target: "/-/snip.css", header: map[string]string{"If-None-Match": etag}})
	if w.Code != http.StatusNotModified || w.Body.Len() != 0 || w.Header().Get("ETag") != etag {
		t.Errorf("%d, ETag %q", w.Code, w.Header().Get("ETag"))
	}
	w = s.do(call{method: "GET", target: "/-/snip.css", header: map[string]string{"If-None-Match": `"other"`}})
	wantAnswer(t, w, http.StatusOK, "{")
}
