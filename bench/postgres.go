package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// mostCopied is how many links are copied into the database.
const mostCopied = 1_000_000

// postgres measures the same links in a file and in a PostgreSQL database on the
// same core, in turn: visits of a few, of as many as are kept in memory, and of all
// alike, and making links. The links are brought into the database by snip copy.
func (b *bench) postgres(ctx context.Context, t *table) error {
	bin := postgresPrograms()
	if bin == "" {
		t.note("postgres: PostgreSQL is not installed, so nothing was measured with it")
		return nil
	}
	const file = "postgres.db"
	links, err := b.fill(ctx, file, min(mostCopied, b.large()))
	if err != nil {
		return err
	}
	db, err := b.startPostgres(ctx, bin)
	if err != nil {
		return err
	}
	defer db.stop()
	begun := time.Now()
	out, err := b.command(ctx, serverCore, b.snip, "copy", "--from", filepath.Join(b.dir, file), "--to", db.url).CombinedOutput()
	if err != nil {
		return fmt.Errorf("snip copy: %w\n%s", err, out)
	}
	took := time.Since(begun).Seconds()
	t.note("postgres: snip copy took %.1f s for %s links, %s each second", took, whole(float64(links.count)), whole(float64(links.count)/took))
	if err := db.sizes(ctx, t); err != nil {
		return err
	}
	if err := b.warm(file); err != nil {
		return err
	}
	stores := []*compared{{bench: b, name: "file", store: file}, {bench: b, name: "PostgreSQL", store: db.url}}
	defer func() {
		for _, s := range stores {
			s.kill()
		}
	}()
	var reading, writing []*cell
	for _, s := range stores {
		if err := s.prepare(ctx, links); err != nil {
			return err
		}
	}
	for i := range stores[0].redirects {
		reading = append(reading, stores[0].redirects[i], stores[1].redirects[i])
	}
	for i := range stores[0].creations {
		writing = append(writing, stores[0].creations[i], stores[1].creations[i])
	}
	if err := b.inTurn(ctx, "postgres, reading", reading...); err != nil {
		return err
	}
	if err := b.inTurn(ctx, "postgres, writing", writing...); err != nil {
		return err
	}
	for _, s := range stores {
		counted, err := s.check(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		t.note("postgres: %s: %s acknowledged; after a kill and a new start %s are counted (up to %s were cut off unanswered at the ends of runs)",
			s.name, whole(float64(s.made.acknowledged)), whole(float64(counted)), whole(float64(s.made.cutOff)))
	}
	t.series("a file and PostgreSQL, "+whole(float64(links.count))+" links", "to the file")
	for pair := range slices.Chunk(slices.Concat(reading, writing), 2) {
		t.row(pair[0], nil)
		t.row(pair[1], pair[0])
	}
	t.note("postgres: CPU is that of Snip alone; PostgreSQL runs on the same core beside it")
	for _, pair := range [][]*cell{reading[:2], reading[2:4]} {
		t.target(pair[1].name+" to the file", pair[1].rate.over(pair[0].rate), 0.9)
	}
	return nil
}

// compared is a server on one of the stores.
type compared struct {
	bench       *bench
	name, store string
	server      *server
	made        creation

	redirects, creations []*cell
}

// inMemory is how many links each of the stores keeps in memory at least.
const inMemory = 10_000

func (s *compared) prepare(ctx context.Context, links *links) (err error) {
	b := s.bench
	if s.server, err = b.startSnip(ctx, s.store, unlimited...); err != nil {
		return err
	}
	s.made = creation{bench: b, server: s.server}
	for _, list := range []struct {
		name  string
		count int
		slug  func(int) string
	}{
		{"redirects of 10", few, links.hot},
		{"redirects of 10,000 in turn", inMemory, func(i int) string { return links.slug(i * links.count / inMemory) }},
	} {
		file, err := b.writeList(fmt.Sprint("postgres-", list.count), list.count, list.slug)
		if err != nil {
			return err
		}
		s.redirects = append(s.redirects, b.loaded(list.name+", "+s.name, follow(s.server, file, found)))
	}
	s.redirects = append(s.redirects, b.drawn("redirects of all alike, "+s.name, s.server, found, links.slug, uniformly(links.count, 5)))
	for _, connections := range []int{1, 16, 64} {
		s.creations = append(s.creations, s.made.cell(fmt.Sprintf("creations, %d connections, %s", connections, s.name), connections))
	}
	return nil
}

// check kills the server and finds the links that were made.
func (s *compared) check(ctx context.Context) (counted int, err error) {
	s.kill()
	if s.server, err = s.bench.startSnip(ctx, s.store, unlimited...); err != nil {
		return 0, err
	}
	return s.made.check(ctx, s.server)
}

func (s *compared) kill() {
	if s.server != nil {
		s.server.kill()
	}
}

// database is a PostgreSQL server of this run's own.
type database struct {
	cmd  *exec.Cmd
	bin  string
	url  string
	stop func()
}

// postgresPrograms returns the folder of the newest PostgreSQL as Debian has it, or "".
func postgresPrograms() string {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1])
}

