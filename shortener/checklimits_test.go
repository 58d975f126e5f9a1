package shortener_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/memstore"
	"snip/shortener/webrisk/webrisktest"
)

// judge is a Reputation of a test's own, for those that need no server.
type judge func(ctx context.Context, destination string) (shortener.Verdict, error)

func (j judge) Check(ctx context.Context, destination string) (shortener.Verdict, error) {
	return j(ctx, destination)
}

// TestClientLeavesAmid ends the request that began a call. The call goes on, is
// paid for, and serves whoever else waits for it.
func TestClientLeavesAmid(t *testing.T) {
	t.Parallel()
	for _, others := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			calls, answered := 0, make(chan struct{})
			store := &ledger{Store: memstore.New(), fail: map[string]error{}}
			s := shortener.New(shortener.Config{Store: store, Policy: unhurried, Now: time.Now, Checks: &shortener.Checks{
				Reputation: judge(func(ctx context.Context, _ string) (shortener.Verdict, error) {
					calls++
					select {
					case <-answered:
						return shortener.Verdict{Until: time.Now().Add(time.Minute)}, nil
					case <-ctx.Done():
						return shortener.Verdict{}, &shortener.CheckError{Outcome: shortener.CheckUnanswered, Err: ctx.Err()}
					}
				}),
				Timeout: time.Minute, Price: price, Budget: price, Calls: 1, NetworkCalls: 1, ClientCalls: 1,
			}})
			ctx, leave := context.WithCancel(t.Context())
			var group sync.WaitGroup
			group.Go(func() {
				_, err := s.Create(ctx, client(0), shortener.NewLink{URL: "https://example.org/"}, "")
				wantErr(t, err, context.Canceled)
			})
			synctest.Wait()
			for i := range others {
				group.Go(func() {
					_, err := s.Create(t.Context(), client(i+1), shortener.NewLink{URL: "https://example.org/" + fmt.Sprint(i)}, "")
					wantErr(t, err, nil)
				})
			}
			synctest.Wait()
			leave()
			synctest.Wait()
			close(answered)
			group.Wait()
			synctest.Wait()
			if calls != 1 {
				t.Errorf("%d calls, want 1", calls)
			}
			if states := store.states(t); !slices.Equal(states, []quota.State{quota.Committed}) {
				t.Errorf("reservations %v, want one that is committed", states)
			}
			// Nothing of it is a fault that operators are told of.
			if o := s.Outcomes(); o.Withdrawn != 1 || o.Unavailable != 0 || o.Unchecked != 0 || s.Unchecked().Number != 0 {
				t.Errorf("outcomes %+v, and %+v unchecked", o, s.Unchecked())
			}
			if u, err := s.Budget(t.Context()); err != nil || u.Used != int64(others) {
				t.Errorf("%d links, %v, want %d", u.Used, err, others)
			}
		})
	}
}

// slowStore holds each look at the money up until it is let on.
type slowStore struct {
	*ledger
	on chan struct{}
}

func (s slowStore) Counts(ctx context.Context, counters []quota.Counter) ([]quota.Count, error) {
	if counters[0].Level == shortener.LevelCheckBudget {
		<-s.on
	}
	return s.ledger.Counts(ctx, counters)
}

