package pgstore

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/quota/pgquota/pgtest"
	"snip/shortener"
)

func run(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// TestMigrateTogether starts five programs on an empty database at once.
func TestMigrateTogether(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	stores := make([]*Store, 5)
	var group sync.WaitGroup
	for i := range stores {
		group.Go(func() {
			var err error
			if stores[i], err = Open(context.Background(), url, Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for i, s := range stores {
		if s != nil {
			mustCreate(t, s, strings.Repeat("x", i+3))
			wantCounted(t, s, i+1)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestOlderTables opens a database of the first version, whose limited links ask from then on.
func TestOlderTables(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error { return step(t.Context(), tx, 1) }); err != nil {
		t.Fatal(err)
	}
	run(t, url, `INSERT INTO links VALUES ('old', 'https://example.org/', now(), NULL, '2026-11-29', '', 0, 3, true, false, '', '', false, 2)`)
	s := openClosing(t, url)
	link, err := s.Get(t.Context(), "old")
	if err != nil || link.Destination != "https://example.org/" || link.MaxVisits != 3 || link.DirectRedirect {
		t.Errorf("%+v, %v", link, err)
	}
	if n, err := s.Visited(t.Context(), "old"); n != 2 || err != nil {
		t.Errorf("%d visits, %v", n, err)
	}
	direct := true
	if link, err := s.Change(t.Context(), "old", shortener.Change{DirectRedirect: &direct}); err != nil || !link.DirectRedirect {
		t.Errorf("%+v, %v", link, err)
	}
}

func TestNewerTables(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	if err := Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	run(t, url, "UPDATE snip_version SET version = version + 1")
	if _, err := Open(t.Context(), url, Options{}); err == nil || !strings.Contains(err.Error(), "run a newer one") {
		t.Errorf("got error %v, want one that says what to do", err)
	}
}

// TestSeparateRights serves as a role that may not change tables.
func TestSeparateRights(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	owner := server.Database(t)
	server.Do(t, "CREATE ROLE serving LOGIN")
	u, err := url.Parse(owner)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("serving")
	if _, err := Open(t.Context(), u.String(), Options{}); !errors.Is(err, errMustMigrate) {
		t.Errorf("got error %v, want one that says what to do", err)
	}
	if err := Migrate(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	run(t, owner, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO serving")
	s := openClosing(t, u.String())
	mustCreate(t, s, "first")
	wantCounted(t, s, 1)
}

// TestSettings asks the server how a store's connections are set, whatever the URL
// says.
func TestSettings(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"": "snip on read committed", "&synchronous_commit=off&application_name=first": "first on read committed",
		"&synchronous_commit=remote_apply&default_transaction_isolation=serializable": "snip remote_apply read committed",
	} {
		s := openClosing(t, pgtest.Database(t)+given)
		var got string
		err := s.pool.QueryRow(t.Context(), `SELECT concat_ws(' ', current_setting('application_name'),
			current_setting('synchronous_commit'), current_setting('default_transaction_isolation'))`).Scan(&got)
		if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", given, got, err, want)
		}
	}
}

func TestNoDatabase(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://snip:secret@/snip?host=/nowhere", "postgres://snip:secret@%zz/"} {
		if _, err := Open(t.Context(), url, Options{}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got error %v, want one without the password", url, err)
		}
	}
}

// TestMigrateFromTheFirst opens tables of version 1 that have something in them.
func TestMigrateFromTheFirst(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s := openAt(t, url, Options{})
	act := shortener.Act{Line: shortener.AuditLine{At: noon, Action: "earlier"}}
	_, actErr := s.Act(t.Context(), act)
	_, _, reserveErr := s.Reserve(t.Context(), quota.Reservation{
		ID: "earlier", ExpiresAt: noon, OnExpiry: quota.Committed,
		Charges: []quota.Charge{{Counter: quota.Counter{Level: "budget", Period: "2026-11-29"}, Cost: 1, Max: 9, ResetAt: noon.AddDate(0, 0, 1)}},
	})
	day := shortener.DayRecord{Day: "2026-11-29", Created: 1, Hours: shortener.Hours{9: 1}}
	if err := errors.Join(actErr, reserveErr, s.AddHistory(t.Context(), day), s.Close()); err != nil {
		t.Fatal(err)
	}
	// All that later versions have added.
	run(t, url, `ALTER TABLE audit DROP COLUMN links;
		ALTER TABLE links DROP COLUMN direct_redirect;
		ALTER TABLE history DROP COLUMN hours;
		ALTER TABLE quota_reservations DROP COLUMN created_at, DROP COLUMN updated_at, DROP COLUMN expired;
		UPDATE snip_version SET version = 1`)
	s = openClosing(t, url)
	lines, err := s.Audit(t.Context(), 0, 9)
	if err != nil || len(lines) != 1 || lines[0].Action != "earlier" || lines[0].Links != 0 {
		t.Errorf("the audit log has %+v, %v", lines, err)
	}
	days, err := s.History(t.Context(), 9)
	if err != nil || len(days) != 1 || days[0].Created != 1 || days[0].Hours != (shortener.Hours{}) {
		t.Errorf("the history has %+v, %v", days, err)
	}
	list, err := s.Reservations(t.Context(), 9)
	if err != nil || len(list) != 1 || !list[0].CreatedAt.IsZero() || list[0].Expired {
		t.Errorf("reservations are %+v, %v", list, err)
	}
	if r, err := s.Commit(t.Context(), "earlier", nil, noon); err != nil || !r.UpdatedAt.Equal(noon) {
		t.Errorf("it was settled as %+v, %v", r, err)
	}
}
