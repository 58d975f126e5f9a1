package shortener_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/memstore"
)

// clock is set by tests.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// spy counts calls and fails them on demand.
type spy struct {
	shortener.Store
	mu    sync.Mutex
	calls map[string]int
	fail  map[string]error
	drawn []shortener.Slug // that come before others

	meanwhile func() // runs once, between what the next act is based on and the act
}

func (s *spy) call(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[name]++
	return s.fail[name]
}

func (s *spy) EnsureSecret(ctx context.Context, day string) (quota.Secret, error) {
	if err := s.call("secret"); err != nil {
		return quota.Secret{}, err
	}
	return s.Store.EnsureSecret(ctx, day)
}

func (s *spy) Secret(ctx context.Context, day string) (quota.Secret, error) {
	if err := s.call("find secret"); err != nil {
		return quota.Secret{}, err
	}
	return s.Store.Secret(ctx, day)
}

func (s *spy) Answer(ctx context.Context, refs []shortener.AnswerRef) (shortener.Answer, error) {
	if err := s.call("answer"); err != nil {
		return shortener.Answer{}, err
	}
	return s.Store.Answer(ctx, refs)
}

func (s *spy) NewSlug() shortener.Slug {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.drawn) == 0 {
		return s.Store.NewSlug()
	}
	slug := s.drawn[0]
	s.drawn = s.drawn[1:]
	return slug
}

func (s *spy) AddVisits(ctx context.Context, visits map[shortener.Slug]shortener.Visits) error {
	if err := s.call("visits"); err != nil {
		return err
	}
	return s.Store.AddVisits(ctx, visits)
}

func (s *spy) Counts(ctx context.Context, c []quota.Counter) ([]quota.Count, error) {
	if err := s.call("used"); err != nil {
		return nil, err
	}
	return s.Store.Counts(ctx, c)
}

func (s *spy) Create(ctx context.Context, c shortener.Creation) error {
	err := s.call("create")
	if errors.Is(err, shortener.ErrSlugTaken) {
		all := &shortener.SlugTakenError{}
		for _, link := range c.Links {
			all.Slugs = append(all.Slugs, link.Slug)
		}
		return all
	}
	if err != nil {
		return err
	}
	return s.Store.Create(ctx, c)
}

func (s *spy) Act(ctx context.Context, act shortener.Act) (shortener.Done, error) {
	if err := s.call("act"); err != nil {
		return shortener.Done{}, err
	}
	if run := s.meanwhile; run != nil {
		s.meanwhile = nil
		run()
	}
	return s.Store.Act(ctx, act)
}

type fixture struct {
	*shortener.Service
	store        *spy
	clock        *clock
	destinations shortener.Destinations
}

func newFixture(t *testing.T, policy quota.Policy) fixture {
	t.Helper()
	public, err := url.Parse("https://s.example")
	if err != nil {
		t.Fatal(err)
	}
	destinations, err := shortener.NewDestinations(public, false)
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{
		store: &spy{Store: memstore.New(), calls: map[string]int{}, fail: map[string]error{}},
		clock: &clock{now: time.Date(2026, 11, 29, 12, 0, 0, 123456789, time.UTC)},
	}
	f.destinations = destinations
	f.Service = newService(f, policy)
	return f
}

// newService returns another service on the fixture's store, as after a restart.
func newService(f fixture, policy quota.Policy) *shortener.Service {
	return shortener.New(shortener.Config{
		Store: f.store, Policy: policy, Destinations: f.destinations, Reserved: []string{"api"}, Now: f.clock.read,
	})
}

var (
	standard = quota.Policy{Client: 50, Network: 250, Service: 1000, Newcomers: 100}
	someone  = quota.ClientOf(netip.MustParseAddr("192.0.2.1"))
)

func (f fixture) create(n shortener.NewLink) (shortener.Link, error) {
	made, err := f.Create(context.Background(), someone, n, "")
	return made.Link, err
}

