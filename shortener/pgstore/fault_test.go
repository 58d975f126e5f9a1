package pgstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/quota/pgquota/pgtest"
	"snip/shortener"
)

// network breaks connections at their commits.
type network struct {
	fault atomic.Pointer[string] // of the next commit
	down  atomic.Bool            // whether it stays broken from then on
	deaf  atomic.Bool            // whether listeners hear nothing, without being told
}

const (
	beforeCommit = "before it is sent"
	afterCommit  = "after it is sent"
)

func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	if n.down.Load() && n.fault.Load() == nil {
		return nil, &net.OpError{Op: "dial", Net: kind, Err: errors.New("the network is down")}
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, kind, address)
	return &wire{Conn: conn, network: n}, err
}

// wire is a connection of the network. Only those of writers break.
type wire struct {
	net.Conn
	network *network
	writes  bool
	listens atomic.Bool
}

func (w *wire) Read(p []byte) (int, error) {
	for {
		n, err := w.Conn.Read(p)
		if err != nil || !w.listens.Load() || !w.network.deaf.Load() {
			return n, err
		}
	}
}

func (w *wire) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("LISTEN")) {
		w.listens.Store(true)
	}
	if w.writes = w.writes || bytes.Contains(p, []byte("INSERT INTO writers")); !w.writes {
		return w.Conn.Write(p)
	}
	fault := w.network.fault.Load()
	if fault == nil || !bytes.Contains(p, []byte("commit\x00")) || !w.network.fault.CompareAndSwap(fault, nil) {
		return w.Conn.Write(p)
	}
	if *fault == beforeCommit {
		_ = w.Conn.Close()
		return 0, net.ErrClosed
	}
	n, err := w.Conn.Write(p)
	if err == nil {
		err = w.Conn.Close()
	}
	return n, err
}

// TestLostAnswer breaks the connection around a commit: it is found out what has
// become of it.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for _, at := range []string{beforeCommit, afterCommit} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			var n network
			s := openAt(t, pgtest.Database(t), Options{dial: n.dial})
			t.Cleanup(func() { _ = s.Close() })
			mustCreate(t, s, "first")
			for i := range 3 {
				// In one batch with a refusal, which is told as such.
				n.fault.Store(&at)
				full := creation(t, s, 2, "full")
				full.Charges[2].Max = 0
				slug := fmt.Sprint("link-", i)
				results, err := s.commit([]operation{creating(creation(t, s, 1, slug)), creating(full)})
				if err != nil || results[0] != nil || !errors.Is(results[1], quota.ErrExceeded) {
					t.Fatalf("%s: %v, %v", slug, results, err)
				}
				if n.fault.Load() != nil {
					t.Fatal("the connection was not broken")
				}
				wantCounted(t, s, i+2)
			}
			c := creation(t, s, 1, "visited")
			c.Links[0].MaxVisits = 2
			if err := s.Create(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			n.fault.Store(&at)
			_, err := s.Visit(t.Context(), "visited")
			if visited, readErr := s.Visited(t.Context(), "visited"); err != nil || readErr != nil || visited != 1 {
				t.Errorf("a visit: %v; counted are %d, %v", err, visited, readErr)
			}
		})
	}
}

// An outcome that cannot be found out is said to be unknown, and is whole.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]int{beforeCommit: 1, afterCommit: 2} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			var n network
			s := openAt(t, pgtest.Database(t), Options{dial: n.dial, patience: 500 * time.Millisecond})
			t.Cleanup(func() { _ = s.Close() })
			mustCreate(t, s, "first")
			c := creation(t, s, 1, "second")
			n.down.Store(true)
			n.fault.Store(&at)
			err := s.Create(t.Context(), c)
			wantUnavailable(t, err)
			if err == nil || !strings.Contains(err.Error(), "unknown") {
				t.Errorf("got error %v, want one that says that the outcome is unknown", err)
			}
			n.down.Store(false)
			eventually(t, "creations come back", func() bool { return s.Ready(t.Context(), "2026-11-29") == nil })
			wantCounted(t, s, want)
			mustCreate(t, s, "third")
			wantCounted(t, s, want+1)
			if trouble := s.Health().Trouble; trouble != "" {
				t.Errorf("the trouble is over, but it says %q", trouble)
			}
		})
	}
}

// TestStandbyIsNotWaitedFor cuts the wait for a standby short, in the two ways that
// PostgreSQL has: what is committed here only is no success.
func TestStandbyIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	s := openAt(t, server.Database(t), Options{})
	t.Cleanup(func() { _ = s.Close() })
	mustCreate(t, s, "first")
	c := map[string]shortener.Creation{}
	for _, by := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		c[by] = creation(t, s, 1, strings.ReplaceAll(by, "_", "-"))
	}
	standby := func(names string) {
		server.Do(t, "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'")
		server.Do(t, "SELECT pg_reload_conf()")
		eventually(t, "the setting holds", func() (holds bool) {
			err := s.pool.QueryRow(t.Context(), "SELECT current_setting('synchronous_standby_names') = $1", names).Scan(&holds)
			return err == nil && holds
		})
	}
	standby("nobody")
	for by, creation := range c {
		told := make(chan error)
		go func() { told <- s.Create(context.Background(), creation) }()
		eventually(t, "the commit waits for the standby", func() (ended bool) {
			err := s.pool.QueryRow(t.Context(), "SELECT coalesce(bool_or("+by+"(pid)), false) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&ended)
			return err == nil && ended
		})
		err := <-told
		wantUnavailable(t, err)
		if !errors.Is(err, errUnknown) {
			t.Errorf("%s: got error %v, want that the outcome is unknown", by, err)
		}
	}
	standby("")
	mustCreate(t, s, "last")
	wantCounted(t, s, 4)
}

