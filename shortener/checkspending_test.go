package shortener_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/webrisk/webrisktest"
)

// batchOf returns links to that many hosts, which no other call has returned.
func batchOf(name string, n int) []shortener.NewLink {
	links := make([]shortener.NewLink, n)
	for i := range links {
		links[i].URL = fmt.Sprintf("https://%d.%s.example/", i, name)
	}
	return links
}

// TestTakenSlugCostsNoCall asks for slugs that are taken: those who have links left are
// told so before anything is paid for, alone and in a list, and whoever has none is not
// told at all.
func TestTakenSlugCostsNoCall(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{policy: quota.Policy{Client: 60, Network: 200, Service: 1000}})
	old := shortener.Link{Slug: "taken-1", Destination: "https://old.example/", CreatedAt: f.clock.read()}
	gone := shortener.Link{Slug: "taken-2", CreatedAt: f.clock.read(), Deleted: true}
	if refused, err := f.Import(t.Context(), []shortener.Managed{{Link: old}, {Link: gone}}, 0); err != nil || refused[0] != nil || refused[1] != nil {
		t.Fatal(refused, err)
	}
	for _, slug := range []string{"taken-1", "taken-2"} {
		_, err := f.Create(t.Context(), someone, shortener.NewLink{URL: "https://new.example/", Slug: slug}, "")
		wantErr(t, err, shortener.ErrSlugTaken)
	}
	links := batchOf("batch", 49)
	links[3].Slug, links[5].Slug, links[7].Slug = "taken-2", "not-taken", "taken-1"
	_, err := f.CreateBatch(t.Context(), someone, links, "")
	batch, ok := errors.AsType[*shortener.BatchError](err)
	if !ok || len(batch.Items) != 2 || batch.Items[0].Index != 3 || batch.Items[1].Index != 7 || !errors.Is(err, shortener.ErrSlugTaken) {
		t.Errorf("got the error %v, want items 3 and 7 taken", err)
	}
	f.wantAsked(t, 0)
	f.wantPaid(t, someone, 0, 0)

	// Again with the key of one that has taken the slug itself.
	const key = "0123456789abcdef"
	wanted := shortener.NewLink{URL: "https://new.example/", Slug: "mine"}
	first, err := f.Create(t.Context(), someone, wanted, key)
	wantErr(t, err, nil)
	again, err := f.Create(t.Context(), someone, wanted, key)
	if err != nil || again.Token != first.Token {
		t.Errorf("again %+v, %v", again, err)
	}
	links = batchOf("full", 59)
	_, err = f.CreateBatch(t.Context(), someone, links, "")
	wantErr(t, err, nil)
	_, err = f.Create(t.Context(), someone, shortener.NewLink{URL: "https://new.example/", Slug: "taken-1"}, "")
	wantLevel(t, err, quota.LevelClient)
}

// slowSlugs makes the link of another try while a slug is looked for.
type slowSlugs struct {
	*ledger
	meanwhile func()
}

func (s *slowSlugs) Get(ctx context.Context, slug shortener.Slug) (shortener.Link, error) {
	if f := s.meanwhile; f != nil {
		s.meanwhile = nil
		f()
	}
	return s.ledger.Get(ctx, slug)
}

// TestTakenByAnotherTry lets another try of the same demand take the slug just before
// it is looked for: that is no refusal.
func TestTakenByAnotherTry(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{})
	slow := &slowSlugs{ledger: f.store}
	s := shortener.New(shortener.Config{Store: slow, Policy: unhurried, Now: f.clock.read, Checks: &shortener.Checks{
		Reputation: f.server.Client(f.clock.read), Calls: 10, NetworkCalls: 10, ClientCalls: 10,
	}})
	const key = "0123456789abcdef"
	wanted := shortener.NewLink{URL: "https://example.org/", Slug: "mine"}
	var first shortener.Made
	slow.meanwhile = func() {
		var err error
		first, err = f.Create(t.Context(), someone, wanted, key)
		wantErr(t, err, nil)
	}
	second, err := s.Create(t.Context(), someone, wanted, key)
	if err != nil || second.Token != first.Token {
		t.Errorf("got %+v, %v, want %+v", second, err, first)
	}
	f.store.setFailing("get", errors.New("broken"))
	_, err = s.Create(t.Context(), someone, shortener.NewLink{URL: "https://else.example/", Slug: "other"}, "")
	wantErr(t, err, shortener.ErrUnavailable)
	f.wantAsked(t, 1)
}