// TestOneAtItsLimitHindersNobody lets a client that may ask no more begin a call
// which others have joined: they go on without it.
func TestOneAtItsLimitHindersNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := slowStore{&ledger{Store: memstore.New(), fail: map[string]error{}}, make(chan struct{})}
		s := shortener.New(shortener.Config{Store: store, Policy: unhurried, Now: time.Now, Checks: &shortener.Checks{
			Reputation: judge(func(context.Context, string) (shortener.Verdict, error) {
				return shortener.Verdict{Until: time.Now().Add(time.Minute)}, nil
			}),
			Timeout: time.Second, Price: price, Budget: 1_000_000, Calls: 100, NetworkCalls: 100, ClientCalls: 1,
		}})
		make := func(who quota.Client, url string) error {
			_, err := s.Create(t.Context(), who, shortener.NewLink{URL: url}, "")
			return err
		}
		var group sync.WaitGroup
		group.Go(func() { wantErr(t, make(client(0), "https://one.example/"), nil) })
		store.on <- struct{}{}
		group.Wait()
		group.Go(func() { wantLevel(t, make(client(0), "https://two.example/"), shortener.LevelCheckClient) })
		synctest.Wait()
		for i := range 3 {
			group.Go(func() { wantErr(t, make(client(i+1), "https://two.example/"), nil) })
		}
		synctest.Wait()
		close(store.on)
		group.Wait()
		if states := store.states(t); !slices.Equal(states, []quota.State{quota.Committed, quota.Committed}) {
			t.Errorf("reservations %v, want two that are committed", states)
		}
	})
}

// TestMoneySpent spends the day's money, or calls: then creation stops or goes on,
// as it was set, and nothing more is spent until the next day.
func TestMoneySpent(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*shortener.Checks){
		"money": func(c *shortener.Checks) { c.Budget = 3*price - 1 },
		"calls": func(c *shortener.Checks) { c.Calls, c.NetworkCalls, c.ClientCalls = 2, 2, 2 },
	} {
		for policy, want := range map[string]error{"refuse": shortener.ErrUnchecked, "allow": nil} {
			t.Run(name+", "+policy, func(t *testing.T) {
				t.Parallel()
				f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) {
					limit(c)
					c.AllowOnFailure = policy == "allow"
				}})
				made := int64(2)
				for i := range 10 {
					var expected error
					if i >= 2 {
						if expected = want; want == nil {
							made++
						}
					}
					wantErr(t, f.make(client(i<<8), fmt.Sprintf("https://%d.example/", i)), expected)
				}
				f.wantAsked(t, 2)
				f.wantMade(t, made)
				wantErr(t, f.make(client(99), "https://0.example/again"), nil) // which is known
				report, err := f.CheckReport(t.Context())
				if err != nil || report.Money != (quota.Count{Used: 2 * price}) || report.Called != (quota.Count{Used: 2}) {
					t.Errorf("report %+v, %v", report, err)
				}
				if policy == "allow" && report.Unchecked != 8 {
					t.Errorf("%d were unchecked, want 8", report.Unchecked)
				}
				f.pass(12 * time.Hour)
				wantErr(t, f.make(client(0), "https://11.example/"), nil)
				f.wantAsked(t, 3)
			})
		}
	}
}

// TestCallsOfOneSpent spends the calls of a client and of a network: they are
// refused under either policy, others are not, and what is known they may link to.
func TestCallsOfOneSpent(t *testing.T) {
	t.Parallel()
	for _, allow := range []bool{false, true} {
		f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) {
			c.ClientCalls, c.NetworkCalls, c.AllowOnFailure = 2, 5, allow
		}})
		ask := func(who quota.Client, host int) error { return f.make(who, fmt.Sprintf("https://%d.example/", host)) }
		for host := range 2 {
			wantErr(t, ask(client(1), host), nil)
		}
		for host := range 20 {
			wantLevel(t, ask(client(1), 100+host), shortener.LevelCheckClient)
		}
		wantErr(t, ask(client(1), 0), nil)
		wantErr(t, ask(client(2), 2), nil)
		wantErr(t, ask(client(2), 3), nil)
		wantErr(t, ask(client(3), 4), nil)
		wantLevel(t, ask(client(3), 5), shortener.LevelCheckNetwork)
		wantErr(t, ask(client(1<<8), 5), nil) // of another network
		f.wantAsked(t, 6)
		if o := f.Outcomes(); o.Created != 7 || o.Unchecked != 21 || o.Unavailable != 0 {
			t.Errorf("outcomes %+v", o)
		}
		f.pass(12 * time.Hour)
		wantErr(t, ask(client(1), 6), nil)
	}
}

