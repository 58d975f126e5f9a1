package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"snip/shortener"
	"snip/shortener/webrisk/webrisktest"
)

// newCheckedSite is a site that checks destinations with a server.
func newCheckedSite(t *testing.T, change func(*shortener.Checks)) (*site, *webrisktest.Server) {
	t.Helper()
	server := webrisktest.Start(t)
	checks := shortener.Checks{
		Reputation: server.Client(time.Now), Timeout: time.Minute,
		Price: 500, Budget: 1_000_000, Calls: 2000, NetworkCalls: 500, ClientCalls: 100,
	}
	if change != nil {
		change(&checks)
	}
	return newSite(t, siteSetup{checks: &checks}), server
}

// checkedLanguages are those of the catalogue, with some words of each sentence that a check
// may end in.
var checkedLanguages = map[string]struct{ unchecked, dangerous, limited string }{
	"en": {"could not be checked", "suspected to be dangerous", "links per UTC day"},
	"ja": {"確認できない", "危険の疑い", "1日"},
	"ko": {"확인할 수 없어", "의심되는", "하루"},
}

// TestChecksInEveryFormat shows what becomes of a link that cannot be checked, leads
// to danger, or whose maker may ask no more.
func TestChecksInEveryFormat(t *testing.T) {
	t.Parallel()
	for language, words := range checkedLanguages {
		for name, row := range map[string]struct {
			answer      webrisktest.Answer
			clientCalls int64 // all of which are used up first
			status      int
			code        string
			field       string
			word        string
			html        string // on the page, where that has a sentence of its own
			retryAfter  string
		}{
			"cannot be checked": {webrisktest.Status(500), 1, http.StatusServiceUnavailable, "unavailable", "", words.unchecked, words.unchecked, "60"},
			"leads to danger": {webrisktest.Dangerous(time.Now().Add(time.Hour)), 1, http.StatusBadRequest,
				"blocked_destination", "url", words.dangerous, words.dangerous, ""},
			"may ask no more": {webrisktest.Safe, 0, http.StatusTooManyRequests, "rate_limited", "", words.limited, "00:00", "50400"},
		} {
			t.Run(language+", "+name, func(t *testing.T) {
				t.Parallel()
				s, server := newCheckedSite(t, func(c *shortener.Checks) { c.ClientCalls = 1 })
				if row.clientCalls == 0 {
					wantAnswer(t, s.post(`{"url":"https://first.example/"}`), http.StatusCreated, "")
				}
				before := s.used(t)
				server.Set(row.answer)
				for accept, mediaType := range map[string]string{"": mediaProblem, "text/plain": mediaText, "text/html": mediaHTML} {
					w := s.do(call{body: goodJSON, header: map[string]string{
						"Content-Type": "application/json", "Accept": accept, "Accept-Language": language,
					}})
					word := row.word
					if accept == "text/html" {
						word = row.html
					}
					wantAnswer(t, w, row.status, word)
					if got := w.Header().Get("Content-Type"); got != mediaType {
						t.Errorf("%q: Content-Type %q, want %q", accept, got, mediaType)
					}
					if got := w.Header().Get("Retry-After"); got != row.retryAfter {
						t.Errorf("%q: Retry-After %q, want %q", accept, got, row.retryAfter)
					}
					if accept != "" {
						continue
					}
					var problem struct {
						Type, Title, Code, Field, Detail string
						Status                           int
					}
					if err := json.Unmarshal(w.Body.Bytes(), &problem, json.MatchCaseInsensitiveNames(true), json.RejectUnknownMembers(true)); err != nil {
						t.Fatal(err)
					}
					if problem.Status != row.status || problem.Code != row.code || problem.Field != row.field {
						t.Errorf("%+v, want %d, %q and the field %q", problem, row.status, row.code, row.field)
					}
				}
				if used := s.used(t); used != before {
					t.Errorf("%d links were charged", used-before)
				}
			})
		}
	}
}

// TestRetryWhenChecksGoOn says how long a 503 lasts where that is known.
func TestRetryWhenChecksGoOn(t *testing.T) {
	t.Parallel()
	s, server := newCheckedSite(t, func(c *shortener.Checks) { c.Budget = 500 })
	server.Set(webrisktest.Status(http.StatusTooManyRequests, "Retry-After", "600"))
	retry := func(want string) {
		t.Helper()
		w := s.post(goodJSON)
		wantAnswer(t, w, http.StatusServiceUnavailable, "could not be checked")
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("Retry-After %q, want %q", got, want)
		}
	}
	retry("60") // which only the next one knows better
	retry("600")
	s.time.advance(10 * time.Minute)
	server.Set(webrisktest.Status(http.StatusBadGateway)) // which may be billed
	retry("60")
	retry("49800") // until the next day
}

// TestOneRefusalForAllLimits sees that a client cannot tell its calls from its links.
func TestOneRefusalForAllLimits(t *testing.T) {
	t.Parallel()
	s, _ := newCheckedSite(t, func(c *shortener.Checks) { c.ClientCalls = 2 })
	for _, host := range []string{"one", "two"} {
		wantAnswer(t, s.post(`{"url":"https://`+host+`.example/"}`), http.StatusCreated, "")
	}
	noCalls := s.post(`{"url":"https://three.example/"}`)
	for range 48 {
		wantAnswer(t, s.post(`{"url":"https://one.example/"}`), http.StatusCreated, "")
	}
	noLinks := s.post(`{"url":"https://one.example/"}`)
	if noCalls.Code != http.StatusTooManyRequests || noCalls.Body.String() != noLinks.Body.String() {
		t.Errorf("%d %s\nwant the same as\n%d %s", noCalls.Code, noCalls.Body, noLinks.Code, noLinks.Body)
	}
}

// TestChangedDestinationIsChecked changes where a link leads.
func TestChangedDestinationIsChecked(t *testing.T) {
	t.Parallel()
	s, server := newCheckedSite(t, func(c *shortener.Checks) { c.ClientCalls = 3 })
	var made createdLink
	if err := json.Unmarshal(s.post(goodJSON).Body.Bytes(), &made); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		answer   webrisktest.Answer
		to       string
		status   int
		contains string
	}{
		{webrisktest.Safe, "https://two.example/", http.StatusOK, `"url":"https://two.example/"`},
		{webrisktest.Status(503), "https://three.example/", http.StatusServiceUnavailable, "could not be checked"},
		{webrisktest.Dangerous(time.Now().Add(time.Hour)), "https://four.example/", http.StatusBadRequest, `"code":"blocked_destination"`},
		{webrisktest.Safe, "https://five.example/", http.StatusTooManyRequests, limitedChange},
		{webrisktest.Safe, "https://two.example/", http.StatusOK, `"url":"https://two.example/"`},
	} {
		server.Set(row.answer)
		w := s.do(call{method: http.MethodPatch, target: "/api/links/" + string(made.Slug), body: `{"url":"` + row.to + `"}`, header: map[string]string{
			"Content-Type": "application/json", "Authorization": "Bearer " + string(made.ManageToken),
		}})
		wantAnswer(t, w, row.status, row.contains)
	}
	if asked := server.Asked(); len(asked) != 4 {
		t.Errorf("asked about %q", asked)
	}
	if log := s.log.String(); strings.Count(log, "kind=reputation") != 1 || strings.Contains(log, "kind=store") {
		t.Errorf("the log has not one line about it:\n%s", log)
	}
}
