package web

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/webrisk/webrisktest"
	"snip/web/admin"
)

// outcomes returns what the metrics say of the site's creations, by how they ended.
func (s *site) outcomes(t *testing.T) map[string]int {
	t.Helper()
	const token = "correct-horse-battery"
	h, err := admin.New(admin.Config{
		Service: s.service,
		Process: admin.Process{
			Connections: func() admin.Connections { return admin.Connections{} },
			Requests:    new(RequestTimes).Each,
			Throttle:    s.config.Throttle.Stats,
			Changes:     s.config.Changes.Stats,
			Blocklist:   func() []admin.Blocklist { return nil },
			Alerts:      func() admin.Alerts { return admin.Alerts{} },
		},
		Token: token, Log: s.config.Log, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	found := map[string]int{}
	for _, line := range regexp.MustCompile(`(?m)^snip_creations_total\{outcome="(\w+)"\} (\d+)$`).FindAllStringSubmatch(w.Body.String(), -1) {
		if found[line[1]], err = strconv.Atoi(line[2]); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// fillSlots has the client hold all of its places for large bodies until the test ends.
func fillSlots(t *testing.T, s *site) {
	for range maxClientPlaces {
		body, rest := io.Pipe()
		r := httptest.NewRequest("POST", "/api/links", body)
		r.RemoteAddr, r.ContentLength = "203.0.113.9:40000", maxBody+1
		r.Header.Set("Content-Type", "application/json")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.undescribed.ServeHTTP(httptest.NewRecorder(), r)
		}()
		t.Cleanup(func() {
			rest.Close()
			<-ended
		})
		if _, err := rest.Write([]byte("[")); err != nil { // returns when it was read
			t.Fatal(err)
		}
	}
}

// Every answer to a creation moves one outcome, whatever refused it, of a single link,
// of a form and of a batch; made links move it by their number. Other requests move none.
func TestEveryAnswerIsAnOutcome(t *testing.T) {
	t.Parallel()
	const form, plain = mediaForm, mediaPlain
	header := func(pairs ...string) map[string]string {
		h := map[string]string{"Content-Type": "application/json"}
		for i := 0; i < len(pairs); i += 2 {
			h[pairs[i]] = pairs[i+1]
		}
		return h
	}
	const batch, blocked = `[{"url":"https://example.org/1"},{"url":"https://example.org/2"}]`, `{"url":"https://s.example/x"}`
	fails := func(err error) func(*testing.T, *site) {
		return func(_ *testing.T, s *site) { s.store.fail = func() error { return err } }
	}
	panics := func(_ *testing.T, s *site) { s.store.fail = func() error { panic("a fault") } }
	before := func(c call) func(*testing.T, *site) { return func(_ *testing.T, s *site) { s.do(c) } }
	blocksClient := func(t *testing.T, s *site) {
		if _, err := s.service.PutOverride(t.Context(), shortener.Override{Target: "203.0.113.9", Limit: 0}); err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		setup   siteSetup
		prepare func(*testing.T, *site)
		call    call
		status  int
		outcome string // empty is none
		by      int    // 1 when zero
	}{
		"made":                            {call: call{body: goodJSON, header: asJSON}, status: 201, outcome: "created"},
		"made, by a form":                 {call: call{body: "url=https://example.org/", header: header("Content-Type", form, "Accept", "text/html")}, status: 201, outcome: "created"},
		"made, a batch":                   {call: call{body: batch, header: asJSON}, status: 201, outcome: "created", by: 2},
		"made, a list":                    {call: call{body: "https://example.org/1\nhttps://example.org/2\n", header: header("Content-Type", plain)}, status: 201, outcome: "created", by: 2},
		"again":                           {prepare: before(call{body: goodJSON, header: header("Idempotency-Key", testKey)}), call: call{body: goodJSON, header: header("Idempotency-Key", testKey)}, status: 201, outcome: "replayed"},
		"the key of another":              {prepare: before(call{body: goodJSON, header: header("Idempotency-Key", testKey)}), call: call{body: batch, header: header("Idempotency-Key", testKey)}, status: 201, outcome: "created", by: 2},
		"the key with another":            {prepare: before(call{body: goodJSON, header: header("Idempotency-Key", testKey)}), call: call{body: `{"url":"https://example.net/"}`, header: header("Idempotency-Key", testKey)}, status: 422, outcome: "invalid"},
		"a key that is none":              {call: call{body: goodJSON, header: header("Idempotency-Key", "short")}, status: 400, outcome: "invalid"},
		"a foreign page":                  {call: call{body: goodJSON, header: header("Sec-Fetch-Site", "cross-site")}, status: 403, outcome: "foreign"},
		"a foreign page's form":           {call: call{body: "url=x", header: header("Content-Type", form, "Accept", "text/html", "Origin", "https://evil.example")}, status: 403, outcome: "foreign"},
		"an unknown key":                  {call: call{body: goodJSON, header: header("Authorization", "Bearer snip_unknown")}, status: 401, outcome: "unauthorized"},
		"no key":                          {setup: siteSetup{keysOnly: true}, call: call{body: goodJSON, header: asJSON}, status: 401, outcome: "unauthorized"},
		"throttled":                       {setup: siteSetup{every: time.Hour, burst: 1}, prepare: before(call{body: goodJSON, header: asJSON}), call: call{body: goodJSON, header: asJSON}, status: 429, outcome: "throttled"},
		"throttled, a batch":              {setup: siteSetup{every: time.Hour, burst: 1}, prepare: before(call{body: goodJSON, header: asJSON}), call: call{body: batch, header: asJSON}, status: 429, outcome: "throttled"},
		"full":                            {setup: siteSetup{policy: &quota.Policy{Client: 1}}, prepare: before(call{body: goodJSON, header: asJSON}), call: call{body: goodJSON, header: asJSON}, status: 429, outcome: "refused"},
		"full, a network":                 {setup: siteSetup{policy: &quota.Policy{Network: 1}}, prepare: before(call{body: goodJSON, header: asJSON}), call: call{body: goodJSON, header: asJSON}, status: 429, outcome: "refused"},
		"full, the service":               {setup: siteSetup{policy: &quota.Policy{Service: 1}}, prepare: before(call{body: goodJSON, header: asJSON}), call: call{body: goodJSON, header: asJSON}, status: 429, outcome: "refused"},
		"full, a batch":                   {setup: siteSetup{policy: &quota.Policy{Client: 2}}, prepare: before(call{body: goodJSON, header: asJSON}), call: call{body: batch, header: asJSON}, status: 429, outcome: "refused"},
		"more than a day":                 {setup: siteSetup{policy: &quota.Policy{Client: 1}}, call: call{body: batch, header: asJSON}, status: 400, outcome: "invalid"},
		"taken":                           {prepare: before(call{body: `{"url":"https://example.org/","slug":"mine"}`, header: asJSON}), call: call{body: `{"url":"https://example.org/","slug":"mine"}`, header: asJSON}, status: 409, outcome: "slug_taken"},
		"blocked by an operator":          {prepare: blocksClient, call: call{body: goodJSON, header: asJSON}, status: 403, outcome: "blocked"},
		"blocked by an operator, a batch": {prepare: blocksClient, call: call{body: batch, header: asJSON}, status: 403, outcome: "blocked"},
		"no URL":                          {call: call{body: `{"url":"nonsense"}`, header: asJSON}, status: 400, outcome: "invalid"},
		"an unknown field":                {call: call{body: `{"url":"https://example.org/","more":1}`, header: asJSON}, status: 400, outcome: "invalid"},
		"an unknown field, a form":        {call: call{body: "url=https://example.org/&more=1", header: header("Content-Type", form)}, status: 400, outcome: "invalid"},
		"an unknown field, a list":        {call: call{body: `[{"url":"https://example.org/","more":1}]`, header: asJSON}, status: 400, outcome: "invalid"},
		"an empty batch":                  {call: call{body: "[]", header: asJSON}, status: 400, outcome: "invalid"},
		"no JSON":                         {call: call{body: "{", header: asJSON}, status: 400, outcome: "invalid"},
		"no body":                         {call: call{header: asJSON}, status: 400, outcome: "invalid"},
		"another media type":              {call: call{body: "x", header: header("Content-Type", "image/png")}, status: 415, outcome: "invalid"},
		"compressed":                      {call: call{body: "x", header: header("Content-Encoding", "gzip")}, status: 415, outcome: "invalid"},
		"too large":                       {call: call{body: strings.Repeat(" ", maxListBody+1), header: asJSON}, status: 413, outcome: "invalid"},
		"blocked":                         {call: call{body: blocked, header: asJSON}, status: 400, outcome: "blocked_destination"},
		"blocked, a batch":                {call: call{body: "[" + blocked + `,{"url":"nonsense"}]`, header: asJSON}, status: 400, outcome: "blocked_destination"},
		"blocked, with a bad item":        {call: call{body: "[" + blocked + `,{"more":1}]`, header: asJSON}, status: 400, outcome: "blocked_destination"},
		"blocked, behind another":         {call: call{body: `[{"url":"nonsense"},` + blocked + "]", header: asJSON}, status: 400, outcome: "invalid"},
		"no room":                         {prepare: fillSlots, call: call{body: "[" + strings.Repeat(" ", maxBody) + "]", header: asJSON}, status: 503, outcome: "busy"},
		"the store fails":                 {prepare: fails(shortener.ErrUnavailable), call: call{body: goodJSON, header: asJSON}, status: 503, outcome: "unavailable"},
		"the store fails, a batch":        {prepare: fails(quota.ErrCannotCount), call: call{body: batch, header: asJSON}, status: 503, outcome: "unavailable"},
		"the store panics":                {prepare: panics, call: call{body: goodJSON, header: asJSON}, status: 500, outcome: "failed"},
		"another method":                  {call: call{method: "GET"}, status: 405},
		"a redirect":                      {call: call{method: "GET", target: "/nothing"}, status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, row.setup)
			if row.prepare != nil {
				row.prepare(t, s)
			}
			fail := s.store.fail
			s.store.fail = nil // the metrics ask the store, too
			want := s.outcomes(t)
			s.store.fail = fail
			w := s.do(row.call)
			s.store.fail = nil
			wantAnswer(t, w, row.status, "")
			if row.outcome != "" {
				want[row.outcome] += max(row.by, 1)
			}
			if got := s.outcomes(t); !maps.Equal(got, want) {
				t.Errorf("outcomes %v, want %v", got, want)
			}
		})
	}
	t.Run("unchecked", func(t *testing.T) {
		t.Parallel()
		s, server := newCheckedSite(t, nil)
		server.Set(webrisktest.Status(http.StatusInternalServerError))
		want := s.outcomes(t)
		wantAnswer(t, s.post(goodJSON), http.StatusServiceUnavailable, "")
		want["unchecked"]++
		if got := s.outcomes(t); !maps.Equal(got, want) {
			t.Errorf("outcomes %v, want %v", got, want)
		}
	})
}
