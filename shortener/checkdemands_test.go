package shortener_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/boltstore"
	"snip/shortener/memstore"
	"snip/shortener/webrisk/webrisktest"
)

// TestDemandWaitsForItsCheck sends the same Idempotency-Key again while the first
// demand waits for its check, and after.
func TestDemandWaitsForItsCheck(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{})
	arrived, answered := make(chan struct{}), make(chan struct{})
	held := f.server.Held(answered, webrisktest.Safe)
	f.server.Set(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		held(w, r)
	})
	const key = "0123456789abcdef"
	wanted := shortener.NewLink{URL: "https://example.org/"}
	var group sync.WaitGroup
	var first shortener.Made
	group.Go(func() {
		var err error
		first, err = f.Create(t.Context(), someone, wanted, key)
		wantErr(t, err, nil)
	})
	<-arrived
	for name, row := range map[string]struct {
		who  quota.Client
		url  string
		key  shortener.IdempotencyKey
		want error
	}{
		"the same again":         {someone, wanted.URL, key, shortener.ErrInProgress},
		"from another network":   {client(500), wanted.URL, key, shortener.ErrInProgress},
		"with another payload":   {someone, "https://else.example/", key, shortener.ErrInProgress},
		"of an API key's holder": {quota.ClientOfKey(quota.Key{ID: 7, Limit: 9}), "https://known.example/", key, nil},
		"with another key":       {someone, "https://known.example/", "another-key-of-16", nil},
	} {
		if row.want == nil {
			f.server.Set(webrisktest.Safe)
		}
		if _, err := f.Create(t.Context(), row.who, shortener.NewLink{URL: row.url}, row.key); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", name, err, row.want)
		}
	}
	if _, err := f.CreateBatch(t.Context(), someone, []shortener.NewLink{{URL: "https://known.example/"}}, key); err != nil {
		t.Errorf("a batch shares no keys with single links: %v", err)
	}
	close(answered)
	group.Wait()
	again, err := f.Create(t.Context(), client(500), wanted, key)
	if err != nil || again.Link.Slug != first.Link.Slug || again.Token != first.Token {
		t.Errorf("again %+v, %v, want %+v", again, err, first)
	}
	if _, err := f.Create(t.Context(), someone, shortener.NewLink{URL: "https://else.example/"}, key); !errors.Is(err, shortener.ErrKeyReused) {
		t.Errorf("another payload: %v", err)
	}
	f.wantAsked(t, 2)
	f.wantMade(t, 4)
}

// TestFailedDemandsWaitNoMore sends the same Idempotency-Key again after a check that has
// failed.
func TestFailedDemandsWaitNoMore(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{})
	again := func(want error) {
		t.Helper()
		_, err := f.Create(t.Context(), someone, shortener.NewLink{URL: "https://example.org/"}, "0123456789abcdef")
		wantErr(t, err, want)
	}
	f.server.Set(webrisktest.Status(500))
	again(shortener.ErrUnchecked)
	again(shortener.ErrUnchecked)
	f.server.Set(webrisktest.Safe)
	again(nil)
	f.wantAsked(t, 3)
	f.wantMade(t, 1)
}

// TestReplayIsNotChecked gives a link again whose destination is dangerous by now,
// and whose budget is spent.
func TestReplayIsNotChecked(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) { c.Budget = price }})
	wanted := shortener.NewLink{URL: "https://example.org/"}
	for range 3 {
		_, err := f.Create(t.Context(), someone, wanted, "0123456789abcdef")
		wantErr(t, err, nil)
		f.server.Set(webrisktest.Dangerous(f.clock.read().Add(24 * time.Hour)))
		f.pass(time.Hour)
	}
	f.wantAsked(t, 1)
	f.wantMade(t, 1)
}