func (f fixture) wantUsed(t *testing.T, want int64) {
	t.Helper()
	a, err := f.Allowance(t.Context(), someone)
	if err != nil || a.Usage.Used != want {
		t.Errorf("used %d, %v, want %d", a.Usage.Used, err, want)
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	link, err := f.create(shortener.NewLink{URL: " example.org/a%2Fb ", Slug: "My-Slug", ExpiresAt: "2026-11-30T00:00:00+09:00"})
	if err != nil {
		t.Fatal(err)
	}
	if link.Slug != "My-Slug" || link.Destination != "https://example.org/a%2Fb" || link.Day != "2026-11-29" {
		t.Errorf("got %+v", link)
	}
	if want := time.Date(2026, 11, 29, 12, 0, 0, 123456000, time.UTC); !link.CreatedAt.Equal(want) {
		t.Errorf("created at %v, want the decision's instant in whole microseconds, %v", link.CreatedAt, want)
	}
	if got, err := f.Follow(t.Context(), "My-Slug"); err != nil || got != link.Target() {
		t.Errorf("Follow: %+v, %v, want %+v", got, err, link)
	}
	f.clock.set(time.Date(2026, 11, 29, 14, 59, 59, 999_999_999, time.UTC))
	if _, err := f.Follow(t.Context(), "My-Slug"); err != nil {
		t.Errorf("an instant before its end: %v", err)
	}
	f.clock.set(time.Date(2026, 11, 29, 15, 0, 0, 0, time.UTC))
	if _, err := f.Follow(t.Context(), "My-Slug"); !errors.Is(err, shortener.ErrGone) {
		t.Errorf("at its end: got error %v, want ErrGone", err)
	}
}

func TestInvalidInputTouchesNoStore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	for i := range 100 {
		for _, c := range []struct {
			link shortener.NewLink
			kind error
		}{
			{shortener.NewLink{URL: ""}, shortener.ErrInvalidURL},
			{shortener.NewLink{URL: fmt.Sprintf("javascript:alert(%d)", i)}, shortener.ErrInvalidURL},
			{shortener.NewLink{URL: fmt.Sprintf("http://127.0.0.1/%d", i)}, shortener.ErrBlockedDestination},
			{shortener.NewLink{URL: "https://S.example.:443/x"}, shortener.ErrBlockedDestination},
			{shortener.NewLink{URL: "https://example.org/", Slug: "API"}, shortener.ErrInvalidSlug},
			{shortener.NewLink{URL: "https://example.org/", Slug: "a b"}, shortener.ErrInvalidSlug},
			{shortener.NewLink{URL: "https://example.org/", ExpiresAt: "tomorrow"}, shortener.ErrInvalidExpiry},
			{shortener.NewLink{URL: "https://example.org/", ExpiresAt: "2030-01-01T00:00:00"}, shortener.ErrInvalidExpiry},
			{shortener.NewLink{URL: "https://example.org/", ExpiresAt: "2030-01-01T1:00:00Z"}, shortener.ErrInvalidExpiry},
			{shortener.NewLink{URL: "https://example.org/", ExpiresAt: "2030-01-01T00:00:00,5Z"}, shortener.ErrInvalidExpiry},
			{shortener.NewLink{URL: "https://example.org/", ExpiresAt: "2030-01-01T00:00:00+24:00"}, shortener.ErrInvalidExpiry},
			{shortener.NewLink{URL: "https://example.org/", ExpiresAt: "2026-11-29T12:00:00Z"}, shortener.ErrInvalidExpiry},
		} {
			var invalid *shortener.InvalidError
			if _, err := f.create(c.link); !errors.As(err, &invalid) || !errors.Is(err, c.kind) || invalid.Reason.Name == "" {
				t.Fatalf("%+v: got error %v, want kind %v", c.link, err, c.kind)
			}
		}
	}
	if len(f.store.calls) != 0 {
		t.Errorf("the store was called: %v", f.store.calls)
	}
	if _, err := f.create(shortener.NewLink{URL: "https://example.org/"}); err != nil {
		t.Fatal(err)
	}
	f.wantUsed(t, 1)
}

