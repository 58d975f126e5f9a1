package boltstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
	"snip/shortener"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// creation returns the demand of one client for one link at the instant now.
func creation(t testing.TB, s *Store, now time.Time, host int, slug string) shortener.Creation {
	t.Helper()
	day := quota.DayOf(now)
	secret, err := s.EnsureSecret(t.Context(), day.Label)
	if err != nil {
		t.Fatalf("EnsureSecret: %v", err)
	}
	who := quota.ClientOf(netip.AddrFrom4([4]byte{10, 0, byte(host >> 8), byte(host)}))
	policy := quota.Policy{Client: 50, Network: 5000, Service: 100_000}
	return shortener.Creation{
		Day:     day.Label,
		Charges: policy.Charges(who, secret, day, 1),
		Links: []shortener.Link{{
			Slug: shortener.Slug(slug), Destination: "https://example.org/" + slug, CreatedAt: now, Day: day.Label, Creator: who.Creator(secret),
		}},
	}
}

// wantCounted asserts that each level of the day has counted as many links as
// there are for that day, whoever made them.
func wantCounted(t testing.TB, s *Store, day string, want int) {
	t.Helper()
	err := s.view(func(tx *bbolt.Tx) error {
		links := 0
		err := tx.Bucket(linksName).ForEach(func(_, raw []byte) error {
			link, err := decodeLink(raw)
			if link.Day == day {
				links++
			}
			return err
		})
		counted := map[quota.Level]int64{}
		if p := tx.Bucket([]byte("days")).Bucket([]byte(day)); p != nil {
			err = errors.Join(err, p.Bucket([]byte("counters")).ForEach(func(key, _ []byte) error {
				for _, level := range []quota.Level{quota.LevelService, quota.LevelNetwork, quota.LevelClient} {
					if key[0] != level[0] {
						continue
					}
					counts, err := boltquota.Counts(tx, []quota.Counter{{Level: level, Subject: quota.Subject(key[1:]), Period: day}})
					if err != nil {
						return err
					}
					counted[level] += counts[0].Used
				}
				return nil
			}))
		}
		got := fmt.Sprint(links, counted[quota.LevelService], counted[quota.LevelNetwork], counted[quota.LevelClient])
		if got != fmt.Sprint(want, want, want, want) {
			t.Errorf("%s: links, service, network, client = %s, want %d each", day, got, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func mustCreate(t testing.TB, s *Store, now time.Time, host int, slug string) {
	t.Helper()
	if err := s.Create(t.Context(), creation(t, s, now, host, slug)); err != nil {
		t.Fatalf("create %s: %v", slug, err)
	}
}

func wantUnavailable(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, shortener.ErrUnavailable) {
		t.Errorf("got error %v, want one that wraps ErrUnavailable", err)
	}
}

// lines is a log that tests wait on in place of sleeping.
type lines chan string

func (l lines) Enabled(context.Context, slog.Level) bool { return true }
func (l lines) Handle(_ context.Context, r slog.Record) error {
	l <- r.Message
	return nil
}
func (l lines) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l lines) WithGroup(string) slog.Handler      { return l }

// wait returns when the log has said the message.
func (l lines) wait(t testing.TB, message string) {
	t.Helper()
	for {
		select {
		case got := <-l:
			if got == message {
				return
			}
		case <-t.Context().Done():
			t.Fatalf("the log never said %q", message)
		}
	}
}
