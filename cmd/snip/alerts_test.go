package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/blocklist"
	"snip/shortener/memstore"
	"snip/web/admin"
)

// troubled is a store that can be told to fail.
type troubled struct {
	shortener.Store
	err atomic.Pointer[error]
}

// set makes it fail with err, or work where that is nil.
func (s *troubled) set(err error) { s.err.Store(&err) }

func (s *troubled) Ready(ctx context.Context, day string) error { return *s.err.Load() }

func (s *troubled) Delivered(ctx context.Context, id string) error {
	if err := *s.err.Load(); err != nil {
		return err
	}
	return s.Store.Delivered(ctx, id)
}

func (s *troubled) Post(ctx context.Context, n shortener.Notice) error {
	if err := *s.err.Load(); err != nil {
		return err
	}
	return s.Store.Post(ctx, n)
}

// A fault is told of at once and then once an hour, also while the store can keep
// nothing; what cannot be delivered is tried again, less and less often.
func TestAlerts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &troubled{Store: memstore.New()}
		store.set(nil)
		service := shortener.New(shortener.Config{Store: store, Policy: quota.Policy{Service: 2}, Now: time.Now})
		var (
			mu       sync.Mutex
			down     bool
			attempts int
			got      []string
			lists    []blocklist.Status
		)
		a := &alerts{
			service: service,
			blocklists: func() []blocklist.Status {
				mu.Lock()
				defer mu.Unlock()
				return lists
			},
			log:     slog.New(slog.DiscardHandler),
			leads:   func() bool { return true },
			now:     time.Now,
			told:    map[string]time.Time{},
			logged:  map[string]bool{},
			arrived: map[string]bool{},
			send: func(_ context.Context, n shortener.Notice) error {
				mu.Lock()
				defer mu.Unlock()
				attempts++
				if down {
					return errors.New("down")
				}
				got = append(got, n.Kind)
				return nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { a.run(ctx) })
		after := func(d time.Duration, want ...string) {
			t.Helper()
			<-time.After(d) // the clock of the bubble
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("after %v: %v, want %v", d, got, want)
			}
			got = nil
		}
		after(time.Minute)
		who := quota.Client{}
		create := func() {
			t.Helper()
			if _, err := service.Create(t.Context(), who, shortener.NewLink{URL: "https://example.org/"}, ""); err != nil {
				t.Fatal(err)
			}
		}
		create()
		after(2*time.Second, "budget")
		create()
		after(time.Hour, "budget")

		store.set(fmt.Errorf("%w: it is full", shortener.ErrUnavailable))
		after(2*time.Second, "store")
		after(59 * time.Minute)
		after(2*time.Minute, "store")
		store.set(quota.ErrClock)
		after(2*time.Second, "clock")
		store.set(nil)
		set := func(change func()) {
			mu.Lock()
			defer mu.Unlock()
			change()
		}
		set(func() { lists = []blocklist.Status{{Path: "hosts", Err: errors.New("gone")}} })
		after(2*time.Second, "blocklist")
		set(func() { lists, down, attempts = nil, true, 0 })
		store.set(fmt.Errorf("%w: it is full", shortener.ErrUnavailable))
		after(2 * time.Hour)
		if attempts < 15 || attempts > 20 { // some of an hour: the fault was told of not long ago
			t.Errorf("%d attempts in two hours", attempts)
		}
		store.set(nil)
		set(func() { down = false })
		after(lastRetry+time.Second, "store", "store") // each of its hours
		if stats := a.stats(); stats.Delivered != 8 || stats.Failed != int64(attempts-2) {
			t.Errorf("%+v after %d attempts", stats, attempts)
		}

		// What arrived and cannot be written down does not arrive again.
		if err := service.Post(t.Context(), shortener.Notice{ID: "2000-01-01/test/1", Kind: "test"}); err != nil {
			t.Fatal(err)
		}
		store.set(fmt.Errorf("%w: it is full", shortener.ErrUnavailable))
		after(10*time.Minute, "test")
		store.set(nil)
		after(10 * time.Minute)
		if waiting, err := service.Notices(t.Context(), 1); err != nil || len(waiting) > 0 {
			t.Errorf("%v wait, %v", waiting, err)
		}
		cancel()
		group.Wait()
	})
}

