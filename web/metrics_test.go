package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/web/admin"
)

// metrics returns what the admin listener tells Prometheus of the site, by name and labels.
func (s *site) metrics(t *testing.T) map[string]string {
	t.Helper()
	const token = "correct-horse-battery"
	tokens := &admin.TokensRefused{}
	h, err := admin.New(admin.Config{
		Service: s.service,
		Process: admin.Process{
			Version: "v1",
			Connections: func() admin.Connections {
				return admin.Connections{
					Limit: 960, Open: map[string]int64{"idle": 5},
					Closed: map[string]int64{"service": 6}, Refused: map[string]int64{"client": 4},
				}
			},
			Requests:  s.config.RequestTimes.Each,
			Throttle:  s.config.Throttle.Stats,
			Changes:   s.config.Changes.Stats,
			Blocklist: func() []admin.Blocklist { return []admin.Blocklist{{Path: "hosts", Names: 7, Error: "gone"}} },
			Alerts:    func() admin.Alerts { return admin.Alerts{Delivered: 3, Failed: 2} },
			Tokens:    tokens,
		},
		Token: token, Log: s.config.Log, Now: s.time.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(token string) string {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Body.String()
	}
	for range admin.WrongTokens + 2 {
		ask("a wrong token")
	}
	// The right one comes from a peer that has shown too many.
	s.time.advance(time.Minute)
	found := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^(snip_\w+(?:\{.*\})?) (\S+)$`).FindAllStringSubmatch(ask(token), -1) {
		found[line[1]] = line[2]
	}
	return found
}

// reputations judges by the host.
type reputations struct {
	until  time.Time
	asked  chan struct{} // told when "slow" is asked about, which answers
	answer chan struct{} // when this is closed
}

func (r reputations) Check(_ context.Context, destination string) (shortener.Verdict, error) {
	switch {
	case strings.Contains(destination, "slow"):
		r.asked <- struct{}{}
		<-r.answer
	case strings.Contains(destination, "paused"):
		return shortener.Verdict{}, &shortener.CheckError{Outcome: shortener.CheckThrottled, Pause: time.Hour, Err: errors.New("pause")}
	case strings.Contains(destination, "dangerous"):
		return shortener.Verdict{Dangerous: true, Until: r.until}, nil
	case strings.Contains(destination, "failed"):
		return shortener.Verdict{}, &shortener.CheckError{Outcome: shortener.CheckFailed, Err: errors.New("failed")}
	}
	return shortener.Verdict{Until: r.until}, nil
}

// Each metric tells what has happened, and nothing else. One that is new needs its line here.
func TestEveryMetric(t *testing.T) {
	t.Parallel()
	create := func(s *site, from, url string) {
		s.do(call{body: `{"url":"` + url + `"}`, header: asJSON, from: from + ":1"})
	}
	want, expected := map[string]string{}, map[string]bool{}
	expect := func(lines string) {
		for line := range strings.FieldsSeq(lines) {
			name, value, _ := strings.Cut(line, "=>")
			want[name] = value
			expected[family(name)] = true
		}
	}
	found := map[string]string{}
	read := func(s *site) {
		for name, value := range s.metrics(t) {
			found[name] = value
		}
		for name, value := range want {
			if got := found[name]; got != value {
				t.Errorf("%s is %q, want %s", name, got, value)
			}
		}
	}

	// Creations, visits and requests.
	s := newSite(t, siteSetup{
		policy: &quota.Policy{Client: 2, Network: 3, Service: 5}, every: time.Hour, burst: 3, changes: true,
	})
	health := shortener.Health{
		Bytes: 4096, Commits: 2, Operations: 3, Waiting: 4, TurnedAway: 5, FreePages: 6, Trouble: "full",
		CommitTime: shortener.HistogramCounts{Count: 2, Sum: 3 * time.Second},
		WaitTime:   shortener.HistogramCounts{Count: 3, Sum: 4 * time.Second},
	}
	s.store.Store = &measured{s.store.Store, health}
	for range 4 {
		create(s, "192.0.2.1", "https://example.org/") // two are made, one is refused, one is throttled
	}
	create(s, "192.0.2.2", "https://example.org/") // made: the third of the network
	create(s, "192.0.2.2", "https://example.org/") // refused: the network is full
	create(s, "198.51.100.1", "https://example.org/")
	create(s, "198.51.100.1", "https://example.org/") // the fifth of the service
	create(s, "203.0.113.1", "https://example.org/")  // refused: the service is full
	create(s, "203.0.113.1", "nonsense")
	s.put(t, shortener.Link{Slug: "visited", Destination: "https://example.org/"})
	s.put(t, shortener.Link{Slug: "expired", Destination: "https://example.org/", ExpiresAt: s.time.now().Add(time.Second)})
	s.put(t, shortener.Link{Slug: "disabled", Destination: "https://example.org/"})
	if _, err := s.service.TakeDown(t.Context(), shortener.Selection{Slug: "disabled"}, shortener.Reasons[0], ""); err != nil {
		t.Fatal(err)
	}
	s.time.advance(time.Second)
	for _, path := range []string{"/visited", "/visited", "/unknown", "/expired", "/disabled"} {
		s.do(call{method: http.MethodGet, target: path})
	}
	s.store.fail = func() error { return shortener.ErrUnavailable }
	s.do(call{method: http.MethodGet, target: "/visited"})
	s.store.fail = nil
	for range 4 {
		s.do(call{method: http.MethodDelete, target: "/api/links/unknown", header: map[string]string{"Authorization": "Bearer X"}})
	}
	expect(`
		snip_creations_total{outcome="created"}=>5
		snip_creations_total{outcome="refused"}=>3
		snip_creations_total{outcome="throttled"}=>1
		snip_creations_total{outcome="invalid"}=>1
		snip_creations_refused_total{level="client"}=>1
		snip_creations_refused_total{level="network"}=>1
		snip_creations_refused_total{level="service"}=>1
		snip_throttled_total{throttle="creations"}=>1
		snip_throttled_total{throttle="changes"}=>1
		snip_throttle_clients{throttle="creations"}=>4
		snip_throttle_clients{throttle="changes"}=>1
		snip_visits_total{outcome="found"}=>2
		snip_visits_total{outcome="not_found"}=>1
		snip_visits_total{outcome="ended"}=>1
		snip_visits_total{outcome="taken_down"}=>1
		snip_visits_total{outcome="failed"}=>1
		snip_connections{state="idle"}=>5
		snip_connections_limit=>960
		snip_connections_closed_total{reason="service"}=>6
		snip_connections_refused_total{bound="client"}=>4
		snip_budget_used_links=>5
		snip_budget_limit_links=>5
		snip_ready=>1
		snip_store_bytes=>4096
		snip_store_commits_total=>2
		snip_store_operations_total=>3
		snip_store_free_pages=>6
		snip_store_commit_seconds_total=>3
		snip_store_wait_seconds_total=>4
		snip_store_commit_duration_seconds_count=>2
		snip_store_commit_duration_seconds_sum=>3
		snip_store_wait_duration_seconds_count=>3
		snip_store_wait_duration_seconds_sum=>4
		snip_store_waiting_writes=>4
		snip_store_turned_away_total=>5
		snip_store_trouble=>1
		snip_http_request_duration_seconds_count{route="/{slug}",status="3xx"}=>2
		snip_http_request_duration_seconds_count{route="/api/links",status="2xx"}=>5
		snip_blocklist_names=>7
		snip_blocklists_failing=>1
		snip_alerts_delivered_total=>3
		snip_alert_attempts_failed_total=>2
		snip_admin_tokens_refused_total{reason="wrong"}=>10
		snip_admin_tokens_refused_total{reason="throttled"}=>2
	`)
	read(s)

	// Levels in a dry run, and statistics that the store does not take.
	clear(want)
	s = newSite(t, siteSetup{policy: &quota.Policy{Client: 1, DryRun: map[quota.Level]bool{quota.LevelClient: true}}, every: time.Hour, burst: 9, changes: true})
	create(s, "192.0.2.1", "https://example.org/")
	create(s, "192.0.2.1", "https://example.org/")
	s.put(t, shortener.Link{Slug: "visited", Destination: "https://example.org/"})
	s.do(call{method: http.MethodGet, target: "/visited"})
	s.store.Store = &lossy{s.store.Store}
	if _, err := s.service.StoreVisits(t.Context(), func() {}); err == nil {
		t.Fatal("the visits were stored")
	}
	expect(`
		snip_creations_total{outcome="created"}=>2
		snip_creations_would_refuse_total{level="client"}=>1
		snip_visits_not_counted_total=>1
	`)
	read(s)

	// More clients than the throttle has slots for in one set.
	clear(want)
	s = newSite(t, siteSetup{every: time.Hour, burst: 1, changes: true})
	for i := range 17 { // of which a network may hold 16
		create(s, fmt.Sprintf("[2001:db8:0:%x::1]", i), "https://example.org/")
	}
	expect(`
		snip_throttle_overflow_total{throttle="creations"}=>1
		snip_throttle_clients{throttle="creations"}=>16
	`)
	read(s)

	// Checks of destinations.
	clear(want)
	checks := &shortener.Checks{
		Timeout: time.Second, Price: 10, Budget: 100, Calls: 9, NetworkCalls: 9, ClientCalls: 9,
	}
	slow := reputations{time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), make(chan struct{}), make(chan struct{})}
	checks.Reputation = slow
	s = newSite(t, siteSetup{every: time.Hour, burst: 99, changes: true, checks: checks})
	for _, url := range []string{"https://safe.example/", "https://safe.example/", "https://dangerous.example/", "https://failed.example/"} {
		create(s, "192.0.2.1", url)
	}
	expect(`
		snip_reputation_calls_total{outcome="safe"}=>1
		snip_reputation_calls_total{outcome="dangerous"}=>1
		snip_reputation_calls_total{outcome="failed"}=>1
		snip_reputation_cached_total=>1
		snip_reputation_unchecked_total=>1
		snip_reputation_unsettled_total=>0
		snip_reputation_spent_micros=>20
		snip_reputation_held_micros=>0
		snip_reputation_day_at_most_micros=>90
		snip_reputation_calls_today=>2
		snip_reputation_calls_limit=>9
		snip_reputation_paused=>0
		snip_build_info{version="v1"}=>1
	`)
	read(s)

	// One call that is under way, and a service that wants a pause.
	clear(want)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		create(s, "192.0.2.2", "https://slow.example/")
	}()
	<-slow.asked
	create(s, "192.0.2.2", "https://paused.example/")
	expect(`
		snip_reputation_held_micros=>10
		snip_reputation_paused=>1
		snip_reputation_calls_today=>3
	`)
	read(s)
	close(slow.answer)
	<-ended
	for name := range found {
		if !expected[family(name)] {
			t.Errorf("no line here tells what %s is", name)
		}
	}
}

// family is the name of a metric without its labels, and without what a histogram appends.
func family(name string) string {
	name, _, _ = strings.Cut(name, "{")
	for _, part := range []string{"_bucket", "_count", "_sum"} {
		name = strings.TrimSuffix(name, part)
	}
	return name
}

// measured is a store with a health that is given.
type measured struct {
	shortener.Store
	health shortener.Health
}

func (m *measured) Health() shortener.Health { return m.health }

// lossy is a store that takes no statistics.
type lossy struct{ shortener.Store }

func (lossy) AddVisits(context.Context, map[shortener.Slug]shortener.Visits) error {
	return shortener.ErrUnavailable
}