// startPostgres starts a server with the settings that PostgreSQL comes with, but for
// what is told below. It flushes as it does by itself.
func (b *bench) startPostgres(ctx context.Context, bin string) (*database, error) {
	dir, as, err := b.postgresFolder()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	run := func(name string, args ...string) *exec.Cmd {
		cmd := b.command(ctx, serverCore, filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr.Credential = dir, as
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := run("initdb", "--pgdata", data, "--username", "snip", "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	d := &database{bin: bin, url: fmt.Sprintf("postgres://snip@127.0.0.1:%s/postgres", port)}
	d.cmd = run("postgres", "-D", data, "-c", "listen_addresses=127.0.0.1", "-c", "port="+port, "-c", "unix_socket_directories="+dir,
		"-c", "shared_buffers=512MB", "-c", "max_wal_size=4GB")
	log, err := os.Create(filepath.Join(b.dir, "postgres.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close() // it is the server's
	d.cmd.Stderr = log
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	d.stop = func() {
		d.cmd.Process.Signal(syscall.SIGINT) // an error means that it has ended already
		d.cmd.Wait()
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		out, err := d.query(ctx, "SELECT 1")
		if err == nil {
			return d, nil
		}
		if time.Now().After(deadline) {
			d.stop()
			return nil, errors.Join(fmt.Errorf("PostgreSQL did not start: %w", err), errors.New(out))
		}
	}
}

// postgresFolder makes a folder for PostgreSQL's data and says how to run as the user
// that it belongs to: PostgreSQL refuses to run as root.
func (b *bench) postgresFolder() (string, *syscall.Credential, error) {
	above := b.dir
	if os.Getuid() == 0 && !open(filepath.Dir(above)) {
		var err error
		if above, err = os.MkdirTemp("/var/tmp", "bench-"); err != nil {
			return "", nil, err
		}
		b.remove = append(b.remove, above)
		if _, err := fileSystem(above); err != nil {
			return "", nil, fmt.Errorf("PostgreSQL's user may not enter %s, and %w", filepath.Dir(b.dir), err)
		}
	}
	dir := filepath.Join(above, "postgres")
	if err := os.Mkdir(dir, 0o755); err != nil || os.Getuid() != 0 {
		return dir, nil, err
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return "", nil, err
	}
	uid, uidErr := strconv.Atoi(account.Uid)
	gid, gidErr := strconv.Atoi(account.Gid)
	if err := errors.Join(uidErr, gidErr, os.Chown(dir, uid, gid), os.Chmod(above, 0o711)); err != nil {
		return "", nil, err
	}
	return dir, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// open reports whether every user may enter a folder, and so each one above it.
func open(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		above := filepath.Dir(dir)
		if above == dir {
			return true
		}
		dir = above
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// query returns what psql prints.
func (d *database) query(ctx context.Context, sql string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(d.bin, "psql"), "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--field-separator", " ", "--command", sql, d.url).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// sizes adds what a link takes, once the database has tidied up.
func (d *database) sizes(ctx context.Context, t *table) error {
	if out, err := d.query(ctx, "VACUUM ANALYZE links"); err != nil {
		return fmt.Errorf("vacuum: %w\n%s", err, out)
	}
	out, err := d.query(ctx, "SELECT count(*), pg_relation_size('links'), pg_indexes_size('links'), pg_total_relation_size('links') FROM links")
	if err != nil {
		return fmt.Errorf("sizes: %w\n%s", err, out)
	}
	var count, rows, indexes, total float64
	if _, err := fmt.Sscan(out, &count, &rows, &indexes, &total); err != nil {
		return fmt.Errorf("sizes: %w\n%s", err, out)
	}
	t.note("postgres: a link with a destination of %d bytes takes %.0f bytes: %.0f in the table and %.0f in its indexes", len(destination(0)), total/count, rows/count, indexes/count)
	return nil
}
