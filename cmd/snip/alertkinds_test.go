package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/blocklist"
	"snip/shortener/memstore"
	"snip/web/admin"
)

// faulty is a store of which single parts can be told to fail.
type faulty struct {
	shortener.Store
	ready, create error
	health        shortener.Health
}

func (s *faulty) Ready(context.Context, string) error { return s.ready }
func (s *faulty) Health() shortener.Health            { return s.health }

func (s *faulty) Create(ctx context.Context, c shortener.Creation) error {
	if s.create != nil {
		return s.create
	}
	return s.Store.Create(ctx, c)
}

// unreachable is a reputation service that cannot be asked.
type unreachable struct{}

func (unreachable) Check(context.Context, string) (shortener.Verdict, error) {
	return shortener.Verdict{}, &shortener.CheckError{Outcome: shortener.CheckFailed, Err: errors.New("unreachable")}
}

// Each fault raises the alert of its kind with its number, and no other: once, and again
// after an hour when it has happened again.
func TestEachFaultRaisesItsAlert(t *testing.T) {
	t.Parallel()
	type fixture struct {
		store  *faulty
		alerts *alerts
		lists  []blocklist.Status
		create func()
	}
	for kind, row := range map[string]struct {
		cause func(*fixture)
		text  string
	}{
		"store": {func(f *fixture) { f.store.ready = shortener.ErrUnavailable }, "Links cannot be made"},
		"clock": {func(f *fixture) { f.store.ready = quota.ErrClock }, "Links cannot be made"},
		"blocklist": {func(f *fixture) {
			f.lists = []blocklist.Status{{Path: "hosts", Err: errors.New("no such file")}}
		}, "no such file"},
		"count": {func(f *fixture) {
			f.store.create = shortener.ErrUnavailable
			f.create()
			f.create()
			f.store.create = nil
		}, "2 links could not be counted"},
		"queue":      {func(f *fixture) { f.store.health.TurnedAway += 3 }, "3 writes found no room"},
		"reputation": {func(f *fixture) { f.create() }, "1 destinations could not be checked"},
		"token":      {func(f *fixture) { f.alerts.tokens.Wrong.Add(admin.WrongTokens) }, "10 wrong tokens"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
			clock := func() time.Time { return now }
			config := shortener.Config{Policy: quota.Policy{Service: 100}, Now: clock}
			if kind == "reputation" {
				config.Checks = &shortener.Checks{
					Reputation: unreachable{}, AllowOnFailure: true, Timeout: time.Second, Calls: 9, NetworkCalls: 9, ClientCalls: 9,
				}
			}
			f := &fixture{store: &faulty{Store: memstore.New()}}
			config.Store = f.store
			service := shortener.New(config)
			made := 0
			f.create = func() {
				made++
				// What becomes of the link is the row's business.
				_, _ = service.Create(t.Context(), quota.Client{}, shortener.NewLink{URL: fmt.Sprintf("https://%d.example.org/", made)}, "")
			}
			var log bytes.Buffer
			f.alerts = &alerts{
				service:    service,
				blocklists: func() []blocklist.Status { return f.lists },
				tokens:     &admin.TokensRefused{},
				leads:      func() bool { return true },
				log:        slog.New(slog.NewTextHandler(&log, nil)),
				now:        clock,
				told:       map[string]time.Time{},
			}
			look := func(want string) {
				t.Helper()
				log.Reset()
				f.alerts.look(t.Context())
				got := strings.Count(log.String(), "msg=alert")
				raised := strings.Contains(log.String(), "kind="+kind) && strings.Contains(log.String(), row.text)
				if want == "" && got != 0 || want != "" && (got != 1 || !raised) {
					t.Errorf("logged %q, want %q", log.String(), want)
				}
			}
			look("")
			row.cause(f)
			look(row.text)
			look("")
			now = now.Add(alertPause)
			row.cause(f)
			look(row.text)
		})
	}
}
