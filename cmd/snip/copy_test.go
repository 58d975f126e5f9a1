package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"snip/quota/pgquota/pgtest"
	"snip/shortener"
	"snip/shortener/boltstore"
)

// TestCopyKilled moves a server's file into a database: the copy is killed in the
// middle, nothing is served from what it has left, and once it was run again, the
// next server goes on with the same links and counts.
func TestCopyKilled(t *testing.T) {
	t.Parallel()
	withinOneDay(t, func() error { return copyKilled(t) })
}

func copyKilled(t *testing.T) error {
	const client = "198.51.100.1"
	dir, database := t.TempDir(), pgtest.Database(t)
	file := filepath.Join(dir, "snip.db")
	limits := []string{"--quota-client=3", "--throttle-every=0", "--trusted-proxies=127.0.0.0/8"}
	p := start(t, dir, limits...)
	made := map[string]string{}
	for i := range 3 {
		destination := fmt.Sprintf("https://example.org/%d", i)
		status, slug, err := newCaller(t, p).create(client, destination)
		if err != nil || status != http.StatusCreated {
			return fmt.Errorf("%d, %w", status, err)
		}
		made[slug] = destination
	}
	if err := p.stop(); err != nil {
		return err
	}
	const many, size, stuckAt = 20_000, 4000, 15_200
	slugs := fillWithLong(t, file, many, size)

	program := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, binary, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := program("migrate", "--store", database); err != nil {
		return fmt.Errorf("migrate: %w:\n%s", err, out)
	}
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		return err
	}
	defer conn.Close(t.Context())
	// Somebody else holds a slug, so the copy comes to wait in the middle of a part.
	block, err := conn.Begin(t.Context())
	if err != nil {
		return err
	}
	if _, err := block.Exec(t.Context(), `INSERT INTO links VALUES ($1, '', now(), NULL, '', '', 0, 0, false, false, '', '', false)`, string(slugs[stuckAt])); err != nil {
		return err
	}
	// What it holds is to be seen, and not what waits for the collector.
	copying, err := launch(exec.Command(binary, "copy", "--from", file, "--to", database), dir, []string{"GOGC=25"})
	if err != nil {
		return err
	}
	defer copying.kill()
	if err := waitsForLock(t, database, copying); err != nil {
		return err
	}
	anon, err := ownMemory(copying.cmd.Process.Pid)
	if err != nil {
		return err
	}
	if most := many * size / 2; anon > most {
		return fmt.Errorf("the copy of %d bytes takes %d, more than %d", many*size, anon, most)
	}
	copying.kill()
	if err := block.Rollback(t.Context()); err != nil {
		return err
	}
	var done int
	if err := conn.QueryRow(t.Context(), `SELECT done FROM snip_copy`).Scan(&done); err != nil || done != 15_000 {
		return fmt.Errorf("%d are copied, %w, want 15000", done, err)
	}
	if out, err := program("--listen=127.0.0.1:0", "--admin-listen=off", "--store", database); err == nil || !strings.Contains(out, "not finished: run snip copy again") {
		return fmt.Errorf("half a copy is served from: %w:\n%s", err, out)
	}
	out, err := program("copy", "--from", file, "--to", database)
	if err != nil || !strings.Contains(out, "\nlinks: 20003, checksum") || !strings.HasSuffix(out, "\ncopied\n") {
		return fmt.Errorf("the second copy: %w:\n%s", err, out)
	}
	again, err := program("copy", "--from", file, "--to", database)
	if err == nil || !strings.Contains(again, "in use already") {
		return fmt.Errorf("the third copy: %w:\n%s", err, again)
	}

	p = start(t, t.TempDir(), append(limits, "--store", database, "--admin-token", replicaToken)...)
	c := newCaller(t, p)
	made[string(slugs[0])], made[string(slugs[many-1])] = long(0, size), long(many-1, size)
	for slug, destination := range made {
		if got, err := c.follow(slug); err != nil || got != destination {
			return fmt.Errorf("/%s leads to %q, %w", slug, got, err)
		}
	}
	for from, want := range map[string]int{client: http.StatusTooManyRequests, "198.51.100.2": http.StatusCreated} {
		if got, _, err := c.create(from, "https://example.org/"); err != nil || got != want {
			return fmt.Errorf("%s: %d, %w, want %d", from, got, err, want)
		}
	}
	return nil
}

func long(i, size int) string {
	return fmt.Sprintf("https://example.org/%08d/%s", i, strings.Repeat("x", size))
}

// fillWithLong adds links with long destinations, and returns their slugs in the
// order in which they lie in the file.
func fillWithLong(t *testing.T, file string, many, size int) (slugs []shortener.Slug) {
	t.Helper()
	s, err := boltstore.Open(file, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for len(slugs) < many {
		links := make([]shortener.Link, 1000)
		for i := range links {
			links[i] = shortener.Link{Slug: s.NewSlug(), Destination: long(len(slugs), size), CreatedAt: time.Now().UTC().Truncate(time.Microsecond)}
			slugs = append(slugs, links[i].Slug)
		}
		if err := s.Create(t.Context(), shortener.Creation{Links: links}); err != nil {
			t.Fatal(err)
		}
	}
	return slugs
}

// waitsForLock returns when a process waits for another's transaction.
func waitsForLock(t *testing.T, database string, p *process) error {
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		return err
	}
	defer conn.Close(t.Context())
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(patience)
	for {
		var waits bool
		err := conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid')`).Scan(&waits)
		if err != nil || waits {
			return err
		}
		select {
		case <-again.C:
		case <-p.ended:
			return fmt.Errorf("it has ended: %w:\n%s", p.err, p.log())
		case <-deadline:
			return fmt.Errorf("it does not come to wait:\n%s", p.log())
		}
	}
}

// ownMemory is how many bytes a process holds that are not a file's.
func ownMemory(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`RssAnon:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0, fmt.Errorf("no RssAnon in\n%s", status)
	}
	kib, err := strconv.Atoi(string(found[1]))
	return kib << 10, err
}
