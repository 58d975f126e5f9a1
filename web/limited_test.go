package web

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"snip/quota"
)

func TestFiftyThenNoMore(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	for range 50 {
		wantAnswer(t, s.post(goodJSON), http.StatusCreated, "")
	}
	w := s.post(goodJSON)
	wantAnswer(t, w, http.StatusTooManyRequests, `"code":"rate_limited"`)
	if got := w.Header().Get("Retry-After"); got != "50400" { // from 10:00 to midnight
		t.Errorf("Retry-After %q", got)
	}
	if used := s.used(t); used != 50 {
		t.Errorf("%d used", used)
	}
	s.time.advance(50400 * time.Second)
	wantAnswer(t, s.post(goodJSON), http.StatusCreated, "")
}

// A refusal looks the same whoever refused it, so that it cannot be probed how
// far the wider levels are.
func TestLimitedAnswersAreTheSameBytes(t *testing.T) {
	t.Parallel()
	policies := map[string]quota.Policy{
		"client":  {Client: 1, Network: 9, Service: 99},
		"network": {Client: 1, Network: 1, Service: 99},
		"service": {Client: 1, Network: 1, Service: 1},
	}
	const contact = "ops@example.org"
	bodies := make(map[string]bool)
	for _, tongue := range testCatalogue(t).tongues {
		for _, accept := range []string{"", "text/plain"} {
			header := map[string]string{"Content-Type": "application/json", "Accept": accept, "Accept-Language": tongue.Tag}
			limited := make(map[string]*httptest.ResponseRecorder)
			for level, policy := range policies {
				s := newSite(t, siteSetup{policy: &policy, every: 10 * time.Second, burst: 9, contact: contact})
				first := map[string]string{"client": "203.0.113.9:1", "network": "203.0.113.8:1", "service": "198.51.100.1:1"}[level]
				wantAnswer(t, s.do(call{from: first, body: goodJSON, header: header}), http.StatusCreated, "")
				limited[level] = s.do(call{body: goodJSON, header: header})
			}
			throttled := newSite(t, siteSetup{policy: &quota.Policy{Client: 1}, every: 10 * time.Second, burst: 1, contact: contact})
			throttled.do(call{body: goodJSON, header: header})
			limited["throttle"] = throttled.do(call{body: goodJSON, header: header})
			bodies[limited["throttle"].Body.String()] = true
			for layer, w := range limited {
				want := limited["throttle"]
				if w.Code != http.StatusTooManyRequests || !bytes.Equal(w.Body.Bytes(), want.Body.Bytes()) {
					t.Errorf("%s: %d %q, want %q", layer, w.Code, w.Body, want.Body)
				}
				got, other := w.Header().Clone(), want.Header().Clone()
				got.Del("Retry-After")
				other.Del("Retry-After")
				if diff := cmp.Diff(other, got); diff != "" {
					t.Errorf("%s: headers (-throttle +%s):\n%s", layer, layer, diff)
				}
			}
		}
	}
	if len(bodies) != 6 {
		t.Errorf("%d bodies in three languages and two formats: %v", len(bodies), bodies)
	}
}

func TestWhatTheLimitedAreTold(t *testing.T) {
	t.Parallel()
	const rest = " Networks and the whole service may have limits too, and several people may share one IP address. Wait as long as the Retry-After header says, then try again."
	for _, row := range []struct {
		rules   Rules
		contact string
		want    string
	}{
		{Rules{Daily: 50, Every: 10 * time.Second}, "", "This client may make 50 links per UTC day and about one every 10 seconds." + rest},
		{Rules{Daily: 1}, "", "This client may make 1 link per UTC day." + rest},
		{Rules{Every: time.Minute}, "", "This client may make about one every minute." + rest},
		{Rules{}, "ops@example.org", "No more links can be made just now." + rest + " Contact: ops@example.org."},
	} {
		if got := testCatalogue(t).english().render(limits(row.rules, row.contact, false)); got != row.want {
			t.Errorf("%+v: %q, want %q", row.rules, got, row.want)
		}
	}
}

// Whoever waits as long as Retry-After says is let in, and a second earlier not.
func TestRetryAfterIsTrue(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		policy quota.Policy
		start  time.Duration // after 10:00
		every  time.Duration
		want   int
	}{
		{"throttle", quota.Policy{Client: 50}, 0, 10 * time.Second, 10},
		{"throttle of odd length", quota.Policy{Client: 50}, 0, 2500 * time.Millisecond, 3},
		{"quota", quota.Policy{Client: 1}, 0, time.Nanosecond, 50400},
		{"quota rounded up", quota.Policy{Client: 1}, 14*time.Hour - 1500*time.Millisecond, time.Nanosecond, 2},
		{"quota shorter than the throttle", quota.Policy{Client: 1}, 14*time.Hour - time.Second, time.Minute, 60},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			burst := 1
			if row.name == "quota shorter than the throttle" {
				burst = 2 // the second try must get as far as the quota
			}
			s := newSite(t, siteSetup{policy: &row.policy, every: row.every, burst: burst})
			s.time.advance(row.start)
			wantAnswer(t, s.post(goodJSON), http.StatusCreated, "")
			s.time.advance(time.Nanosecond)
			w := s.post(goodJSON)
			wantAnswer(t, w, http.StatusTooManyRequests, "")
			got, err := strconv.Atoi(w.Header().Get("Retry-After"))
			if err != nil || got != row.want {
				t.Fatalf("Retry-After %q, want %d", w.Header().Get("Retry-After"), row.want)
			}
			s.time.advance(time.Duration(got) * time.Second)
			wantAnswer(t, s.post(goodJSON), http.StatusCreated, "")
		})
	}
}

// The throttle refuses a list as it refuses a link, and reads nothing of it.
func TestThrottledListIsNotRead(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{every: time.Hour, burst: 1})
	wantAnswer(t, s.post("["+goodJSON+"]"), http.StatusCreated, "")
	before := s.store.calls.Load()
	body := &countedBody{Reader: strings.NewReader("[" + goodJSON + "]")}
	r := httptest.NewRequest(http.MethodPost, "/api/links", body)
	r.RemoteAddr = "203.0.113.9:40000"
	r.Header.Set("Content-Type", mediaJSON)
	r.Header.Set(idempotencyHeader, "short")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	wantAnswer(t, w, http.StatusTooManyRequests, "")
	if calls := s.store.calls.Load() - before; body.read != 0 || calls != 0 || w.Header().Get("Quota-Remaining") != "" {
		t.Errorf("read %d bytes, called the store %d times, headers %v", body.read, calls, w.Header())
	}
}
