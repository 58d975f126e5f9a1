package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"snip/shortener/boltstore"
)

// command runs a sub-command in a server's folder, and returns what it printed.
func command(t *testing.T, p *process, input io.Reader, args ...string) (stdout string, err error) {
	t.Helper()
	return commandTo(t, p.cmd.Dir, p.admin, input, args...)
}

func commandTo(t *testing.T, dir, admin string, input io.Reader, args ...string) (stdout string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, append(args, "--admin-listen", admin)...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, []string{}, input, &out, &problems
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("%w: %s", err, problems.String())
	}
	return out.String(), err
}

// Backups are made while sixteen clients make links. Each holds every link that was
// acknowledged before it began, is sound, and serves.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wide := []string{"--throttle-every=0", "--quota-client=100000", "--quota-network=100000", "--quota-service=1000000", "--trusted-proxies=127.0.0.1"}
	p := start(t, dir, wide...)
	c := newCaller(t, p)
	var mu sync.Mutex
	acknowledged := map[string]string{}
	enough, stop := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				destination := fmt.Sprintf("https://example.org/%d/%d", i, n)
				status, slug, err := c.create(fmt.Sprintf("10.0.%d.1", i), destination)
				if err != nil || status != http.StatusCreated {
					t.Errorf("status %d, %v", status, err)
					return
				}
				mu.Lock()
				acknowledged[slug] = destination
				if len(acknowledged) == 500 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	before := make([]map[string]string, 3)
	for i := range before {
		mu.Lock()
		before[i] = maps.Clone(acknowledged)
		mu.Unlock()
		if _, err := command(t, p, nil, "backup", fmt.Sprintf("%d.db", i)); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	group.Wait()
	for i, links := range before {
		file := fmt.Sprintf("%d.db", i)
		if out, err := command(t, p, nil, "check", file); err != nil || !strings.HasSuffix(out, "sound\n") {
			t.Errorf("%s, %v", out, err)
		}
		elsewhere := t.TempDir()
		if out, err := command(t, p, nil, "restore", file, "--store", filepath.Join(elsewhere, "snip.db")); err != nil {
			t.Fatalf("%s, %v", out, err)
		}
		restored := start(t, elsewhere, wide...)
		reader := newCaller(t, restored)
		for _, slug := range slices.Sorted(maps.Keys(links))[:20] {
			if got, err := reader.follow(slug); err != nil || got != links[slug] {
				t.Errorf("%s leads to %q, %v, want %q", slug, got, err, links[slug])
			}
		}
		if status, _, err := reader.create("", "https://example.org/after"); err != nil || status != http.StatusCreated {
			t.Errorf("a link after a restore: status %d, %v", status, err)
		}
		if err := restored.stop(); err != nil {
			t.Fatal(err)
		}
		content := audit(t, filepath.Join(elsewhere, "snip.db"))
		if err := content.holds(links); err != nil {
			t.Error(err)
		}
	}
}

// cutter passes connections on to a server, and kills it after so many bytes of
// an answer.
func cutter(t *testing.T, p *process, after int64) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		defer from.Close()
		to, err := net.Dial("tcp", p.admin)
		if err != nil {
			return
		}
		defer to.Close()
		_ = to.(*net.TCPConn).SetReadBuffer(256 << 10) // or all of it waits here when the server is killed
		go func() { _, _ = io.Copy(to, from) }()
		_, _ = io.CopyN(from, to, after)
		p.kill()
		_, _ = io.Copy(from, to)
	}()
	return listener.Addr().String()
}