// TestRefusedByReading spends the money and sees that what is refused then waits
// for no write.
func TestRefusedByReading(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) { c.Budget = price }})
	wantErr(t, f.make(someone, "https://one.example/"), nil)
	f.store.setFailing("reserve", errors.New("nobody should write"))
	if err := f.make(someone, "https://two.example/"); !errors.Is(err, shortener.ErrUnchecked) {
		t.Errorf("got %v, want ErrUnchecked", err)
	}
}

// TestNewcomersKeepTheLastCalls lets two networks ask for all they can: the last
// tenth of the day's calls is left to others, a call each.
func TestNewcomersKeepTheLastCalls(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) { c.Budget = 20 * price }})
	hosts := 0
	ask := func(who quota.Client) error {
		hosts++
		return f.make(who, fmt.Sprintf("https://%d.example/", hosts))
	}
	for i := range 30 {
		err := ask(client(i%2<<8 + i))
		var want error
		if i >= 18 {
			want = shortener.ErrUnchecked
		}
		wantErr(t, err, want)
	}
	f.wantAsked(t, 18)
	wantErr(t, ask(client(7<<8)), nil)
	wantErr(t, ask(client(7<<8)), shortener.ErrUnchecked)
	wantErr(t, ask(client(7<<8+1)), shortener.ErrUnchecked) // of the same network
	wantErr(t, ask(quota.ClientOfKey(quota.Key{ID: 7, Limit: 9})), nil)
	wantErr(t, ask(client(8<<8)), shortener.ErrUnchecked) // now all are gone
	f.wantAsked(t, 20)
}

// TestGrantedMoreCalls gives an address and a key more links than others have, and
// so as many calls.
func TestGrantedMoreCalls(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{policy: quota.Policy{Client: 2, Service: 100}, change: func(c *shortener.Checks) { c.ClientCalls, c.NetworkCalls = 2, 50 }})
	if _, err := f.PutOverride(t.Context(), shortener.Override{Target: someone.String(), Limit: 4}); err != nil {
		t.Fatal(err)
	}
	for i, who := range []quota.Client{someone, quota.ClientOfKey(quota.Key{ID: 7, Limit: 4}), client(900)} {
		made := 0
		for n := range 6 {
			if f.make(who, fmt.Sprintf("https://%d.%d.example/", n, i)) == nil {
				made++
			}
		}
		if want := []int{4, 4, 2}[i]; made != want {
			t.Errorf("%s has made %d links, want %d", who, made, want)
		}
	}
	f.wantAsked(t, 10)
}

// TestRefusedForFree goes through what is refused before any money is spent.
func TestRefusedForFree(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{policy: quota.Policy{Client: 2, Service: 3}})
	for _, url := range []string{"https://example.org/", "https://example.net/"} {
		wantErr(t, f.make(someone, url), nil)
	}
	f.wantAsked(t, 2)
	for name, row := range map[string]struct {
		who  quota.Client
		url  string
		want error
	}{
		"at its quota":      {someone, "https://full.example/", quota.ErrExceeded},
		"no destination":    {client(1), "nonsense", shortener.ErrInvalidURL},
		"a private address": {client(1), "http://127.0.0.1/", shortener.ErrBlockedDestination},
		"a blocked host":    {client(1), "https://blocked.example/", shortener.ErrBlockedDestination},
		"a blocked client":  {client(2), "https://else.example/", shortener.ErrBlocked},
	} {
		if _, err := f.AddBlock(t.Context(), "blocked.example", ""); err != nil && !errors.Is(err, shortener.ErrEntryExists) {
			t.Fatal(err)
		}
		if _, err := f.PutOverride(t.Context(), shortener.Override{Target: client(2).String(), Limit: 0}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := f.make(row.who, row.url); !errors.Is(err, row.want) {
				t.Errorf("%s: %v, want %v", name, err, row.want)
			}
		}
	}
	f.store.setFailing("reserve", errors.New("a refusal for free reserves nothing"))
	batch := []shortener.NewLink{{URL: "https://a.example/"}, {URL: "https://b.example/"}, {URL: "https://c.example/"}}
	if _, err := f.CreateBatch(t.Context(), client(1), batch[:2], ""); !errors.Is(err, quota.ErrExceeded) {
		t.Errorf("a batch with too few units left: %v", err)
	}
	if _, err := f.CreateBatch(t.Context(), client(1), batch, ""); !errors.Is(err, shortener.ErrBatchTooLarge) {
		t.Errorf("a batch that is larger than a day: %v", err)
	}
	f.wantAsked(t, 2)
}

