package web

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/memstore"
)

// site is a whole service in memory, under a clock that stands still.
type site struct {
	http.Handler
	undescribed http.Handler // the same, whose answers nobody compares with their description
	store       *spyStore
	service     *shortener.Service
	time        *handClock
	log         *logLines
	config      Config
}

// siteSetup is what a test may set; the zero value is the default settings
// without a throttle.
type siteSetup struct {
	public   string // https://s.example when empty
	policy   *quota.Policy
	every    time.Duration // of the throttle
	burst    int
	changes  bool // whether changes have the same throttle, of their own
	contact  string
	proxies  []string
	header   string
	redirect int
	cors     []string // listed origins
	keysOnly bool
	checks   *shortener.Checks // of destinations
}

func newSite(t testing.TB, c siteSetup) *site {
	t.Helper()
	if c.public == "" {
		c.public = "https://s.example"
	}
	public, err := url.Parse(c.public)
	if err != nil {
		t.Fatal(err)
	}
	policy := quota.Policy{Client: 50, Network: 250, Service: 1000, Newcomers: 100}
	if c.policy != nil {
		policy = *c.policy
	}
	s := &site{
		store: &spyStore{Store: memstore.New()},
		time:  &handClock{t: time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)},
		log:   &logLines{},
	}
	destinations, err := shortener.NewDestinations(public, false)
	if err != nil {
		t.Fatal(err)
	}
	s.service = shortener.New(shortener.Config{
		Store: s.store, Policy: policy, Destinations: destinations,
		Reserved: ReservedSlugs(public), Checks: c.checks, Now: s.time.now,
	})
	config := Config{
		Service:        s.service,
		Rules:          Rules{Daily: policy.Client, Every: c.every},
		PublicURL:      public,
		CORSOrigins:    c.cors,
		KeysOnly:       c.keysOnly,
		Contact:        c.contact,
		ClientIPHeader: c.header,
		RequestTimes:   new(RequestTimes),
		RedirectStatus: c.redirect,
		Log:            slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now:            s.time.now,
	}
	if c.every > 0 {
		config.Throttle, err = quota.NewThrottle(quota.ThrottleConfig{Every: c.every, Burst: c.burst, Clients: 64, Now: s.time.now})
		if err != nil {
			t.Fatal(err)
		}
		if c.changes {
			config.Changes, err = quota.NewThrottle(quota.ThrottleConfig{Every: c.every, Burst: c.burst, Clients: 64, Now: s.time.now})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, proxy := range c.proxies {
		config.TrustedProxies = append(config.TrustedProxies, netip.MustParsePrefix(proxy))
	}
	s.config = config
	if s.Handler, err = New(config); err != nil {
		t.Fatal(err)
	}
	s.undescribed, s.Handler = s.Handler, described(t, prefixOf(public), s.Handler)
	return s
}

// call is a request as a row of a table.
type call struct {
	method string // POST when empty
	target string // /api/links when empty
	from   string // 203.0.113.9:40000 when empty
	body   string
	header map[string]string
}

func (s *site) do(c call) *httptest.ResponseRecorder {
	if c.method == "" {
		c.method = http.MethodPost
	}
	if c.target == "" {
		c.target = "/api/links"
	}
	if c.from == "" {
		c.from = "203.0.113.9:40000"
	}
	r := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
	r.RemoteAddr = c.from
	for name, value := range c.header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// post sends a JSON body.
func (s *site) post(body string) *httptest.ResponseRecorder {
	return s.do(call{body: body, header: asJSON})
}

var asJSON = map[string]string{"Content-Type": "application/json"}

const goodJSON = `{"url":"https://example.org/"}`

// put stores a link without asking anyone.
func (s *site) put(t testing.TB, link shortener.Link) {
	t.Helper()
	link.Day = "2026-11-29"
	if err := s.store.Store.Create(t.Context(), shortener.Creation{Links: []shortener.Link{link}, Day: link.Day}); err != nil {
		t.Fatal(err)
	}
}

// used returns what the test client has used today.
func (s *site) used(t testing.TB) int64 {
	t.Helper()
	const day = "2026-11-29"
	secret, err := s.store.Store.EnsureSecret(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	client := quota.ClientOf(netip.MustParseAddr("203.0.113.9"))
	counts, err := s.store.Store.Counts(t.Context(), []quota.Counter{{Level: quota.LevelClient, Subject: client.Creator(secret), Period: day}})
	if err != nil {
		t.Fatal(err)
	}
	return counts[0].Used
}

// spyStore counts the calls to a real store, and can be told to fail.
type spyStore struct {
	shortener.Store
	calls atomic.Int64
	gets  atomic.Int64
	fail  func() error // nil never fails; may panic

	failVisits  atomic.Bool
	failWrites  atomic.Bool // of creations; all can be read
	failAnswers atomic.Bool
}

func (s *spyStore) called() error {
	s.calls.Add(1)
	if s.fail != nil {
		return s.fail()
	}
	return nil
}

func (s *spyStore) Secret(ctx context.Context, day string) (quota.Secret, error) {
	if err := s.called(); err != nil {
		return quota.Secret{}, err
	}
	return s.Store.Secret(ctx, day)
}

func (s *spyStore) EnsureSecret(ctx context.Context, day string) (quota.Secret, error) {
	if err := s.called(); err != nil {
		return quota.Secret{}, err
	}
	if s.failWrites.Load() {
		return quota.Secret{}, shortener.ErrUnavailable
	}
	return s.Store.EnsureSecret(ctx, day)
}

func (s *spyStore) Counts(ctx context.Context, counters []quota.Counter) ([]quota.Count, error) {
	if err := s.called(); err != nil {
		return nil, err
	}
	return s.Store.Counts(ctx, counters)
}

func (s *spyStore) Create(ctx context.Context, c shortener.Creation) error {
	if err := s.called(); err != nil {
		return err
	}
	if s.failWrites.Load() {
		return shortener.ErrUnavailable
	}
	return s.Store.Create(ctx, c)
}

func (s *spyStore) Answer(ctx context.Context, refs []shortener.AnswerRef) (shortener.Answer, error) {
	if err := s.called(); err != nil {
		return shortener.Answer{}, err
	}
	if s.failAnswers.Load() {
		return shortener.Answer{}, quota.ErrCannotCount
	}
	return s.Store.Answer(ctx, refs)
}

func (s *spyStore) Follow(ctx context.Context, slug shortener.Slug) (shortener.Target, error) {
	s.gets.Add(1)
	if err := s.called(); err != nil {
		return shortener.Target{}, err
	}
	return s.Store.Follow(ctx, slug)
}

func (s *spyStore) Get(ctx context.Context, slug shortener.Slug) (shortener.Link, error) {
	if err := s.called(); err != nil {
		return shortener.Link{}, err
	}
	return s.Store.Get(ctx, slug)
}

func (s *spyStore) Visit(ctx context.Context, slug shortener.Slug) (shortener.Target, error) {
	if s.failVisits.Load() {
		return shortener.Target{}, shortener.ErrUnavailable
	}
	return s.Store.Visit(ctx, slug)
}

func (s *spyStore) Ready(ctx context.Context, day string) error {
	if err := s.called(); err != nil {
		return err
	}
	return s.Store.Ready(ctx, day)
}

// handClock is moved by hand.
type handClock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *handClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// logLines holds what was logged.
type logLines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// wantAnswer compares the status and what the text must hold.
func wantAnswer(t testing.TB, w *httptest.ResponseRecorder, status int, contains string) {
	t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), contains) {
		t.Errorf("answer %d %q, want %d with %q", w.Code, w.Body, status, contains)
	}
}

// countedBody counts what is read of it.
type countedBody struct {
	io.Reader
	read int
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}
