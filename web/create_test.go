package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"snip/quota"
	"snip/shortener"
)

func TestCreated(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	w := s.post(`{"url":" https://example.org/a?b=%2B&c=<d>#e ","slug":"My-Event","expires_at":"2030-01-01T03:00:00+03:00","max_visits":7,"forward_query":true}`)
	wantAnswer(t, w, http.StatusCreated, "")
	var got createdLink
	if err := json.Unmarshal(w.Body.Bytes(), &got, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	ends := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	want := ownedLink{
		Slug: "My-Event", ShortURL: "https://s.example/My-Event", URL: "https://example.org/a?b=%2B&c=<d>#e",
		CreatedAt: s.time.now(), ExpiresAt: &ends, MaxVisits: new(int64(7)), ForwardQuery: true,
	}
	if len(got.ManageToken) < 26 {
		t.Errorf("manage token %q", got.ManageToken)
	}
	if diff := cmp.Diff(want, got.ownedLink); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"Location": "https://s.example/My-Event", "Content-Type": "application/json", "Cache-Control": "no-store",
		"Vary": "Accept", "X-Content-Type-Options": "nosniff", "Content-Length": strconv.Itoa(w.Body.Len()),
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	wantAnswer(t, s.post(goodJSON), http.StatusCreated, `"expires_at":null,"max_visits":null,"forward_query":false,`)
	// The Host of the request is somebody's choice; the short URL is not made of it.
	wantAnswer(t, s.do(call{target: "http://evil.example/api/links", body: goodJSON, header: asJSON}), http.StatusCreated, `"https://s.example/`)
}

// Every way to write a body down, in every format that is answered.
func TestBodiesAndFormats(t *testing.T) {
	t.Parallel()
	multi := "--b\r\nContent-Disposition: form-data; name=\"url\"\r\n\r\nhttps://example.org/\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"slug\"\r\n\r\nabc\r\n--b--\r\n"
	bodies := []struct{ mediaType, body string }{
		{"application/json", `{"url":"https://example.org/","slug":"abc"}`},
		{"application/json; charset=UTF-8", `{"slug":"abc","expires_at":null,"url":"https://example.org/"}`},
		{"application/x-www-form-urlencoded", "url=https%3A%2F%2Fexample.org%2F&slug=abc&expires_at="},
		{"application/x-www-form-urlencoded;charset=utf-8", "slug=abc&url=https://example.org/"},
		{`multipart/form-data; boundary="b"`, multi},
	}
	formats := []struct{ accept, mediaType, contains string }{
		{"", mediaJSON, `"short_url":"https://s.example/abc"`},
		{"text/plain", mediaText, "https://s.example/abc\n"},
		{"text/html,application/xhtml+xml,*/*;q=0.8", mediaHTML, "https://s.example/abc"},
	}
	for _, b := range bodies {
		for _, f := range formats {
			s := newSite(t, siteSetup{})
			header := map[string]string{"Content-Type": b.mediaType, "Accept": f.accept}
			w := s.do(call{body: b.body, header: header})
			wantAnswer(t, w, http.StatusCreated, f.contains)
			if got := w.Header().Get("Content-Type"); got != f.mediaType {
				t.Errorf("%s: Content-Type %q, want %q", f.accept, got, f.mediaType)
			}
			taken := s.do(call{body: b.body, header: header})
			wantAnswer(t, taken, http.StatusConflict, "taken")
			if used := s.used(t); used != 1 {
				t.Errorf("a taken slug cost: %d used", used)
			}
		}
	}
}

// What is refused before the quota spends none of it.
func TestRefusedBodiesCostNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{every: time.Second, burst: 200})
	for i := range 100 {
		wantAnswer(t, s.post(fmt.Sprintf(`{"url":"not a url %d"}`, i)), http.StatusBadRequest, `"code":"invalid_url"`)
		wantAnswer(t, s.post(fmt.Sprintf(`{"url":"https://S.example/%d"}`, i)), http.StatusBadRequest, `"code":"blocked_destination"`)
	}
	if used := s.used(t); used != 0 {
		t.Errorf("%d used", used)
	}
	wantAnswer(t, s.post(goodJSON), http.StatusTooManyRequests, "") // but each cost a token
}