// TestCircuit lets calls fail in a row: then nothing is sent for a while, and after
// it one more failure is enough.
func TestCircuit(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{})
	hosts := 0
	ask := func(want error) {
		t.Helper()
		hosts++
		wantErr(t, f.make(someone, fmt.Sprintf("https://%d.example/", hosts)), want)
	}
	f.server.Set(webrisktest.Status(400))
	for range 9 { // a stranger who finds what the service does not like must not open it
		ask(shortener.ErrUnchecked)
	}
	f.wantAsked(t, 9)
	f.server.Set(webrisktest.Status(500))
	for range 4 {
		ask(shortener.ErrUnchecked)
	}
	f.server.Set(webrisktest.Safe)
	ask(nil) // which ends the row
	f.server.Set(webrisktest.Status(500))
	for range 10 {
		ask(shortener.ErrUnchecked)
	}
	f.wantAsked(t, 9+4+1+5)
	f.pass(30 * time.Second)
	f.server.Set(webrisktest.Safe)
	ask(nil)
	f.server.Set(webrisktest.Status(500))
	for range 4 {
		ask(shortener.ErrUnchecked)
	}
	f.server.Set(webrisktest.Status(400)) // which says nothing of the row
	ask(shortener.ErrUnchecked)
	f.server.Set(webrisktest.Status(500))
	ask(shortener.ErrUnchecked)
	ask(shortener.ErrUnchecked)
	f.wantAsked(t, 19+1+4+1+1)
	wantErr(t, f.make(someone, "https://14.example/"), nil) // which is known
	report, err := f.CheckReport(t.Context())
	if want := f.clock.read().Add(30 * time.Second); err != nil || !report.PausedUntil.Equal(want) {
		t.Errorf("paused until %v, %v, want %v", report.PausedUntil, err, want)
	}
	f.pass(30 * time.Second)
	ask(shortener.ErrUnchecked)
	ask(shortener.ErrUnchecked)
	f.wantAsked(t, 27)
	f.pass(30 * time.Second)
	f.server.Set(webrisktest.Safe)
	ask(nil)
	ask(nil)
	f.wantAsked(t, 29)
	f.server.Set(webrisktest.Status(429, "Retry-After", "600"))
	ask(shortener.ErrUnchecked)
	f.pass(10*time.Minute - time.Microsecond)
	ask(shortener.ErrUnchecked)
	f.wantAsked(t, 30)
	f.server.Set(webrisktest.Safe)
	f.pass(time.Microsecond)
	ask(nil)
	f.wantAsked(t, 31)
	f.server.Set(webrisktest.Status(429, "Retry-After", "3600"))
	ask(shortener.ErrUnchecked)
	f.clock.set(f.clock.read().Add(-4 * time.Hour)) // which would be five hours of it
	f.server.Set(webrisktest.Safe)
	ask(nil)
}