// TestPrivateDestinationsAreNotSent lets links lead into a network of one's own. Nobody
// elsewhere hears of that.
func TestPrivateDestinationsAreNotSent(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{})
	public := &url.URL{Scheme: "https", Host: "s.example"}
	destinations, err := shortener.NewDestinations(public, true)
	if err != nil {
		t.Fatal(err)
	}
	s := shortener.New(shortener.Config{Store: f.store, Policy: unhurried, Destinations: destinations, Now: f.clock.read, Checks: &shortener.Checks{
		Reputation: f.server.Client(f.clock.read), Timeout: time.Minute, Price: price, Budget: price, Calls: 1, NetworkCalls: 1, ClientCalls: 1,
	}})
	var links []shortener.NewLink
	for _, host := range []string{"127.0.0.1", "10.1.2.3:8080", "192.168.0.1", "0x7f000001", "[::1]", "[fd00::1]", "localhost", "wiki.localhost"} {
		links = append(links, shortener.NewLink{URL: "http://" + host + "/secret"})
	}
	_, err = s.CreateBatch(t.Context(), someone, links, "")
	wantErr(t, err, nil)
	f.wantAsked(t, 0)
	f.wantPaid(t, someone, 0, 0)
	links[0].URL = "https://public.example/"
	_, err = s.CreateBatch(t.Context(), someone, links, "")
	wantErr(t, err, nil)
	if asked := f.server.Asked(); !slices.Equal(asked, []string{"https://public.example/"}) {
		t.Errorf("asked about %q", asked)
	}
}

// TestKeysSpendAllOfTheMoney lets nobody but a key make links: there are no networks
// whose first call could be kept for them.
func TestKeysSpendAllOfTheMoney(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) { c.Budget, c.KeysOnly = 20*price, true }})
	key := quota.ClientOfKey(quota.Key{ID: 7, Limit: 99})
	for i := range 21 {
		var want error
		if i == 20 {
			want = shortener.ErrUnchecked
		}
		wantErr(t, f.make(key, fmt.Sprintf("https://%d.example/", i)), want)
	}
	notices, err := f.Notices(t.Context(), 10)
	if err != nil || !slices.ContainsFunc(notices, func(n shortener.Notice) bool { return n.ID == "2026-11-29/reputation-budget/100" }) {
		t.Errorf("operators hear %v, %v, want that all is spent", notices, err)
	}
}

// TestPausesAreTold sees for how long nobody is asked, where that is known.
func TestPausesAreTold(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) { c.Budget = price }})
	wantUntil := func(err error, want time.Time) {
		t.Helper()
		wantErr(t, err, shortener.ErrUnchecked)
		if paused, ok := errors.AsType[*shortener.PausedError](err); ok != !want.IsZero() || ok && !paused.Until.Equal(want) {
			t.Errorf("got the error %v, want one until %v", err, want)
		}
	}
	f.server.Set(webrisktest.Status(429, "Retry-After", "600"))
	wantUntil(f.make(someone, "https://one.example/"), time.Time{})
	wantUntil(f.make(someone, "https://one.example/"), f.clock.read().Add(10*time.Minute))
	f.pass(10 * time.Minute)
	f.server.Set(webrisktest.Safe)
	wantErr(t, f.make(someone, "https://one.example/"), nil)
	wantUntil(f.make(client(1<<8), "https://two.example/"), quota.DayOf(f.clock.read()).End)
	_, err := f.CreateBatch(t.Context(), client(1<<8), batchOf("many", 2), "")
	wantUntil(err, quota.DayOf(f.clock.read()).End)
}

// TestBatchThatCannotBePaid asks for lists of more hosts than there are calls for:
// none of them is paid for, unless the service has too little and links are made
// unchecked then.
func TestBatchThatCannotBePaid(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*shortener.Checks)
		level  quota.Level // of a payer's own; empty is the service's
	}{
		"client":       {func(c *shortener.Checks) { c.ClientCalls = 9 }, shortener.LevelCheckClient},
		"network":      {func(c *shortener.Checks) { c.NetworkCalls, c.ClientCalls = 9, 9 }, shortener.LevelCheckNetwork},
		"service":      {func(c *shortener.Checks) { c.Calls, c.NetworkCalls, c.ClientCalls = 10, 10, 10 }, ""},
		"money":        {func(c *shortener.Checks) { c.Budget = 10*price - 1 }, ""},
		"a great deal": {func(c *shortener.Checks) { c.Price, c.Budget = math.MaxInt64/4, math.MaxInt64 }, ""},
	} {
		for policy, allow := range map[string]bool{"refuse": false, "allow": true} {
			t.Run(name+", "+policy, func(t *testing.T) {
				t.Parallel()
				f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) {
					row.change(c)
					c.AllowOnFailure = allow
				}})
				f.server.Set(webrisktest.SafeFor(600))
				_, err := f.CreateBatch(t.Context(), someone, batchOf("many", 10), "")
				switch {
				case row.level != "":
					wantLevel(t, err, row.level)
				case allow:
					wantErr(t, err, nil)
				default:
					wantErr(t, err, shortener.ErrUnchecked)
				}
				report, reportErr := f.CheckReport(t.Context())
				if reportErr != nil {
					t.Fatal(reportErr)
				}
				if err != nil {
					f.wantAsked(t, 0)
					f.wantMade(t, 0)
					if report.Called != (quota.Count{}) || len(f.store.states(t)) != 0 {
						t.Errorf("%+v calls", report.Called)
					}
				} else if asked := len(f.server.Asked()); asked == 0 || asked >= 10 {
					t.Errorf("%d of 10 were checked, want as many as there was money for", asked)
				}
				// What is known costs nothing, and many pages of a host cost one call.
				links := slices.Repeat(batchOf("one", 1), 90)
				if _, err := f.CreateBatch(t.Context(), client(1<<8), links, ""); err != nil && !allow {
					t.Errorf("90 to one host: %v", err)
				}
			})
		}
	}
}
