package shortener_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/memstore"
	"snip/shortener/webrisk"
	"snip/shortener/webrisk/webrisktest"
)

// ledger remembers what was reserved, and fails on demand.
type ledger struct {
	shortener.Store
	settled chan string // an id for each that was settled; nil where nobody listens

	mu   sync.Mutex
	ids  []string
	fail map[string]error // by the method's name
}

func (l *ledger) failing(method string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fail[method]
}

func (l *ledger) setFailing(method string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail[method] = err
}

func (l *ledger) Reserve(ctx context.Context, r quota.Reservation) (quota.Reservation, bool, error) {
	if err := l.failing("reserve"); err != nil {
		return r, false, err
	}
	stored, already, err := l.Store.Reserve(ctx, r)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ids = append(l.ids, r.ID)
	}
	return stored, already, err
}

func (l *ledger) Get(ctx context.Context, slug shortener.Slug) (shortener.Link, error) {
	if err := l.failing("get"); err != nil {
		return shortener.Link{}, err
	}
	return l.Store.Get(ctx, slug)
}

func (l *ledger) Commit(ctx context.Context, id string, actual []int64, at time.Time) (quota.Reservation, error) {
	if err := l.failing("settle"); err != nil {
		return quota.Reservation{}, err
	}
	defer l.tell(id)
	return l.Store.Commit(ctx, id, actual, at)
}

func (l *ledger) Release(ctx context.Context, id string, at time.Time) (quota.Reservation, error) {
	if err := l.failing("settle"); err != nil {
		return quota.Reservation{}, err
	}
	defer l.tell(id)
	return l.Store.Release(ctx, id, at)
}

func (l *ledger) tell(id string) {
	if l.settled != nil {
		l.settled <- id
	}
}

// states are those of all reservations, in the order in which they were made.
func (l *ledger) states(t *testing.T) (states []quota.State) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.ids {
		// Whoever reserves again is told what there is.
		r, already, err := l.Store.Reserve(t.Context(), quota.Reservation{
			ID: id, ExpiresAt: time.Unix(1, 0), OnExpiry: quota.Released,
			Charges: []quota.Charge{{Counter: quota.Counter{Level: "other"}, Cost: 1, Max: 1, ResetAt: time.Unix(1, 0)}},
		})
		if err != nil || !already {
			t.Fatalf("reservation %q is not there: %v", id, err)
		}
		states = append(states, r.State)
	}
	return states
}

// checked is a service that checks destinations, with a server that it asks.
type checked struct {
	*shortener.Service
	store  *ledger
	server *webrisktest.Server
	clock  *clock
}

// price is what a call costs.
const price = 500

// unhurried is a policy that is in no test's way.
var unhurried = quota.Policy{Client: 1000, Network: 1000, Service: 1000}

type checkedSetup struct {
	policy quota.Policy
	store  shortener.Store
	change func(*shortener.Checks)
}

func newChecked(t *testing.T, c checkedSetup) *checked {
	t.Helper()
	if c.store == nil {
		c.store = memstore.New()
	}
	if c.policy.Client == 0 {
		c.policy = unhurried
	}
	f := &checked{
		store:  &ledger{Store: c.store, fail: map[string]error{}},
		server: webrisktest.Start(t),
		clock:  &clock{now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)},
	}
	checks := shortener.Checks{
		Reputation: f.server.Client(f.clock.read), Timeout: time.Minute,
		Price: price, Budget: 1_000_000, Calls: 2000, NetworkCalls: 500, ClientCalls: 100,
	}
	if c.change != nil {
		c.change(&checks)
	}
	if err := checks.Validate(); err != nil {
		t.Fatal(err)
	}
	f.Service = shortener.New(shortener.Config{Store: f.store, Policy: c.policy, Checks: &checks, Now: f.clock.read})
	return f
}

func (f *checked) pass(d time.Duration) { f.clock.set(f.clock.read().Add(d)) }

func (f *checked) make(who quota.Client, url string) error {
	_, err := f.Create(context.Background(), who, shortener.NewLink{URL: url}, "")
	return err
}

func (f *checked) wantAsked(t *testing.T, want int) {
	t.Helper()
	if asked := f.server.Asked(); len(asked) != want {
		t.Errorf("%d calls, want %d: %v", len(asked), want, asked)
	}
}