// TestStoreFailsAroundACall lets the store fail before and after a call.
func TestStoreFailsAroundACall(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, allow := range []bool{false, true} {
		f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) { c.AllowOnFailure = allow }})
		f.store.setFailing("reserve", broken)
		err := f.make(someone, "https://example.org/")
		if wantErr(t, err, shortener.ErrUnavailable); errors.Is(err, shortener.ErrUnchecked) {
			t.Errorf("a store that cannot count is no matter of the policy: %v", err)
		}
		f.wantAsked(t, 0)
		f.wantMade(t, 0)
		f.store.setFailing("reserve", nil)

		// After the call, whose verdict is there all the same.
		f.store.setFailing("settle", broken)
		wantErr(t, f.make(someone, "https://example.org/"), nil)
		f.server.Set(webrisktest.Status(500)) // this one was free
		_ = f.make(someone, "https://free.example/")
		f.wantPaid(t, someone, 0, 2)
		f.store.setFailing("settle", nil)
		f.pass(time.Minute + 10*time.Second - time.Microsecond)
		if err := f.SettleExpired(t.Context()); err != nil {
			t.Error(err)
		}
		f.wantPaid(t, someone, 0, 2) // held until then
		f.pass(time.Microsecond)
		if err := f.SettleExpired(t.Context()); err != nil {
			t.Error(err)
		}
		f.wantPaid(t, someone, 2, 0) // never too little
		if report, err := f.CheckReport(t.Context()); err != nil || report.Unsettled != 2 {
			t.Errorf("%+v, %v, want 2 unsettled", report, err)
		}
	}
}

// TestPanicInACall lets whoever is asked panic, beside all requests: the link is
// refused, the price is charged in the end, and the program goes on.
func TestPanicInACall(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) {
		c.Reputation = judge(func(context.Context, string) (shortener.Verdict, error) { panic("odd") })
	}})
	wantErr(t, f.make(someone, "https://example.org/"), shortener.ErrUnchecked)
	f.wantPaid(t, someone, 0, 1)
	f.pass(time.Hour)
	if err := f.SettleExpired(t.Context()); err != nil {
		t.Error(err)
	}
	f.wantPaid(t, someone, 1, 0)
}

// TestLateResult lets a call take longer than its reservation lasts: what came of it
// replaces what expiry has charged.
func TestLateResult(t *testing.T) {
	t.Parallel()
	var f *checked
	results := map[string]error{
		"https://rejected.example/": &shortener.CheckError{Outcome: shortener.CheckRejected, Err: errors.New("odd")},
		"https://safe.example/":     nil,
	}
	f = newChecked(t, checkedSetup{change: func(c *shortener.Checks) {
		c.Reputation = judge(func(_ context.Context, destination string) (shortener.Verdict, error) {
			f.pass(time.Hour)
			if err := f.SettleExpired(context.Background()); err != nil {
				t.Error(err)
			}
			f.wantPaid(t, someone, 1, 0)
			return shortener.Verdict{}, results[destination]
		})
	}})
	wantErr(t, f.make(someone, "https://rejected.example/"), shortener.ErrUnchecked)
	f.wantPaid(t, someone, 0, 0)
	wantErr(t, f.make(someone, "https://safe.example/"), nil)
	f.wantPaid(t, someone, 1, 0)
	list, err := f.Reservations(t.Context(), 10)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for _, r := range list {
		if r.Expired || r.UpdatedAt.Sub(r.CreatedAt) != time.Hour {
			t.Errorf("%+v is kept", r)
		}
	}
}

// TestSettlesManyExpired settles more than one commit holds.
func TestSettlesManyExpired(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) { c.ClientCalls = 500 }})
	f.store.setFailing("settle", errors.New("broken"))
	for i := range 250 {
		wantErr(t, f.make(someone, fmt.Sprintf("https://%d.example/", i)), nil)
	}
	f.wantPaid(t, someone, 0, 250)
	f.pass(time.Hour)
	if err := f.SettleExpired(t.Context()); err != nil {
		t.Error(err)
	}
	f.wantPaid(t, someone, 250, 0)
}

// TestChecksThatCostNothing checks for free, by the number of calls alone.
func TestChecksThatCostNothing(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) { c.Price, c.Calls, c.NetworkCalls, c.ClientCalls = 0, 2, 2, 2 }})
	for i, want := range []error{nil, nil, shortener.ErrUnchecked} {
		wantErr(t, f.make(client(i<<8), fmt.Sprintf("https://%d.example/", i)), want)
	}
	if report, err := f.CheckReport(t.Context()); err != nil || report.Money != (quota.Count{}) || report.Called != (quota.Count{Used: 2}) || report.DayAtMost() != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
