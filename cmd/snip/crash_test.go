package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestKill kills the program many times while it makes links. Whatever the moment,
// counters equal links, and every link that was acknowledged is there.
func TestKill(t *testing.T) {
	t.Parallel()
	const workers = 8
	kills := rounds(100, 1000)
	dir := t.TempDir()
	file := filepath.Join(dir, "snip.db")
	random := rand.New(rand.NewPCG(*moments, 0))
	acknowledged := map[string]string{}
	for round := range kills {
		p := start(t, dir, plenty...)
		c := newCaller(t, p)
		var mu sync.Mutex
		left := 1 + random.IntN(60) // acknowledgements until the kill
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := 0; ; i++ {
					destination := fmt.Sprintf("https://example.org/%d/%d/%d", round, w, i)
					status, slug, err := c.create(fmt.Sprintf("198.51.%d.1", w), destination)
					if err != nil {
						return // the program is dead
					}
					if status != http.StatusCreated {
						t.Errorf("status %d", status)
						return
					}
					mu.Lock()
					acknowledged[slug] = destination
					if left--; left == 0 {
						go p.kill()
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		p.kill()
		if err := audit(t, file).holds(acknowledged); err != nil {
			t.Errorf("round %d, seed %d: %v", round, *moments, err)
		}
		if t.Failed() {
			return
		}
	}
	c := newCaller(t, start(t, dir))
	for slug, destination := range acknowledged {
		if location, err := c.follow(slug); err != nil || location != destination {
			t.Fatalf("/%s leads to %q, %v, want %q", slug, location, err, destination)
		}
	}
}

// TestFullDisk fills the disk under the running program and empties it again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir).CombinedOutput(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("mount a small file system: %v: %s", err, out)
		}
		t.Skipf("needs the right to mount a small file system (run as root): %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	p := start(t, dir, plenty...)
	t.Cleanup(p.kill) // before umount
	before := create(t, p, "https://example.org/before")

	ballast := filepath.Join(dir, "ballast")
	for size := 1 << 20; size > 0; size /= 2 {
		f, err := os.OpenFile(ballast, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		f.Close()
	}
	// Free pages in the file take a few links more.
	c := newCaller(t, p)
	status := http.StatusCreated
	for i := 0; status == http.StatusCreated && i < 10_000; i++ {
		var err error
		if status, _, err = c.create(fmt.Sprintf("198.51.100.%d", i%256), fmt.Sprintf("https://example.org/%d/%01000d", i, i)); err != nil {
			t.Fatal(err)
		}
	}
	if status != http.StatusServiceUnavailable {
		t.Fatalf("with a full disk: status %d", status)
	}
	refused := mustAsk(t, http.StatusServiceUnavailable, "POST", p.url+"/api/links",
		"application/json", `{"url":"https://example.org/`+strings.Repeat("x", 8000)+`"}`)
	if refused.retryAfter != "5" || !strings.Contains(refused.body, `"code":"unavailable"`) {
		t.Errorf("with a full disk: %+v", refused)
	}
	mustAsk(t, http.StatusServiceUnavailable, "GET", p.url+"/readyz", "", "")
	mustAsk(t, http.StatusFound, "GET", p.url+before, "", "")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	create(t, p, "https://example.org/after")
	mustAsk(t, http.StatusOK, "GET", p.url+"/readyz", "", "")
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	audit(t, filepath.Join(dir, "snip.db"))
}