// wantPaid says how many calls were paid for today and how many are still held, by
// the service's money and calls and by the client's.
func (f *checked) wantPaid(t *testing.T, who quota.Client, used, held int64) {
	t.Helper()
	day := quota.DayOf(f.clock.read()).Label
	secret, err := f.store.EnsureSecret(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := f.store.Counts(t.Context(), []quota.Counter{
		{Level: shortener.LevelCheckBudget, Period: day}, {Level: shortener.LevelCheckCalls, Period: day},
		{Level: shortener.LevelCheckNetwork, Subject: secret.Subject(quota.LevelNetwork, who.Network()), Period: day},
		{Level: shortener.LevelCheckClient, Subject: who.Creator(secret), Period: day},
	})
	if err != nil {
		t.Fatal(err)
	}
	one := quota.Count{Used: used, Held: held}
	if want := []quota.Count{{Used: price * used, Held: price * held}, one, one, one}; !slices.Equal(counts, want) {
		t.Errorf("paid %+v, want %+v", counts, want)
	}
}

func (f *checked) wantMade(t *testing.T, want int64) {
	t.Helper()
	if u, err := f.Budget(t.Context()); err != nil || u.Used != want {
		t.Errorf("%d links, %v, want %d", u.Used, err, want)
	}
}

func wantErr(t *testing.T, got, want error) {
	t.Helper()
	if want == nil && got != nil || !errors.Is(got, want) {
		t.Errorf("got the error %v, want %v", got, want)
	}
}

// wantLevel wants a refusal for want of calls.
func wantLevel(t *testing.T, got error, want quota.Level) {
	t.Helper()
	if exceeded, ok := errors.AsType[*quota.ExceededError](got); !ok || exceeded.Usage.Level != want {
		t.Errorf("got the error %v, want a refusal at level %s", got, want)
	}
}

func client(n int) quota.Client {
	return quota.ClientOf(netip.AddrFrom4([4]byte{192, 0, byte(n >> 8), byte(n)}))
}

// TestCheckOutcomes goes through the table of outcomes, under either policy: what
// becomes of the reservation, of the money, and of the link.
func TestCheckOutcomes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 13, 0, 0, 0, time.UTC)
	const charged, free = quota.Committed, quota.Released
	// For an answer that does not come; all others come in no time.
	const impatience = 100 * time.Millisecond
	for name, row := range map[string]struct {
		answer  func(*webrisktest.Server) webrisktest.Answer // nil is no server
		outcome shortener.CheckOutcome
		state   quota.State
		refuse  error // the creation's under either policy
		allow   error
	}{
		"safe":             {always(webrisktest.Safe), shortener.CheckSafe, charged, nil, nil},
		"dangerous":        {always(webrisktest.Dangerous(at)), shortener.CheckDangerous, charged, shortener.ErrBlockedDestination, shortener.ErrBlockedDestination},
		"garbage":          {always(webrisktest.Body("<html>")), shortener.CheckUnreadable, charged, shortener.ErrUnchecked, nil},
		"redirect":         {always(webrisktest.Status(301, "Location", "/")), shortener.CheckRejected, free, shortener.ErrUnchecked, nil},
		"bad request":      {always(webrisktest.Status(400)), shortener.CheckRejected, free, shortener.ErrUnchecked, nil},
		"wrong key":        {always(webrisktest.Status(403)), shortener.CheckRejected, free, shortener.ErrUnchecked, nil},
		"too many":         {always(webrisktest.Status(429, "Retry-After", "9")), shortener.CheckThrottled, free, shortener.ErrUnchecked, nil},
		"error":            {always(webrisktest.Status(500)), shortener.CheckFailed, free, shortener.ErrUnchecked, nil},
		"unavailable":      {always(webrisktest.Status(503)), shortener.CheckFailed, free, shortener.ErrUnchecked, nil},
		"bad gateway":      {always(webrisktest.Status(502)), shortener.CheckUnanswered, charged, shortener.ErrUnchecked, nil},
		"gateway timeout":  {always(webrisktest.Status(504)), shortener.CheckUnanswered, charged, shortener.ErrUnchecked, nil},
		"timeout":          {func(s *webrisktest.Server) webrisktest.Answer { return s.Silent }, shortener.CheckUnanswered, charged, shortener.ErrUnchecked, nil},
		"slow drip":        {func(s *webrisktest.Server) webrisktest.Answer { return s.Dripping }, shortener.CheckUnanswered, charged, shortener.ErrUnchecked, nil},
		"cut":              {always(webrisktest.Cut("HTTP/1.1 200 OK\r\n")), shortener.CheckUnanswered, charged, shortener.ErrUnchecked, nil},
		"nobody listening": {nil, shortener.CheckUnsent, free, shortener.ErrUnchecked, nil},
		"TLS failure":      {nil, shortener.CheckUnsent, free, shortener.ErrUnchecked, nil},
	} {
		for policy, want := range map[string]error{"refuse": row.refuse, "allow": row.allow} {
			t.Run(name+", "+policy, func(t *testing.T) {
				t.Parallel()
				f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) {
					c.AllowOnFailure = policy == "allow"
					switch name {
					case "timeout", "slow drip":
						c.Timeout = impatience
					case "nobody listening":
						c.Reputation = webrisk.New(webrisk.Config{URL: webrisktest.Nowhere(t), Now: time.Now})
					case "TLS failure":
						c.Reputation = webrisk.New(webrisk.Config{URL: overTLS(t), Now: time.Now})
					}
				}})
				if row.answer != nil {
					f.server.Set(row.answer(f.server))
				}
				wantErr(t, f.make(someone, "https://example.org/"), want)
				if states := f.store.states(t); !slices.Equal(states, []quota.State{row.state}) {
					t.Errorf("reservations %v, want one that is %s", states, row.state)
				}
				var paid, made, unchecked int64
				if row.state == charged {
					paid = 1
				}
				if want == nil {
					made = 1
				}
				if want == shortener.ErrUnchecked {
					unchecked = 1
				}
				f.wantPaid(t, someone, paid, 0)
				f.wantMade(t, made)
				report, err := f.CheckReport(t.Context())
				if err != nil || report.Ended[row.outcome] != 1 || report.Money.Used != price*paid {
					t.Errorf("report %+v, %v, want one %s", report, err, row.outcome)
				}
				if o := f.Outcomes(); o.Unchecked != unchecked || o.Unavailable != 0 || o.Created != made {
					t.Errorf("outcomes %+v", o)
				}
			})
		}
	}
}

