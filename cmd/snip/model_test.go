package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"snip/shortener/boltstore"
)

// limits is the plainest account of who may make a link: what a person would do
// with a sheet of paper. It shares no code with the program.
type limits struct {
	client, network, service, newcomers int

	byClient, byNetwork map[int]int
	all                 int
	slugs               map[string]bool
}

// request is one creation of the random sequence.
type request struct {
	client, network int
	destination     string
	slug            string
}

// answer predicts the status, and counts when it is 201.
func (l *limits) answer(r request) int {
	newcomer := l.byClient[r.client] == 0 && l.byNetwork[r.network] == 0
	open := l.service
	if !newcomer {
		open -= l.newcomers
	}
	switch {
	case strings.HasPrefix(r.destination, "nonsense"), strings.HasPrefix(r.destination, "http://127."):
		return http.StatusBadRequest
	case l.all >= open, l.byNetwork[r.network] >= l.network, l.byClient[r.client] >= l.client:
		return http.StatusTooManyRequests
	case r.slug != "" && l.slugs[r.slug]:
		return http.StatusConflict
	}
	l.byClient[r.client]++
	l.byNetwork[r.network]++
	l.all++
	if r.slug != "" {
		l.slugs[r.slug] = true
	}
	return http.StatusCreated
}

// site is the program's handler on a data file, without a process around it.
type site struct {
	http.Handler
	file  string
	store *boltstore.Store
}

func newSite(t *testing.T, args ...string) site {
	t.Helper()
	noon := func() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }
	return openSite(t, filepath.Join(t.TempDir(), "snip.db"), noon, args...)
}

// openSite is newSite on a data file and a clock of the caller's.
func openSite(t *testing.T, file string, now func() time.Time, args ...string) site {
	t.Helper()
	s, err := serveSite(file, now, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.store.Close() })
	return s
}

// serveSite is openSite for callers that close the store themselves.
func serveSite(file string, now func() time.Time, args ...string) (site, error) {
	s := site{file: file}
	asked, err := parseCommandLine(append([]string{"--throttle-every=0", "--trusted-proxies=192.0.2.1"}, args...), nil, nil)
	if err != nil {
		return s, err
	}
	c, err := readConfig(asked.settings)
	if err != nil {
		return s, err
	}
	if s.store, err = boltstore.Open(s.file, boltstore.Options{}); err != nil {
		return s, err
	}
	s.Handler, err = newHandler(c, newService(c, s.store, nil, now), throttles{}, nil, now, slog.New(slog.DiscardHandler))
	return s, err
}

// create sends the request as the listed proxy, and returns the status and slug.
func (s site) create(t *testing.T, r request) (int, string) {
	body, err := json.Marshal(map[string]string{"url": r.destination, "slug": r.slug})
	if err != nil {
		t.Error(err)
	}
	hr := httptest.NewRequest("POST", "/api/links", strings.NewReader(string(body)))
	hr.RemoteAddr = "192.0.2.1:4242"
	hr.Header.Set("Content-Type", "application/json")
	hr.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", r.network>>8, r.network&0xff, r.client%256))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, hr)
	var link struct{ Slug string }
	if w.Code == http.StatusCreated {
		if err := json.Unmarshal(w.Body.Bytes(), &link); err != nil {
			t.Errorf("%v: %s", err, w.Body)
		}
	}
	return w.Code, link.Slug
}

// finish closes the store and audits its file.
func (s site) finish(t *testing.T, want int) {
	t.Helper()
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(audit(t, s.file).slugs); got != want {
		t.Errorf("%d links in the file, want %d", got, want)
	}
}

// TestModel sends 10,000 random requests from 200 clients, good and bad, and
// predicts every answer.
func TestModel(t *testing.T) {
	t.Parallel()
	const requests, clients, seed = 10_000, 200, 7
	s := newSite(t, "--quota-client=20", "--quota-network=50", "--quota-service=1500", "--quota-newcomers=30")
	l := limits{
		client: 20, network: 50, service: 1500, newcomers: 30,
		byClient: map[int]int{}, byNetwork: map[int]int{}, slugs: map[string]bool{},
	}
	random := rand.New(rand.NewPCG(seed, 0))
	answers := map[int]int{}
	for i := range requests {
		// The later clients come late, so that newcomers meet the reserve.
		client := random.IntN(min(clients, 100+i/30))
		r := request{client: client, network: client / 4, destination: fmt.Sprintf("https://example.org/%d", i)}
		switch random.IntN(10) {
		case 0:
			r.destination = "nonsense"
		case 1:
			r.destination = "http://127.0.0.1/"
		case 2, 3:
			r.slug = fmt.Sprintf("slug-%d", random.IntN(300))
		}
		want := l.answer(r)
		if got, _ := s.create(t, r); got != want {
			t.Fatalf("request %d, seed %d: %+v was answered with %d, want %d", i, seed, r, got, want)
		}
		answers[want]++
	}
	for _, status := range []int{201, 400, 409, 429} {
		if answers[status] == 0 {
			t.Errorf("no request of the sequence was to be answered with %d", status)
		}
	}
	s.finish(t, l.all)
}

// TestRace sends many creations at once where one unit is left.
func TestRace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args    []string
		before  int               // links made by the first client
		callers int               // at once
		client  func(int) request // the i-th caller
	}{
		"a client's fiftieth": {
			nil, 49, 51, func(int) request { return request{client: 1} },
		},
		"a network's last": {
			[]string{"--quota-network=50"}, 49, 51, func(i int) request { return request{client: i} },
		},
		"the service's thousandth": {
			[]string{"--quota-client=1000", "--quota-network=1000", "--quota-newcomers=0"}, 999, 50,
			func(i int) request { return request{client: i, network: 1 + i} },
		},
		"the last newcomer": {
			[]string{"--quota-client=900", "--quota-network=900", "--quota-service=901", "--quota-newcomers=1"}, 900, 50,
			func(i int) request { return request{client: i, network: 1 + i} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, c.args...)
			first := c.client(1)
			if c.before > 50 {
				first = request{client: 255, network: 999}
			}
			first.destination = "https://example.org/"
			for range c.before {
				if status, _ := s.create(t, first); status != http.StatusCreated {
					t.Fatalf("status %d", status)
				}
			}
			var mu sync.Mutex
			answers := map[int]int{}
			var wg sync.WaitGroup
			for i := range c.callers {
				wg.Go(func() {
					r := c.client(i)
					r.destination = "https://example.org/"
					status, _ := s.create(t, r)
					mu.Lock()
					answers[status]++
					mu.Unlock()
				})
			}
			wg.Wait()
			if answers[http.StatusCreated] != 1 || answers[http.StatusTooManyRequests] != c.callers-1 {
				t.Errorf("answers %v, want one 201 and the rest 429", answers)
			}
			s.finish(t, c.before+1)
		})
	}
}