// TestChangesAreChecked changes destinations of a link that is there.
func TestChangesAreChecked(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) { c.ClientCalls, c.NetworkCalls = 3, 6 }})
	made, err := f.Create(t.Context(), someone, shortener.NewLink{URL: "https://example.org/"}, "")
	if err != nil {
		t.Fatal(err)
	}
	change := func(token shortener.Token, to string) error {
		_, err := f.Change(t.Context(), made.Link.Slug, shortener.Holder{Token: token, Client: someone}, shortener.Changed{URL: &to})
		return err
	}
	wantErr(t, change("another-token", "https://two.example/"), shortener.ErrNotYours)
	f.pass(time.Hour)
	wantErr(t, change(made.Token, "https://example.org/"), nil) // as it was
	forward := true
	if _, err := f.Change(t.Context(), made.Link.Slug, shortener.Holder{Token: made.Token}, shortener.Changed{ForwardQuery: &forward}); err != nil {
		t.Error(err)
	}
	f.wantAsked(t, 1)
	wantErr(t, change(made.Token, "https://two.example/"), nil)
	f.server.Set(webrisktest.Dangerous(f.clock.read().Add(time.Hour)))
	wantErr(t, change(made.Token, "https://bad.example/"), shortener.ErrBlockedDestination)
	wantLevel(t, change(made.Token, "https://three.example/"), shortener.LevelCheckClient)
	f.wantPaid(t, someone, 3, 0)
	link, err := f.Link(t.Context(), made.Link.Slug)
	if err != nil || link.Destination != "https://two.example/" {
		t.Errorf("it leads to %s, %v", link.Destination, err)
	}
	if _, err := f.TakeDown(t.Context(), shortener.Selection{Slug: made.Link.Slug}, shortener.Reasons[0], ""); err != nil {
		t.Fatal(err)
	}
	wantErr(t, change(made.Token, "https://four.example/"), shortener.ErrLocked)
	f.wantAsked(t, 3)
}

// TestBatchIsChecked makes batches: each distinct destination is judged once, each
// dangerous item is named, and then none is made.
func TestBatchIsChecked(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{})
	var links []shortener.NewLink
	for i := range 100 {
		links = append(links, shortener.NewLink{URL: fmt.Sprintf("https://%d.example/%d", i%20, i%40)})
	}
	if made, err := f.CreateBatch(t.Context(), someone, links, ""); err != nil || len(made) != 100 {
		t.Errorf("%d made, %v", len(made), err)
	}
	f.wantAsked(t, 20)
	f.wantPaid(t, someone, 20, 0)

	danger := webrisktest.Dangerous(f.clock.read().Add(time.Hour))
	f.server.Set(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Query().Get("uri"), "bad") {
			danger(w, r)
			return
		}
		webrisktest.Safe(w, r)
	})
	_, err := f.CreateBatch(t.Context(), someone, []shortener.NewLink{
		{URL: "https://fine.example/"}, {URL: "https://bad.example/"}, {URL: "https://1.example/"}, {URL: "https://worse.example/bad"}, {URL: "https://bad.example/"},
	}, "")
	batch, ok := errors.AsType[*shortener.BatchError](err)
	if !ok {
		t.Fatal(err)
	}
	var indexes []int
	for _, item := range batch.Items {
		indexes = append(indexes, item.Index)
		wantErr(t, item.Err, shortener.ErrBlockedDestination)
	}
	if !slices.Equal(indexes, []int{1, 3, 4}) {
		t.Errorf("named %v, want 1, 3 and 4", indexes)
	}
	f.wantAsked(t, 23)
	f.wantMade(t, 100)

	// One that cannot be asked about refuses all.
	f.server.Set(webrisktest.Status(500))
	_, err = f.CreateBatch(t.Context(), someone, []shortener.NewLink{{URL: "https://fine.example/"}, {URL: "https://new.example/"}}, "")
	wantErr(t, err, shortener.ErrUnchecked)
	f.wantMade(t, 100)
}

// TestBatchTakesNoLongerThan bounds the time that the checks of one demand take,
// and begins no call afterwards.
func TestBatchTakesNoLongerThan(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]error{"refuse": shortener.ErrUnchecked, "allow": nil} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			s := shortener.New(shortener.Config{Store: memstore.New(), Policy: unhurried, Now: time.Now, Checks: &shortener.Checks{
				Reputation: judge(func(context.Context, string) (shortener.Verdict, error) {
					calls.Add(1)
					<-time.After(9 * time.Second) // of the bubble's own clock
					return shortener.Verdict{}, nil
				}),
				AllowOnFailure: policy == "allow",
				Timeout:        10 * time.Second, Price: price, Budget: 1_000_000, Calls: 200, NetworkCalls: 200, ClientCalls: 200,
			}})
			var links []shortener.NewLink
			for i := range 100 {
				links = append(links, shortener.NewLink{URL: fmt.Sprintf("https://%d.example/", i)})
			}
			begun := time.Now()
			_, err := s.CreateBatch(t.Context(), someone, links, "")
			wantErr(t, err, want)
			if took := time.Since(begun); took != 20*time.Second || calls.Load() != 24 {
				t.Errorf("%s: took %v and %d calls, want 20 s and 24", policy, took, calls.Load())
			}
			<-time.After(time.Minute) // until the last calls have ended
			if calls.Load() != 24 {
				t.Errorf("%s: %d calls in the end", policy, calls.Load())
			}
		})
	}
}