func always(answer webrisktest.Answer) func(*webrisktest.Server) webrisktest.Answer {
	return func(*webrisktest.Server) webrisktest.Answer { return answer }
}

// overTLS is a server that speaks no TLS where it should.
func overTLS(t *testing.T) *url.URL {
	address := *webrisktest.Start(t).URL
	address.Scheme = "https"
	return &address
}

// TestOneHostOneCall makes 100 links to one host, half of them at once.
func TestOneHostOneCall(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{})
	f.server.Set(webrisktest.SafeFor(60))
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() { wantErr(t, f.make(client(i), fmt.Sprintf("https://example.org/%d", i)), nil) })
	}
	group.Wait()
	f.pass(time.Minute - time.Microsecond)
	for i := range 50 {
		wantErr(t, f.make(client(i), fmt.Sprintf("https://EXAMPLE.org/other/%d", i)), nil)
	}
	f.wantAsked(t, 1)
	f.wantMade(t, 100)
	f.pass(time.Microsecond) // as long as the service said
	wantErr(t, f.make(someone, "https://example.org/"), nil)
	f.wantAsked(t, 2)
	wantErr(t, f.make(someone, "https://sub.example.org/"), nil) // another host
	f.wantAsked(t, 3)
}

// TestDangerIsOfOneDestination sees that a dangerous page says nothing of others on
// its host, and for how long it holds.
func TestDangerIsOfOneDestination(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{})
	end := f.clock.read().Add(time.Hour)
	f.server.Set(webrisktest.Dangerous(end))
	for range 3 {
		wantErr(t, f.make(someone, "https://example.org/bad"), shortener.ErrBlockedDestination)
	}
	f.wantAsked(t, 1)
	f.server.Set(webrisktest.Safe)
	wantErr(t, f.make(someone, "https://example.org/good"), nil)
	f.wantAsked(t, 2)
	// Although the host has a safe page by now.
	wantErr(t, f.make(someone, "https://example.org/bad"), shortener.ErrBlockedDestination)
	f.wantAsked(t, 2)
	f.clock.set(end)
	wantErr(t, f.make(someone, "https://example.org/bad"), nil)
	f.wantAsked(t, 3)
}

// TestDangerousAtOnce asks about many pages of one host at once, each of them bad:
// each is judged by a call of its own.
func TestDangerousAtOnce(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{})
	f.server.Set(webrisktest.Dangerous(f.clock.read().Add(time.Hour)))
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			wantErr(t, f.make(client(i/2), fmt.Sprintf("https://example.org/%d", i/2)), shortener.ErrBlockedDestination)
		})
	}
	group.Wait()
	f.wantAsked(t, 10)
	f.wantMade(t, 0)
}