// TestFullClient shows that a refusal at the limit only reads, and that bad input
// is said before the limit.
func TestFullClient(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	for range 50 {
		if _, err := f.create(shortener.NewLink{URL: "https://example.org/"}); err != nil {
			t.Fatal(err)
		}
	}
	before := f.store.calls["create"]
	_, err := f.create(shortener.NewLink{URL: "https://example.org/"})
	var exceeded *quota.ExceededError
	if !errors.As(err, &exceeded) || exceeded.Usage.Level != quota.LevelClient || exceeded.Usage.Remaining() != 0 {
		t.Errorf("got error %v, want a refusal by the client's own limit", err)
	}
	if f.store.calls["create"] != before {
		t.Error("a full client's creation was sent to the writer")
	}
	looks := f.store.calls["used"]
	var again *quota.ExceededError
	if _, err := f.create(shortener.NewLink{URL: "https://example.org/"}); !errors.As(err, &again) || *again != *exceeded {
		t.Errorf("asked again: %v, want %v", err, exceeded)
	}
	if f.store.calls["used"] != looks {
		t.Error("a client that is known to be full costs a look at its counters")
	}
	if _, err := f.create(shortener.NewLink{URL: "nonsense"}); !errors.Is(err, shortener.ErrInvalidURL) {
		t.Errorf("nonsense from a full client: got error %v, want ErrInvalidURL", err)
	}
	a, err := f.Allowance(t.Context(), someone)
	if err != nil || a.Open || a.Usage.Used != 50 || !a.Usage.ResetAt.Equal(time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("Allowance: %+v, %v", a, err)
	}
	f.clock.set(a.Usage.ResetAt)
	if _, err := f.create(shortener.NewLink{URL: "https://example.org/"}); err != nil {
		t.Errorf("when the day has turned: %v", err)
	}
}

func TestStoreErrorsRefuse(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	for _, method := range []string{"secret", "used", "create"} {
		f := newFixture(t, quota.Policy{Client: 300, Network: 300, Service: 1000})
		for range 180 {
			if _, err := f.create(shortener.NewLink{URL: "https://example.org/"}); err != nil {
				t.Fatal(err)
			}
		}
		f.store.fail[method] = broken
		for i := range 1000 {
			if i == 500 { // the failure outlasts the day
				f.clock.set(f.clock.read().AddDate(0, 0, 1))
			}
			_, err := f.create(shortener.NewLink{URL: "https://example.org/"})
			if !errors.Is(err, shortener.ErrUnavailable) || !errors.Is(err, broken) || errors.Is(err, quota.ErrExceeded) {
				t.Fatalf("%s fails: got error %v, want ErrUnavailable with its cause", method, err)
			}
		}
		delete(f.store.fail, method)
		f.wantUsed(t, 0)
		f.clock.set(f.clock.read().AddDate(0, 0, -1))
		f.wantUsed(t, 180)
	}
}

// TestRandomSlugTaken lets the store report random slugs as taken.
func TestRandomSlugTaken(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	f.store.fail["create"] = shortener.ErrSlugTaken
	_, err := f.create(shortener.NewLink{URL: "https://example.org/"})
	if !errors.Is(err, shortener.ErrUnavailable) || errors.Is(err, shortener.ErrSlugTaken) {
		t.Errorf("every draw taken: got error %v, want ErrUnavailable", err)
	}
	if drawn := f.store.calls["create"]; drawn < 2 || drawn > 20 {
		t.Errorf("drawn %d times", drawn)
	}
	_, err = f.create(shortener.NewLink{URL: "https://example.org/", Slug: "chosen"})
	if !errors.Is(err, shortener.ErrSlugTaken) {
		t.Errorf("a chosen slug: got error %v, want ErrSlugTaken", err)
	}
	f.wantUsed(t, 0)
}

func TestAllowanceWritesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	a, err := f.Allowance(t.Context(), someone)
	if err != nil || !a.Open || a.Usage.Used != 0 || a.Usage.Max != 50 {
		t.Errorf("a fresh day: %+v, %v", a, err)
	}
	if f.store.calls["secret"] != 0 {
		t.Error("asking for the allowance made the day's secret")
	}
	off := newFixture(t, quota.Policy{})
	a, err = off.Allowance(t.Context(), someone)
	if err != nil || !a.Open || a.Usage.Level != "" {
		t.Errorf("with every level off: %+v, %v", a, err)
	}
}