// TestImportsAreNotChecked imports a link: it is the operator's.
func TestImportsAreNotChecked(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{})
	f.server.Set(webrisktest.Dangerous(f.clock.read().Add(time.Hour)))
	old := shortener.Link{Slug: "old-1", Destination: "https://old.example/", CreatedAt: f.clock.read()}
	if refused, err := f.Import(t.Context(), []shortener.Managed{{Link: old}}, 0); err != nil || refused[0] != nil {
		t.Errorf("%v, %v", refused, err)
	}
	f.wantAsked(t, 0)
}

// TestMoneyIsNeverUndercounted lets a server do whatever it likes, and clients come
// at once: what is used and held is never less than what the server may bill, and
// never more than the budget. It runs on the file that ships.
func TestMoneyIsNeverUndercounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := 0
	rapid.Check(t, func(r *rapid.T) {
		files++
		store, err := boltstore.Open(filepath.Join(dir, fmt.Sprint(files)), boltstore.Options{})
		if err != nil {
			r.Fatal(err)
		}
		defer store.Close()
		budget := rapid.Int64Range(1, 12).Draw(r, "calls in the budget")
		f := newChecked(t, checkedSetup{store: store, change: func(c *shortener.Checks) {
			c.Budget = price*budget + price/2
			c.AllowOnFailure = rapid.Bool().Draw(r, "allow")
			c.Timeout = 50 * time.Millisecond
		}})
		answers := []struct {
			billed bool
			answer webrisktest.Answer
		}{
			{true, webrisktest.Safe}, {true, webrisktest.Dangerous(f.clock.read().Add(time.Hour))}, {true, webrisktest.Body("?")},
			{true, webrisktest.Cut("HTTP/1.1 200 OK\r\n")}, {true, webrisktest.Status(502)}, {true, f.server.Silent},
			{false, webrisktest.Status(400)}, {false, webrisktest.Status(429)}, {false, webrisktest.Status(503)},
		}
		var mu sync.Mutex
		var billed, turn int64
		kinds := rapid.SliceOfN(rapid.IntRange(0, len(answers)-1), 1, 40).Draw(r, "answers")
		f.server.Set(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			a := answers[kinds[turn%int64(len(kinds))]]
			turn++
			if a.billed {
				billed++
			}
			mu.Unlock()
			a.answer(w, r)
		})
		money := func() (paid, atLeast int64) {
			// What the server has seen is read first: what is paid may only grow meanwhile.
			mu.Lock()
			atLeast = billed * price
			mu.Unlock()
			report, err := f.CheckReport(t.Context())
			if err != nil {
				r.Fatal(err)
			}
			return report.Money.Taken(), atLeast
		}
		for round := range rapid.IntRange(1, 4).Draw(r, "rounds") {
			f.store.setFailing("settle", nil)
			if rapid.IntRange(0, 3).Draw(r, "the store fails") == 0 {
				f.store.setFailing("settle", errors.New("broken"))
			}
			var group sync.WaitGroup
			for i := range rapid.IntRange(1, 8).Draw(r, "clients at once") {
				group.Go(func() { _ = f.make(client(i), fmt.Sprintf("https://%d.%d.example/", i, round)) })
			}
			group.Wait()
			if paid, atLeast := money(); paid < atLeast || paid > price*budget {
				r.Fatalf("round %d: %d are used and held, want %d to %d", round, paid, atLeast, price*budget)
			}
			f.pass(31 * time.Second)
			if rapid.Bool().Draw(r, "settle") {
				if err := f.SettleExpired(t.Context()); err != nil {
					r.Fatal(err)
				}
			}
		}
		f.pass(time.Hour)
		if err := f.SettleExpired(t.Context()); err != nil {
			r.Fatal(err)
		}
		paid, atLeast := money()
		report, err := f.CheckReport(t.Context())
		if err != nil || report.Money.Held != 0 || paid < atLeast || paid > price*budget {
			r.Fatalf("in the end %+v, %v, want %d to %d", report.Money, err, atLeast, price*budget)
		}
	})
}
