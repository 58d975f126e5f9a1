package main

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestFaults breaks the disk under the running program, and mends it again.
func TestFaults(t *testing.T) {
	t.Parallel()
	needStrace(t)
	for _, row := range []struct {
		fault  string // "when" counts the calls of each thread
		always bool   // no creation can get through
	}{
		{"fdatasync:error=EIO", true},
		{"fdatasync:error=EIO:when=2", false},
		{"fdatasync:error=EIO:when=1+2", false},
		{"fdatasync:error=ENOSPC", true},          // on file systems that find room when they flush
		{"pwrite64:error=EIO", true},              // the disk is gone
		{"pwrite64:error=EIO:when=3", false},      // between the pages of a commit
		{"pwrite64:error=EIO:when=5", false},      // mostly a meta page
		{"pwrite64:error=EROFS", true},            // mounted read-only after an error
		{"pwrite64:error=ENOSPC", true},           // the disk is full
		{"pwrite64:error=ENOSPC:when=2+3", false}, // and has room for a page or two
		{"pwrite64:error=EDQUOT", true},           // a user's share of it is
		{"ftruncate:error=ENOSPC", false},         // no room for the file to grow
		{"fsync:error=EIO", false},                // when it has grown
	} {
		t.Run(row.fault, func(t *testing.T) {
			t.Parallel()
			withinOneDay(t, func() error { return breakDisk(t, row.fault, row.always) })
		})
	}
}

// breakDisk is the journey through a fault: creations are refused or durable,
// redirects and refusals go on, and when it is over the program works again by
// itself. It returns what may be wrong because the day has ended.
func breakDisk(t *testing.T, fault string, always bool) error {
	dir := t.TempDir()
	p := start(t, dir, "--throttle-every=0", "--trusted-proxies=127.0.0.0/8", "--quota-client=12")
	c := newCaller(t, p)
	before := load(c, "198.51", 2, 12)
	if before.answers[http.StatusCreated] != 24 {
		return fmt.Errorf("before: %v", before.answers)
	}
	end := inject(t, p, fault)
	during := made{}
	for i := 0; during.answers[http.StatusServiceUnavailable] == 0; i++ {
		if i == 20 {
			return fmt.Errorf("the fault was not met: %v", during.answers)
		}
		during = load(c, fmt.Sprintf("203.%d", i), 2, 8)
		for status := range during.answers {
			if status != http.StatusCreated && status != http.StatusServiceUnavailable || during.unanswered > 0 {
				return fmt.Errorf("during: %v, %d unanswered", during.answers, during.unanswered)
			}
		}
		for slug, destination := range during.acknowledged {
			before.acknowledged[slug] = destination
		}
	}
	err := goesOn(c, before.acknowledged)
	if always {
		refused := mustAsk(t, http.StatusServiceUnavailable, "POST", p.url+"/api/links",
			"application/json", `{"url":"https://example.org/refused"}`)
		if refused.retryAfter != "5" || during.answers[http.StatusCreated] > 0 {
			err = errors.Join(err, fmt.Errorf("Retry-After %q, answers %v", refused.retryAfter, during.answers))
		}
		mustAsk(t, http.StatusServiceUnavailable, "GET", p.url+"/readyz", "", "")
	}
	end()
	mended := time.Now()
	// It tries each second, and may have to open the file first.
	for status := 0; status != http.StatusCreated; {
		if status, _, _ = c.create("198.51.77.1", "https://example.org/mended"); time.Since(mended) > 10*time.Second {
			return errors.Join(err, fmt.Errorf("status %d, 10 s after the disk was mended", status))
		}
	}
	mustAsk(t, http.StatusOK, "GET", p.url+"/readyz", "", "")
	if *tortured { // it is said after some quiet seconds
		if _, awaitErr := p.await("the store can write again"); awaitErr != nil {
			return errors.Join(err, awaitErr)
		}
	}
	if stopErr := p.stop(); stopErr != nil {
		t.Error(stopErr)
	}
	return errors.Join(err, audit(t, filepath.Join(dir, "snip.db")).holds(before.acknowledged))
}

// goesOn returns an error unless redirects go on, and refusals of the client
// that [load] has filled.
func goesOn(c *caller, links map[string]string) error {
	for slug, destination := range links {
		if location, err := c.follow(slug); err != nil || location != destination {
			return fmt.Errorf("/%s leads to %.80q, %v", slug, location, err)
		}
		if status, _, err := c.create("198.51.0.1", "https://example.org/full"); err != nil || status != http.StatusTooManyRequests {
			return fmt.Errorf("a full client was answered with %d, %v", status, err)
		}
		return nil // one is enough
	}
	return errors.New("no link to follow")
}

