// Package pgtest gives tests a PostgreSQL server of their own: a real one, in a
// folder that goes when the test binary ends, however it ends.
//
// One server serves a test binary, and each test gets a database. It listens in
// its folder only, so no test needs a port or a password. What is on its disk is
// never flushed, because nothing in it is to outlive the test.
package pgtest

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// patience is how long a server may take to start.
const patience = 30 * time.Second

// Database returns the URL of an empty database, which is removed when the test
// ends: by then the test must have closed its connections. Without PostgreSQL the
// test is skipped, but where CI promised it.
func Database(t testing.TB) string {
	t.Helper()
	bin := installed()
	if bin == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("PostgreSQL is missing: install the package postgresql")
		}
		t.Skip("no PostgreSQL: install the package postgresql to run the tests that need it")
	}
	s, err := start(bin)
	if err != nil {
		t.Fatal(err)
	}
	name, err := s.create(t.Context())
	if err != nil {
		t.Fatalf("create a database: %v", err)
	}
	t.Cleanup(func() {
		if err := s.do(context.Background(), "DROP DATABASE "+name); err != nil {
			t.Errorf("remove the test's database: %v", err)
		}
	})
	return s.url(name)
}

// installed returns the folder of PostgreSQL's programs, or "". Debian keeps one
// for each version, outside of the path.
func installed() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	const folders = "/usr/lib/postgresql/*/bin/initdb"
	found, err := filepath.Glob(folders)
	if err != nil || len(found) == 0 {
		return ""
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }))
}

type server struct {
	dir   string
	alive io.Closer // ends with this process, which alone holds it, and is never closed

	mu        sync.Mutex
	admin     *pgx.Conn
	databases int
}

var (
	once    sync.Once
	started *server
	failed  error
)

// start returns the server of this test binary.
func start(bin string) (*server, error) {
	once.Do(func() { started, failed = launch(bin) })
	return started, failed
}

// script runs the server until its standard input ends, which is when the test
// binary has ended or was killed, and removes the folder. $1 is PostgreSQL's
// folder of programs, $2 the server's.
//
// Text is compared as people do by default, unless a column says otherwise: so a
// test notices a column that should have said so.
const script = `
"$1/initdb" --pgdata "$2/data" --username snip --auth trust --no-sync --no-instructions \
	--encoding UTF8 --locale C.UTF-8 --locale-provider icu --icu-locale en >"$2/log" 2>&1
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c max_connections=300 -c shared_buffers=32MB \
	-c fsync=off -c full_page_writes=off >>"$2/log" 2>&1 &
cat >/dev/null
kill -QUIT $!
wait
rm -rf "$2"
`

func launch(bin string) (*server, error) {
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("sh", "-c", script, "sh", bin, dir)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what interrupts the tests must not keep it from cleaning up
	if os.Getuid() == 0 {
		if cmd.SysProcAttr.Credential, err = give(dir); err != nil {
			return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
		}
	}
	s := &server{dir: dir}
	if s.alive, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if s.admin, err = pgx.Connect(ctx, s.url("postgres")); err == nil {
			return s, nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			return nil, fmt.Errorf("PostgreSQL did not start: %w\n%s", err, log)
		}
	}
}

// give makes a folder the postgres user's, and returns how to run as that user.
func give(dir string) (*syscall.Credential, error) {
	account, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(account.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(account.Gid)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
}

func (s *server) url(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User("snip"), Path: "/" + database, RawQuery: url.Values{"host": {s.dir}}.Encode()}
	return u.String()
}

func (s *server) create(ctx context.Context) (string, error) {
	s.mu.Lock()
	s.databases++
	name := fmt.Sprintf("test_%d", s.databases)
	s.mu.Unlock()
	return name, s.do(ctx, "CREATE DATABASE "+name)
}

func (s *server) do(ctx context.Context, sql string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.admin.Exec(ctx, sql)
	return err
}