func TestThrottleTouchesNeitherBodyNorStore(t *testing.T) {
	t.Parallel()
	for _, accept := range []string{"", "text/plain", "text/html"} {
		s := newSite(t, siteSetup{every: time.Minute, burst: 1})
		wantAnswer(t, s.post(goodJSON), http.StatusCreated, "")
		before := s.store.calls.Load()
		body := &countedBody{Reader: strings.NewReader(goodJSON)}
		r := httptest.NewRequest(http.MethodPost, "/api/links", body)
		r.RemoteAddr = "203.0.113.9:40000"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		wantAnswer(t, w, http.StatusTooManyRequests, "about one every")
		if calls := s.store.calls.Load() - before; body.read != 0 || calls != 0 {
			t.Errorf("accept %q: read %d bytes, called the store %d times", accept, body.read, calls)
		}
	}
}

// The earlier of two faults is the one that is answered.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	foreign := map[string]string{"Sec-Fetch-Site": "cross-site", "Content-Type": "image/png", "Content-Encoding": "gzip"}
	big := strings.Repeat(" ", maxBody+1)
	for _, row := range []struct {
		name      string
		exhausted bool
		header    map[string]string
		body      string
		status    int
	}{
		{"a foreign page before the throttle", true, foreign, big, 403},
		{"the throttle before the size", true, map[string]string{"Content-Type": "image/png"}, big, 429},
		{"the size before the media type", false, map[string]string{"Content-Type": "image/png"}, big, 413},
		{"the media type before the body", false, map[string]string{"Content-Type": "image/png"}, "{", 415},
		{"the encoding before the body", false, map[string]string{"Content-Type": "application/json", "Content-Encoding": "gzip"}, goodJSON, 415},
		{"the body before the destination", false, asJSON, `{"url":"javascript:x","more":1}`, 400},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, siteSetup{every: time.Hour, burst: 1})
			if row.exhausted {
				wantAnswer(t, s.post(goodJSON), http.StatusCreated, "")
			}
			before := s.store.calls.Load()
			wantAnswer(t, s.do(call{body: row.body, header: row.header}), row.status, "")
			if calls := s.store.calls.Load() - before; calls != 0 {
				t.Errorf("%d calls to the store", calls)
			}
		})
	}
}

