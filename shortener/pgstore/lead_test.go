package pgstore

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"snip/quota/pgquota/pgtest"
)

func stand(t *testing.T, url string) *Candidate {
	t.Helper()
	c, err := Stand(url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestLead: of several programs one leads, and another takes over when it ends or
// loses its connection.
func TestLead(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	all := []*Candidate{stand(t, url), stand(t, url), stand(t, url)}
	leader := func() (found *Candidate) {
		t.Helper()
		eventually(t, "one leads", func() bool {
			found = nil
			n := 0
			for _, c := range all {
				if c.Leads() {
					found, n = c, n+1
				}
			}
			if n > 1 {
				t.Fatalf("%d lead at once", n)
			}
			return n == 1
		})
		return found
	}
	first := leader()
	first.Close()
	if first.Leads() {
		t.Error("one that was closed leads")
	}
	second := leader()
	if second == first {
		t.Fatal("nobody has taken over")
	}
	// The connection breaks, and with it the lock is gone.
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hangUp(conn) })
	ended := 0
	if err := conn.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_locks
		WHERE locktype = 'advisory' AND objid = $1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
		lockLead&0xffffffff).Scan(&ended); err != nil || ended != 1 {
		t.Fatalf("%d connections held the lock, %v", ended, err)
	}
	eventually(t, "nobody leads without the lock", func() bool { return !second.Leads() })
	leader()
}

// TestLeadInSilence: the database ends the connection of a leader that has stopped
// without a word, as one on a machine that lost its network.
func TestLeadInSilence(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	config, err := configureLead(url)
	if err != nil {
		t.Fatal(err)
	}
	silent, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hangUp(silent) })
	begun := time.Now()
	if _, err := silent.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, lockLead); err != nil {
		t.Fatal(err)
	}
	c := stand(t, url)
	eventually(t, "another leads", c.Leads)
	if took := time.Since(begun); took < leadTerm {
		t.Errorf("another leads after %v, while the silent one believes to lead for %v", took, leadTerm)
	}
}
