// Package pgtest gives tests a PostgreSQL server of their own: a real one, in a
// folder that goes when the test binary ends, however it ends.
//
// One server serves a test binary, and each test gets a database. It listens in
// its folder only, so no test needs a port or a password. What is on its disk is
// never flushed, because nothing in it is to outlive the test.
package pgtest

import (
	"bufio"
	"context"
	"errors"
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
	bin := Programs(t)
	once.Do(func() { shared, failed = launch(bin, nil) })
	if failed != nil {
		t.Fatal(failed)
	}
	name := shared.database(t)
	t.Cleanup(func() { shared.Do(t, "DROP DATABASE "+name) })
	return shared.url(name)
}

// Server is a server of one test's own, to be killed.
type Server struct {
	dir   string
	admin *pgx.Conn
	mu    sync.Mutex // of admin and databases

	databases int

	// Of the script that runs the server. Its input ends with this process, which alone
	// holds it.
	script *exec.Cmd
	orders io.WriteCloser
	done   *bufio.Reader
}

// Start starts a server with lines for its configuration file, which is gone when
// the test ends. It skips or fails as [Database] does.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := launch(Programs(t), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.admin != nil {
			_ = s.admin.Close(context.Background())
		}
		if err := errors.Join(s.orders.Close(), s.script.Wait()); err != nil {
			t.Errorf("stop PostgreSQL: %v", err)
		}
	})
	return s
}

// Database returns the URL of an empty database.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return s.url(s.database(t))
}

// Kill kills the server and all its processes as a crash would.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.order("kill"); err != nil {
		t.Fatalf("kill PostgreSQL: %v", err)
	}
}

// Restart starts the server again.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	err := s.order("start")
	if err == nil {
		err = s.connect()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Programs returns the folder of PostgreSQL's programs, or skips the test.
func Programs(t testing.TB) string {
	t.Helper()
	bin := programs()
	if bin == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("PostgreSQL is missing: install the package postgresql")
		}
		t.Skip("no PostgreSQL: install the package postgresql to run the tests that need it")
	}
	return bin
}

// programs returns the folder of PostgreSQL's programs, or "". Debian keeps one for
// each version, outside of the path.
func programs() string {
	path, err := exec.LookPath("initdb")
	if err == nil {
		path, err = filepath.EvalSymlinks(path) // the others are beside it, not beside a link to it
	}
	if err == nil {
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

// The server of this test binary.
var (
	once   sync.Once
	shared *Server
	failed error
)

// script runs the server until its standard input ends, which is when the test
// binary has ended or was killed, and removes the folder. $1 is PostgreSQL's folder
// of programs, $2 the server's, the rest are settings. What it is told on its input,
// it says to have done on its output.
//
// Text is compared as people do by default, unless a column says otherwise: so a
// test notices a column that should have said so.
const script = `
bin=$1 dir=$2
shift 2
# Shortly after a kill it does not start, because of processes that are not gone yet.
start() {
	for try in 1 2 3 4 5 6 7 8 9 10; do
		"$bin/pg_ctl" -D "$dir/data" -l "$dir/log" start >/dev/null && break
		sleep 0.1
	done
}
"$bin/initdb" --pgdata "$dir/data" --username snip --auth trust --no-sync --no-instructions \
	--encoding UTF8 --locale C.UTF-8 --locale-provider icu --icu-locale en >"$dir/log" 2>&1
printf '%s\n' "unix_socket_directories = '$dir'" "listen_addresses = ''" max_connections=300 shared_buffers=32MB \
	fsync=off full_page_writes=off "$@" >>"$dir/data/postgresql.conf"
start
while read order primary; do
	case $order in
	kill)
		read pid <"$dir/data/postmaster.pid"
		kill -STOP $pid # so that it starts no more
		kill -KILL $(cat /proc/$pid/task/$pid/children) $pid
		;;
	start) start ;;
	follow)
		"$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1
		rm -rf "$dir/data"
		"$bin/pg_basebackup" --host "$primary" --username snip --pgdata "$dir/data" --write-recovery-conf --checkpoint fast --no-sync >>"$dir/log" 2>&1
		echo "unix_socket_directories = '$dir'" >>"$dir/data/postgresql.conf"
		start
		;;
	promote) "$bin/pg_ctl" -D "$dir/data" promote >/dev/null ;;
	esac
	echo $order
done
"$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null
rm -rf "$dir"
`

func launch(bin string, settings []string) (*Server, error) {
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, script: exec.Command("sh", append([]string{"-c", script, "sh", bin, dir}, settings...)...)}
	s.script.Dir = dir
	s.script.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what interrupts the tests must not keep it from cleaning up
	if s.script.SysProcAttr.Credential, err = Give(dir); err != nil {
		return nil, err
	}
	if s.orders, err = s.script.StdinPipe(); err != nil {
		return nil, err
	}
	said, err := s.script.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.done = bufio.NewReader(said)
	if err := s.script.Start(); err != nil {
		return nil, err
	}
	return s, s.connect()
}

func (s *Server) order(what string) error {
	if _, err := fmt.Fprintln(s.orders, what); err != nil {
		return err
	}
	_, err := s.done.ReadString('\n')
	return err
}

// connect waits until the server answers.
func (s *Server) connect() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if s.admin, err = pgx.Connect(ctx, s.url("postgres")); err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("PostgreSQL did not start: %w\n%s", err, log)
		}
	}
}

// Give makes a folder the postgres user's, and returns how to run as that user. Whoever
// is not root runs PostgreSQL as they are: then it returns nil.
func Give(dir string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}
	uid, uidErr := strconv.Atoi(account.Uid)
	gid, gidErr := strconv.Atoi(account.Gid)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
}

func (s *Server) url(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User("snip"), Path: "/" + database, RawQuery: url.Values{"host": {s.dir}}.Encode()}
	return u.String()
}

func (s *Server) database(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	s.databases++
	name := fmt.Sprintf("test_%d", s.databases)
	s.mu.Unlock()
	s.Do(t, "CREATE DATABASE "+name)
	return name
}

// Do runs SQL as the one who may do everything.
func (s *Server) Do(t testing.TB, sql string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.admin.Exec(context.Background(), sql); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
}