// TestCrash kills the server under load, three times. Nothing that was acknowledged
// is missing, counters equal links, and creations go on without anybody's help.
func TestCrash(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	url := server.Database(t)
	stores := []*Store{openClosing(t, url), openClosing(t, url)}
	var made sync.Map
	var acknowledged atomic.Int64
	stop := make(chan struct{})
	var group sync.WaitGroup
	for worker := range 6 {
		s := stores[worker%2]
		template := creation(t, s, worker, "")
		template.Charges[2].Max = policy.Service
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				c, slug := template, shortener.Slug(fmt.Sprintf("crash-%d-%d", worker, i))
				c.Links = []shortener.Link{template.Links[0]}
				c.Links[0].Slug = slug
				switch err := s.Create(context.Background(), c); {
				case err == nil:
					made.Store(slug, true)
					acknowledged.Add(1)
				case !errors.Is(err, shortener.ErrUnavailable):
					t.Errorf("create: %v", err)
				}
			}
		})
	}
	for range 3 {
		before := acknowledged.Load()
		eventually(t, "creations go on", func() bool { return acknowledged.Load() > before+50 })
		server.Kill(t)
		server.Restart(t)
	}
	before := acknowledged.Load()
	eventually(t, "creations go on", func() bool { return acknowledged.Load() > before+50 })
	close(stop)
	group.Wait()
	found := map[string]bool{}
	rows, err := stores[0].pool.Query(t.Context(), "SELECT slug FROM links")
	if err != nil {
		t.Fatal(err)
	}
	var slug string
	if _, err := pgx.ForEachRow(rows, []any{&slug}, func() error { found[slug] = true; return nil }); err != nil {
		t.Fatal(err)
	}
	made.Range(func(slug, _ any) bool {
		if !found[string(slug.(shortener.Slug))] {
			t.Errorf("%s was acknowledged and is missing", slug)
		}
		return true
	})
	wantCounted(t, stores[0], len(found))
	t.Logf("%d acknowledged, %d stored", acknowledged.Load(), len(found))
}

// A database that is gone is said to be, at once, once it is known.
func TestGone(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	s := openAt(t, server.Database(t), Options{patience: time.Second})
	t.Cleanup(func() { _ = s.Close() })
	mustCreate(t, s, "first")
	second, third := creation(t, s, 1, "second"), creation(t, s, 1, "third")
	server.Kill(t)
	wantUnavailable(t, s.Create(t.Context(), second))
	wantUnavailable(t, s.Ready(t.Context(), "2026-11-29"))
	if s.Health().Trouble == "" {
		t.Error("it does not say that there is trouble")
	}
	begun := time.Now()
	wantUnavailable(t, s.Create(t.Context(), third))
	if took := time.Since(begun); took > time.Second/2 {
		t.Errorf("a second refusal took %v", took)
	}
	server.Restart(t)
	eventually(t, "it is ready", func() bool { return s.Ready(t.Context(), "2026-11-29") == nil })
	for _, c := range []shortener.Creation{second, third} {
		if err := s.Create(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	wantCounted(t, s, 3)
	if trouble := s.Health().Trouble; trouble != "" {
		t.Errorf("it says %q", trouble)
	}
}

// A database that takes no writes for a while takes them again without a restart of
// ours.
func TestReadOnlyForAWhile(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	url := server.Database(t)
	s := openAt(t, url, Options{patience: time.Second})
	t.Cleanup(func() { _ = s.Close() })
	mustCreate(t, s, "first")
	second := creation(t, s, 1, "second")
	const others = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'snip'`
	run(t, url, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
	run(t, url+"&application_name=operator", others)
	wantUnavailable(t, s.Create(t.Context(), second))
	wantUnavailable(t, s.Ready(t.Context(), "2026-11-29"))
	run(t, url+"&application_name=operator&default_transaction_read_only=off",
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$`)
	eventually(t, "it is ready", func() bool { return s.Ready(t.Context(), "2026-11-29") == nil })
	eventually(t, "links are made", func() bool { return s.Create(t.Context(), second) == nil })
	wantCounted(t, s, 2)
}

// A program that hangs while it holds locks stops the others for some seconds, not
// for good.
func TestHangingNeighbour(t *testing.T) {
	t.Parallel()
	s := openClosing(t, pgtest.Database(t))
	mustCreate(t, s, "first")
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "UPDATE quota_counters SET used = used"); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, s, "second")
	wantCounted(t, s, 2)
}
