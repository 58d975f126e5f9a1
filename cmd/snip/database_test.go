package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"snip/quota/pgquota/pgtest"
)

// replicaToken is the admin token of every server on a database.
const replicaToken = "the-token-of-all-replicas"

// startReplica starts a server on a database, which others may have open.
func startReplica(t *testing.T, database string, args ...string) *process {
	t.Helper()
	return start(t, t.TempDir(), append([]string{"--store", database, "--admin-token", replicaToken}, args...)...)
}

// becomes waits until a request is answered with the status.
func becomes(t *testing.T, want int, method, url, body string) (got answer) {
	t.Helper()
	if err := eventually(fmt.Sprint("status ", want), func() bool {
		got, _ = ask(method, url, "application/x-www-form-urlencoded", body)
		return got.status == want
	}); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	return got
}

// TestDatabaseGone kills the database under a server, and starts it again: links that
// were visited lead on, none is made that is not kept, and no restart is needed.
func TestDatabaseGone(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	p := startReplica(t, server.Database(t), "--throttle-every=0")
	visited := create(t, p, "https://example.org/visited")
	mustAsk(t, http.StatusFound, "GET", p.url+visited, "", "")
	mustAsk(t, http.StatusOK, "GET", p.url+"/readyz", "", "")

	server.Kill(t)
	refused := mustAsk(t, http.StatusServiceUnavailable, "POST", p.url+"/api/links", "application/x-www-form-urlencoded", "url=https://example.org/lost")
	if refused.retryAfter != "5" || !strings.Contains(refused.body, `"code":"unavailable"`) {
		t.Errorf("refused with %+v", refused)
	}
	if ready := mustAsk(t, http.StatusServiceUnavailable, "GET", p.url+"/readyz", "", ""); !strings.Contains(ready.body, "store") {
		t.Errorf("not ready: %s", ready.body)
	}
	for range 20 {
		if got := mustAsk(t, http.StatusFound, "GET", p.url+visited, "", ""); got.location != "https://example.org/visited" {
			t.Errorf("leads to %q", got.location)
		}
	}

	server.Restart(t)
	becomes(t, http.StatusOK, "GET", p.url+"/readyz", "")
	again := becomes(t, http.StatusCreated, "POST", p.url+"/api/links", "url=https://example.org/again")
	if !strings.Contains(again.body, "https://example.org/again") {
		t.Errorf("made %s", again.body)
	}
	mustAsk(t, http.StatusFound, "GET", p.url+visited, "", "")
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if log := p.log(); strings.Contains(log, server.Database(t)) {
		t.Errorf("the log shows the URL of the database:\n%s", log)
	}
}

// TestStopWithoutDatabase: what cannot be written any more does not keep a server from
// ending within the time that service managers leave it.
func TestStopWithoutDatabase(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	p := startReplica(t, server.Database(t), "--throttle-every=0")
	for range 3 { // whose visits wait to be written
		path := create(t, p, "https://example.org/")
		mustAsk(t, http.StatusFound, "GET", p.url+path, "", "")
	}
	server.Kill(t)
	begun := time.Now()
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > lastTime+4*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A server that finds no database waits a little, and one that it may not use ends it
// at once. Neither shows a password.
func TestDatabaseNotThere(t *testing.T) {
	t.Parallel()
	const token = "--admin-token=" + replicaToken
	database := pgtest.Database(t)
	for name, row := range map[string]struct {
		url  string
		want []string
		wait time.Duration // at least
	}{
		"none of the name": {strings.Replace(database, "/test_", "/secret_", 1), []string{"the database cannot be used: ", "does not exist"}, 0},
		"no server":        {"postgres://snip:secret@127.0.0.1:1/snip", []string{"the database cannot be reached yet", "the database cannot be used: "}, startPatience},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			out, err := exec.Command(binary, "--store", row.url, token, "--listen=127.0.0.1:0").CombinedOutput()
			if took := time.Since(begun); err == nil || took < row.wait || took > row.wait+10*time.Second {
				t.Errorf("%v after %v", err, took)
			}
			for _, part := range row.want {
				if !strings.Contains(string(out), part) {
					t.Errorf("%q is not said in: %s", part, out)
				}
			}
			if strings.Contains(string(out), ":secret") {
				t.Errorf("the password is shown: %s", out)
			}
		})
	}
}

