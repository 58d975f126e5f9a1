package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/shortener"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

var policy = quota.Policy{Client: 50, Network: 5000, Service: 100_000}

// creation returns the demand of one client for a link.
func creation(t testing.TB, s shortener.Store, host int, slug string) shortener.Creation {
	t.Helper()
	day := quota.DayOf(noon)
	secret, err := s.EnsureSecret(context.Background(), day.Label)
	if err != nil {
		t.Fatalf("EnsureSecret: %v", err)
	}
	who := quota.ClientOf(netip.AddrFrom4([4]byte{10, 0, byte(host >> 8), byte(host)}))
	return shortener.Creation{
		Day:     day.Label,
		Charges: policy.Charges(who, secret, day, 1),
		Links: []shortener.Link{{
			Slug: shortener.Slug(slug), Destination: "https://example.org/" + slug, CreatedAt: noon, Day: day.Label, Creator: who.Creator(secret),
		}},
	}
}

// mustCreate makes a link of client 1.
func mustCreate(t testing.TB, s *Store, slug string) {
	t.Helper()
	if err := s.Create(t.Context(), creation(t, s, 1, slug)); err != nil {
		t.Fatalf("create %s: %v", slug, err)
	}
}

// wantCounted asserts that each level has counted as many links as there are.
func wantCounted(t testing.TB, s *Store, want int) {
	t.Helper()
	var links, service, network, client int
	err := s.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM links WHERE day <> ''),
		coalesce(sum(used) FILTER (WHERE level = 'service'), 0), coalesce(sum(used) FILTER (WHERE level = 'network'), 0),
		coalesce(sum(used) FILTER (WHERE level = 'client'), 0) FROM quota_counters`).Scan(&links, &service, &network, &client)
	if got := fmt.Sprint(links, service, network, client); err != nil || got != fmt.Sprint(want, want, want, want) {
		t.Errorf("links, service, network, client = %s, %v, want %d each", got, err, want)
	}
}

func wantUnavailable(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, shortener.ErrUnavailable) {
		t.Errorf("got error %v, want one that wraps ErrUnavailable", err)
	}
}

// eventually waits for another process.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(30 * time.Second); !holds(); {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("it took too long: %s", what)
		}
	}
}

// wantNoDeadlocks asserts that PostgreSQL never had to end a transaction because
// some were waiting for each other: it would be tried again, and nobody would know.
func wantNoDeadlocks(t testing.TB, url string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer hangUp(conn)
	var n int
	err = conn.QueryRow(context.Background(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&n)
	if err != nil || n != 0 {
		t.Errorf("%d deadlocks, %v", n, err)
	}
}