// Notices outlive a receiver that is down and the process, and arrive once.
func TestAlertsArriveOnce(t *testing.T) {
	t.Parallel()
	withinOneDay(t, func() error {
		dir := t.TempDir()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		address := listener.Addr().String()
		if err := listener.Close(); err != nil { // nobody is there for now
			return err
		}
		args := []string{"--throttle-every=0", "--quota-client=10", "--quota-network=10", "--quota-service=10", "--quota-newcomers=0",
			"--alert-webhook=http://" + address + "/hook#topic"}
		first := start(t, dir, args...)
		for range 8 {
			create(t, first, "https://example.org/")
		}
		if _, err := first.await("an alert could not be delivered"); err != nil {
			return err
		}
		first.kill()

		arrived := make(chan string, 100)
		receiver := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var n struct{ ID, Text, Content, Message, Topic string }
			if err := json.Unmarshal(body, &n); err != nil || n.Text == "" || n.Content != n.Text || n.Message != n.Text || n.Topic != "topic" || r.URL.Path != "/hook" {
				t.Errorf("%s %s: %v", r.URL, body, err)
			}
			arrived <- n.ID
		}))
		if receiver.Listener, err = net.Listen("tcp", address); err != nil {
			return err
		}
		receiver.Start()
		defer receiver.Close()
		second := start(t, dir, args...)
		create(t, second, "https://example.org/") // the ninth of ten
		var ids []string
		for range 3 {
			select {
			case id := <-arrived:
				_, share, _ := strings.Cut(id, "/")
				ids = append(ids, share)
			case <-time.After(patience):
				return fmt.Errorf("only %v arrived:\n%s", ids, second.log())
			}
		}
		if err := second.stop(); err != nil {
			return err
		}
		third := start(t, dir, args...)
		create(t, third, "https://example.org/")
		select {
		case id := <-arrived:
			_, share, _ := strings.Cut(id, "/")
			ids = append(ids, share)
		case <-time.After(patience):
			return fmt.Errorf("the last did not arrive:\n%s", third.log())
		}
		if err := third.stop(); err != nil {
			return err
		}
		if want := []string{"budget/50", "budget/80", "budget/90", "budget/100"}; !slices.Equal(ids, want) || len(arrived) > 0 {
			return fmt.Errorf("%v arrived and %d more, want %v", ids, len(arrived), want)
		}
		return nil
	})
}

// What the store itself finds is in the log, also where there is no webhook; once.
func TestNoticesOfTheStoreAreLogged(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	var log bytes.Buffer
	a := newAlerts(config{}, shortener.New(shortener.Config{Store: store, Now: time.Now}),
		blocklist.NewFiles(blocklist.Config{Now: time.Now}), func() bool { return true }, slog.New(slog.NewTextHandler(&log, nil)))
	for _, kind := range []string{shortener.KindBudget, shortener.KindOverrun, shortener.KindLate} {
		if err := store.Post(t.Context(), shortener.Notice{ID: "2026-11-29/" + kind + "/1", Kind: kind}); err != nil {
			t.Fatal(err)
		}
	}
	a.deliver(t.Context())
	a.deliver(t.Context())
	for _, id := range []string{"2026-11-29/budget/1", "2026-11-29/overrun/1", "2026-11-29/late-cost/1"} {
		if n := strings.Count(log.String(), "id="+id); n != 1 {
			t.Errorf("%s is logged %d times:\n%s", id, n, log.String())
		}
	}
}

// Wrong admin tokens are told of when they are more than slips of the finger.
func TestAlertOfWrongTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		a := newAlerts(config{}, shortener.New(shortener.Config{Store: memstore.New(), Now: time.Now}),
			blocklist.NewFiles(blocklist.Config{Now: time.Now}), func() bool { return true }, slog.New(slog.NewTextHandler(&log, nil)))
		a.tokens = &admin.TokensRefused{}
		after := func(wrong, throttled int64, want string) {
			t.Helper()
			a.tokens.Wrong.Add(wrong)
			a.tokens.Throttled.Add(throttled)
			a.look(t.Context())
			if got := log.String(); strings.Contains(got, "kind=token") != (want != "") || !strings.Contains(got, want) {
				t.Errorf("logged %q, want %q", got, want)
			}
			log.Reset()
		}
		after(manyTokens-1, 0, "")
		after(1, 0, "10 wrong tokens were shown")
		after(0, 10, "") // within the hour
		<-time.After(alertPause)
		after(3, 17, "20 wrong tokens were shown")
	})
}