// A server that is killed while it is copied leaves nothing that could be taken
// for a backup, and what was there stays.
func TestBackupIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"backup", "copy"}, {"backup", "copy", "--force"}, {"export", "--out", "copy"}} {
		dir := t.TempDir()
		p := start(t, dir)
		if _, err := command(t, p, strings.NewReader(longLines(1000)), "import", "-"); err != nil {
			t.Fatal(err)
		}
		force := slices.Contains(args, "--force")
		if force {
			if err := os.WriteFile(filepath.Join(dir, "copy"), []byte("yesterday's"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := commandTo(t, dir, cutter(t, p, 40_000), nil, args...)
		if err == nil || !strings.Contains(err.Error(), "broke off") {
			t.Errorf("%v: %s, %v", args, out, err)
		}
		found, globErr := filepath.Glob(filepath.Join(dir, "copy*"))
		if globErr != nil || len(found) > 0 != force {
			t.Errorf("%v: left behind: %v, %v", args, found, globErr)
		}
		if kept, err := os.ReadFile(filepath.Join(dir, "copy")); force && string(kept) != "yesterday's" {
			t.Errorf("%q, %v", kept, err)
		}
	}
}

// longLines returns n links as an export has them, of some 8 KB each.
func longLines(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"slug":"link-%d","url":"https://example.org/%s","created_at":"2026-11-29T12:00:00Z"}`+"\n", i, strings.Repeat("x", 8000))
	}
	return text.String()
}

// What is exported and imported elsewhere is exported there as the same bytes, but
// for the order, which is the file's own.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	from := start(t, t.TempDir(), "--throttle-every=0", "--trusted-proxies=127.0.0.1")
	c := newCaller(t, from)
	for i := range 40 {
		if status, slug, err := c.create("10.0.0.1", fmt.Sprintf("https://example.org/%d?<&>=\u2028\"ü\"", i)); err != nil || status != http.StatusCreated {
			t.Fatalf("status %d, %v", status, err)
		} else if _, err := c.follow(slug); err != nil {
			t.Fatal(err)
		}
	}
	special := `{"slug":"limited","url":"https://example.org/","created_at":"2020-01-02T03:04:05.000006Z","expires_at":"2021-01-02T03:04:05Z","max_visits":5,"visits":4,"forward_query":true,"key":"0000000000000007","creator":"000102030405060708090a0b0c0d0e0f","token_hash":"000102030405060708090a0b0c0d0e0f","statistics":{"visits":4,"crawlers":3,"previews":2,"heads":1,"prefetches":5,"days":{"2020-01-02":3,"2020-01-03":1},"referrers":{"a.example":2,"other":1}}}
{"slug":"taken-down","url":"https://example.org/","created_at":"2020-01-02T03:04:05Z","taken_down":"spam"}
{"slug":"deleted","created_at":"2020-01-02T03:04:05Z","deleted":true,"token_hash":"000102030405060708090a0b0c0d0e0f"}
`
	if out, err := command(t, from, strings.NewReader(special), "import", "-"); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	if err := from.stop(); err != nil { // so that every visit is stored
		t.Fatal(err)
	}
	from = start(t, from.cmd.Dir)
	exported, err := command(t, from, nil, "export")
	if err != nil || !strings.Contains(exported, special[:strings.Index(special, "\n")]) {
		t.Fatalf("%s, %v", exported, err)
	}

	to := start(t, t.TempDir())
	for _, outcome := range []string{"created", "present"} {
		report, err := command(t, to, strings.NewReader(exported), "import", "-")
		if err != nil || strings.Count(report, "\t"+outcome+"\n") != 43 || strings.Count(report, "\n") != 43 {
			t.Fatalf("%s, %v", report, err)
		}
		again, err := command(t, to, nil, "export")
		if err != nil || !slices.Equal(sortedLines(again), sortedLines(exported)) {
			t.Errorf("%v: exported again:\n%s\nwant\n%s", err, again, exported)
		}
	}
	if report, err := command(t, to, strings.NewReader(strings.Replace(special, "org/", "net/", 1)+"nonsense\n"), "import", "-"); err == nil ||
		!strings.Contains(report, "1\tlimited\trefused\tanother link has this slug\n2\ttaken-down\tpresent\n3\tdeleted\tpresent\n4\t\trefused\t") {
		t.Errorf("%s, %v", report, err)
	}
	if status, _, err := newCaller(t, to).create("", "https://example.org/"); err != nil || status != http.StatusCreated {
		t.Errorf("status %d, %v", status, err)
	}
	if err := to.stop(); err != nil {
		t.Fatal(err)
	}
	audit(t, filepath.Join(to.cmd.Dir, "snip.db"))
}

func sortedLines(text string) []string {
	return slices.Sorted(strings.Lines(text))
}

// Answers and reservations are told where there are any.
func TestSummary(t *testing.T) {
	t.Parallel()
	for want, report := range map[string]boltstore.Report{
		"format 4, 2 links (1 deleted, 0 taken down), visits counted of 0, statistics of 0, 3 lines of the audit log": {
			Format: 4, Links: 2, Deleted: 1, Acts: 3},
		"format 4, 2 links (0 deleted, 0 taken down), visits counted of 0, statistics of 0, 1 answers, 5 reservations (4 pending), 0 lines of the audit log": {
			Format: 4, Links: 2, Answers: 1, Reservations: 5, Pending: 4},
	} {
		if got := summary(report); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