// TestSlowCommits lets each flush take a second: whoever waits for none does not
// notice, and whoever does is answered when the link is durable.
func TestSlowCommits(t *testing.T) {
	t.Parallel()
	needStrace(t)
	withinOneDay(t, func() error {
		const callers = 20
		dir := t.TempDir()
		p := start(t, dir, "--throttle-every=0", "--trusted-proxies=127.0.0.0/8", "--quota-client=12")
		c := newCaller(t, p)
		links := load(c, "198.51", 2, 12).acknowledged
		end := inject(t, p, "fdatasync:delay_enter=1000000")
		var waiting atomic.Int64
		waiting.Store(callers)
		var slow made
		done := make(chan struct{})
		go func() {
			defer close(done)
			slow = load(c, "203.0", callers, 1)
			waiting.Store(0)
		}()
		// Those that waited for a commit would come through a few times at most.
		asked := 0
		for waiting.Load() > 0 {
			if err := goesOn(c, links); err != nil {
				return err
			}
			asked++
		}
		<-done
		if slow.answers[http.StatusCreated] != callers || asked < 20 {
			return fmt.Errorf("answers %v; %d redirects and refusals meanwhile", slow.answers, asked)
		}
		end()
		if err := p.stop(); err != nil {
			return err
		}
		content := audit(t, filepath.Join(dir, "snip.db"))
		return errors.Join(content.holds(links), content.holds(slow.acknowledged))
	})
}

// TestHangingCommits lets flushes hang under more creations than may wait: those
// beyond are refused at once, those that wait are answered within the store's
// patience, and a late commit is whole.
func TestHangingCommits(t *testing.T) {
	t.Parallel()
	needStrace(t)
	const callers, bound = 2000, 15 * time.Second // the store's patience is 10 s
	dir := t.TempDir()
	p := start(t, dir, plenty...)
	c := newCaller(t, p)
	links := load(c, "198.51", 1, 1).acknowledged
	end := inject(t, p, "fdatasync:delay_enter=6000000")
	var mu sync.Mutex
	var wg sync.WaitGroup
	answers, atOnce := map[int]int{}, 0
	for i := range callers {
		wg.Go(func() {
			begun := time.Now()
			status, slug, err := c.create(fmt.Sprintf("203.%d.%d.1", i>>8, i&0xff), "https://example.org/hanging")
			took := time.Since(begun)
			mu.Lock()
			defer mu.Unlock()
			answers[status]++
			switch {
			case err != nil || took > bound:
				t.Errorf("status %d, %v, after %v", status, err, took)
			case status == http.StatusCreated:
				links[slug] = "https://example.org/hanging"
			case status != http.StatusServiceUnavailable:
				t.Errorf("status %d", status)
			case took < 5*time.Second:
				atOnce++
			}
		})
	}
	wg.Wait()
	end()
	if atOnce == 0 {
		t.Error("nobody was refused at once")
	}
	for slug, destination := range load(c, "198.52", 1, 1).acknowledged {
		links[slug] = destination
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	content := audit(t, filepath.Join(dir, "snip.db"))
	if err := content.holds(links); err != nil {
		t.Error(err)
	}
	t.Logf("answers %v, %d of them at once; %d links are there", answers, atOnce, len(content.slugs))
}

// TestStartOnBrokenDisk starts the program on a file that it cannot write:
// redirects come first.
func TestStartOnBrokenDisk(t *testing.T) {
	t.Parallel()
	needStrace(t)
	for _, fault := range []string{"pwrite64:error=ENOSPC", "fsync:error=EIO"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first := start(t, dir, plenty...)
			path := create(t, first, "https://example.org/before")
			if err := first.stop(); err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(fault, ":")
			p, err := startTraced(dir, filepath.Join(dir, "trace"), []string{"-e", "trace=" + name, "-e", "inject=" + fault}, plenty...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.kill)
			mustAsk(t, http.StatusFound, "GET", p.url+path, "", "")
			mustAsk(t, http.StatusServiceUnavailable, "GET", p.url+"/readyz", "", "")
			mustAsk(t, http.StatusServiceUnavailable, "POST", p.url+"/api/links", "application/json", `{"url":"https://example.org/"}`)
			p.kill()
			if n := len(audit(t, filepath.Join(dir, "snip.db")).slugs); n != 1 {
				t.Errorf("%d links, want 1", n)
			}
		})
	}
}
