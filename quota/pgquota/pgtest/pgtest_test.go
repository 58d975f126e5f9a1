package pgtest_test

import (
	"bufio"
	"io"
	"net/url"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"snip/quota/pgquota/pgtest"
)

// A database is empty, whatever other tests do in theirs.
func TestDatabase(t *testing.T) {
	t.Parallel()
	for range 2 {
		conn, err := pgx.Connect(t.Context(), pgtest.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		if _, err := conn.Exec(t.Context(), "CREATE TABLE mine ()"); err != nil {
			t.Error(err)
		}
	}
}

// A server that was killed comes back with what was committed.
func TestKill(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "max_connections=20")
	at := server.Database(t)
	query := func(sql string) (found int, err error) {
		conn, err := pgx.Connect(t.Context(), at)
		if err != nil {
			return 0, err
		}
		defer conn.Close(t.Context())
		return found, conn.QueryRow(t.Context(), sql).Scan(&found)
	}
	if _, err := query("SELECT 1"); err != nil {
		t.Fatal(err)
	}
	server.Kill(t)
	if _, err := query("SELECT 1"); err == nil {
		t.Error("a server that was killed answers")
	}
	server.Restart(t)
	if n, err := query("SELECT current_setting('max_connections')::int"); err != nil || n != 20 {
		t.Errorf("%d connections, %v", n, err)
	}
}

// TestNothingIsLeft kills a test binary that has a server.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	const role = "PGTEST_IS_KILLED"
	if os.Getenv(role) != "" {
		println(pgtest.Database(t))
		_, _ = io.Copy(io.Discard, os.Stdin) // which ends with who has started it
		return
	}
	pgtest.Database(t) // skips without PostgreSQL
	child := exec.Command(os.Args[0], "-test.run", "^TestNothingIsLeft$", "-test.v")
	child.Env = append(os.Environ(), role+"=1")
	said, err := child.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	text := bufio.NewScanner(said)
	text.Scan()
	killErr := child.Process.Kill()
	_ = child.Wait()
	at, err := url.Parse(text.Text())
	if err != nil || killErr != nil {
		t.Fatalf("%v, %v", killErr, err)
	}
	dir := at.Query().Get("host")
	if dir == "" {
		t.Fatalf("the database is at %q", text.Text())
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(20 * time.Second); ; {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("%s is still there", dir)
		}
	}
}