// What pages of other sites send is refused and spends nothing, also under a name of
// theirs that leads here. Package foreign has the table of such requests.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	const local = "http://localhost:8080"
	for _, row := range []struct {
		public, host string
		header       map[string]string
		refused      bool
	}{
		{"", "evil.example", map[string]string{}, false},
		{"", "s.example", map[string]string{"Sec-Fetch-Site": "none"}, false},
		{"", "example.com", map[string]string{"Origin": "https://s.example"}, false}, // a proxy that rewrites Host
		{"", "s.example", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": app}, false},
		{"", "s.example", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, true},
		{"", "s.example", map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "https://sub.s.example"}, true},
		{"", "s.example", map[string]string{"Origin": "https://evil.example"}, true},
		{"", "example.com", map[string]string{"Origin": "http://s.example"}, true},
		{"", "s.example", map[string]string{"Origin": "null"}, true},
		{"", "evil.example", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"}, true},
		{"", "evil.example", map[string]string{"Origin": "http://evil.example", "X-Forwarded-Host": "s.example"}, true},
		{"", "evil.example", map[string]string{"Referer": "http://evil.example/"}, true},
		{"", "127.0.0.1:8080", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8080"}, true},
		{local, "127.0.0.1:8080", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8080"}, false},
		{local, "localhost:9999", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:9999"}, false},
		{local, "evil.example:8080", map[string]string{"Origin": "http://evil.example:8080"}, true},
		{"https://münchen.example", "xn--mnchen-3ya.example", map[string]string{"Origin": "https://xn--mnchen-3ya.example"}, false},
	} {
		s := newSite(t, siteSetup{public: row.public, every: time.Hour, burst: 1, changes: true, cors: []string{app}})
		send := func(method, target, body string, header map[string]string) *httptest.ResponseRecorder {
			return s.do(call{method: method, target: "http://" + row.host + target, body: body, header: merged(header, row.header)})
		}
		w := send("POST", "/api/links", goodJSON, asJSON)
		if !row.refused {
			wantAnswer(t, w, http.StatusCreated, "")
		} else {
			wantAnswer(t, w, http.StatusForbidden, `"code":"forbidden"`)
			if !strings.Contains(w.Body.String(), "Open http") {
				t.Errorf("it does not say where to go: %s", w.Body)
			}
			w = s.post(goodJSON) // it spent nothing
			wantAnswer(t, w, http.StatusCreated, "")
		}
		// What is created can be changed from where it could be created, and nowhere else.
		var made createdLink
		if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil {
			t.Fatal(err)
		}
		header, target := merged(asJSON, map[string]string{"Authorization": "Bearer " + string(made.ManageToken)}), "/api/links/"+string(made.Slug)
		want := map[bool]int{true: http.StatusForbidden, false: http.StatusOK}[row.refused]
		wantAnswer(t, send("PATCH", target, `{"max_visits":9}`, header), want, "")
		s.time.advance(time.Hour)
		want = map[bool]int{true: http.StatusForbidden, false: http.StatusNoContent}[row.refused]
		wantAnswer(t, send("DELETE", target, "", header), want, "")
	}
}

// A refused form comes back with what was typed in it.
func TestRefusedForm(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	form := url.Values{"url": {`javascript:alert("1")`}}.Encode()
	w := s.do(call{body: form, header: map[string]string{"Content-Type": mediaForm, "Accept": "text/html"}})
	wantAnswer(t, w, http.StatusBadRequest, "javascript:alert(&#34;1&#34;)")
	if !strings.Contains(w.Body.String(), "<form") || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v, body %s", w.Header(), w.Body)
	}
	// With no-referrer a browser would send the form with Origin: null, which is
	// refused where it sends no Sec-Fetch-Site: on a site without TLS.
	const wantCSP = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	if got := w.Header().Get("Referrer-Policy"); got != "same-origin" || w.Header().Get("Content-Security-Policy") != wantCSP {
		t.Errorf("Referrer-Policy %q, headers %v", got, w.Header())
	}
	w = s.do(call{method: "GET", target: "/nothing", header: map[string]string{"Accept": "text/html"}})
	if wantAnswer(t, w, http.StatusNotFound, "<h1>"); strings.Contains(w.Body.String(), "<form") {
		t.Error("a page that was not found shows the form")
	}
}

func TestStoreFaults(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	for i, row := range []struct {
		fault  error
		status int
		code   string
	}{
		{shortener.ErrUnavailable, 503, "unavailable"},
		{fmt.Errorf("%w: bad count", quota.ErrCannotCount), 503, "unavailable"},
		{quota.ErrClock, 503, "unavailable"},
		{errors.New("disk on fire"), 503, "unavailable"},
		{io.ErrUnexpectedEOF, 503, "unavailable"},
	} {
		s.store.fail = func() error { return row.fault }
		for _, w := range []*httptest.ResponseRecorder{
			s.post(goodJSON),
			s.do(call{method: "GET", target: "/abc"}),
			s.do(call{method: "GET", target: "/api/quota"}),
		} {
			wantAnswer(t, w, row.status, `"code":"`+row.code+`"`)
			if w.Header().Get("Retry-After") != "5" || strings.Contains(w.Body.String(), "fire") {
				t.Errorf("row %d: Retry-After %q, body %q", i, w.Header().Get("Retry-After"), w.Body)
			}
		}
		wantAnswer(t, s.do(call{method: "GET", target: "/"}), http.StatusOK, "<form")
	}
	for _, kind := range []string{"store", "count", "clock"} {
		if n := strings.Count(s.log.String(), "kind="+kind); n != 1 {
			t.Errorf("%d lines of kind %s:\n%s", n, kind, s.log)
		}
	}
}