// snip runs a command for a replica's operator.
func (p *process) snip(t *testing.T, database string, args ...string) (out string, err error) {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), binary, append([]string{"--store", database, "--admin-listen", p.admin, "--admin-token", replicaToken}, args...)...).CombinedOutput()
	return string(said), err
}

// TestSeparateRights: a role that may not make tables serves once another one has
// made them, and says so before.
func TestSeparateRights(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	owner := server.Database(t)
	server.Do(t, "CREATE ROLE web LOGIN")
	web := strings.Replace(owner, "snip@", "web@", 1)
	ask := func(args ...string) string {
		t.Helper()
		out, _ := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
		return string(out)
	}
	early := ask("--store", web, "--admin-listen=off", "--listen=127.0.0.1:0")
	if !strings.Contains(early, "run snip migrate") {
		t.Errorf("before: %s", early)
	}
	if out := ask("migrate", "--store", web); !strings.Contains(out, "was not migrated: ") || strings.Contains(out, "has the tables") {
		t.Errorf("migrate without the right: %s", out)
	}
	for range 2 { // the second time there is nothing to do
		if out := ask("migrate", "--store", owner); !strings.HasSuffix(out, " has the tables of this version.\n") {
			t.Errorf("migrate: %s", out)
		}
	}
	doIn(t, owner, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO web")
	p := startReplica(t, web)
	path := create(t, p, "https://example.org/")
	mustAsk(t, http.StatusFound, "GET", p.url+path, "", "")
}

// doIn runs SQL in a database.
func doIn(t *testing.T, database, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
}

// Commands that are for a file say so, and others do what they do with one.
func TestCommandsWithDatabase(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	p := startReplica(t, database, "--throttle-every=0")
	slug := strings.TrimPrefix(create(t, p, "https://example.org/"), "/")
	copied := filepath.Join(t.TempDir(), "copy.db")
	for _, row := range []struct {
		args []string
		want string
		ok   bool
	}{
		{[]string{"backup", copied}, "pg_dump", false},
		{[]string{"restore", copied}, "pg_restore", false},
		{[]string{"check", database}, "pg_amcheck", false},
		{[]string{"status"}, "links can be made  ", true},
		{[]string{"keys", "create", "--name", "a", "--daily", "5"}, "snip_", true},
		{[]string{"blocks", "add", "blocked.example"}, "", true},
		{[]string{"quota", "show", "127.0.0.1"}, "client", true},
		{[]string{"quota", "override", "192.0.2.1", "--block"}, "", true},
		{[]string{"clock", "accept"}, "no such word", true},
		{[]string{"export"}, `"slug":"` + slug + `"`, true},
		{[]string{"links", "disable", "--slug", slug, "--reason", "spam"}, "", true},
		{[]string{"audit"}, "disable", true},
	} {
		out, err := p.snip(t, database, row.args...)
		if (err == nil) != row.ok || !strings.Contains(out, row.want) {
			t.Errorf("%v: %v: %s", row.args, err, out)
		}
	}
	mustAsk(t, http.StatusGone, "GET", p.url+"/"+slug, "", "")
	if _, err := os.Stat(copied); err == nil {
		t.Error("a backup of nothing is there")
	}
	withoutToken, err := exec.CommandContext(t.Context(), binary, "status", "--store", database).CombinedOutput()
	if err == nil || !strings.Contains(string(withoutToken), "--admin-token or --admin-token-file is needed") {
		t.Errorf("without a token: %v: %s", err, withoutToken)
	}
}
