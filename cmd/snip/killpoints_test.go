package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// killPoint names what the program was about to do with its file, or with a
// client, when it was killed; it has not done it.
func killPoint(calls []call) string {
	var last call // on the data file
	waiting := false
	flushOf := "nothing"
	answering := map[string]bool{}
	for _, c := range calls {
		if c.name == "write" {
			if slug, ok := slugIn(c.text); ok {
				answering[slug] = c.begun
			}
			continue
		}
		if last, waiting = c, c.begun; waiting {
			continue
		}
		switch {
		case c.name == "pwrite64" && len(c.text) == metaPages*pageSize:
			flushOf = "what was found"
		case c.name == "pwrite64" && c.number < metaPages*pageSize:
			flushOf = "the meta page"
		case c.name == "pwrite64":
			flushOf = "pages"
		case c.name == "ftruncate":
			flushOf = "the growth"
		}
	}
	switch {
	case waiting && last.name == "pwrite64" && len(last.text) == metaPages*pageSize:
		return "writing what was found"
	case waiting && last.name == "pwrite64" && last.number < metaPages*pageSize:
		return "writing the meta page"
	case waiting && last.name == "pwrite64":
		return "writing a page"
	case waiting && last.name == "ftruncate":
		return "growing"
	case waiting:
		return "flushing " + flushOf
	}
	for _, unanswered := range answering {
		if unanswered {
			return "answering"
		}
	}
	return "elsewhere"
}

// TestKillPoints kills the program before each of the steps that make a commit,
// and before an answer. Whatever the step, counters equal links, every link that
// was acknowledged is there, and the next process works.
func TestKillPoints(t *testing.T) {
	t.Parallel()
	needStrace(t)
	base := newBase(t)
	random := rand.New(rand.NewPCG(*moments, 1))
	reached := map[string]int{}
	// strace counts calls in each thread, and the writer moves between them: where
	// a kill lands is looked up afterwards, until each point was met.
	points := []string{"writing a page", "flushing pages", "writing the meta page", "flushing the meta page",
		"growing", "answering"}
	missing := func() (m []string) {
		for _, p := range points {
			if reached[p] == 0 {
				m = append(m, p)
			}
		}
		return m
	}
	// Those that mostly meet each point once, then any of the first few commits.
	usually := []string{"pwrite64:5", "pwrite64:3", "fdatasync:1", "fdatasync:2", "ftruncate:1", "fsync:1", "write:3"}
	later := []struct {
		name string
		most int
	}{{"pwrite64", 24}, {"fdatasync", 8}, {"ftruncate", 1}, {"fsync", 2}, {"write", 6}}
	usual, most := rounds(len(usually), 500), rounds(120, 1000)
	for i := 0; i < usual || len(missing()) > 0; i++ {
		if i == most {
			t.Fatalf("never killed when %q: %v", missing(), reached)
		}
		c := later[i%len(later)]
		call := fmt.Sprint(c.name, ":", 1+random.IntN(c.most))
		if i < 2*len(usually) {
			call = usually[i%len(usually)]
		}
		reached[killAt(t, base, strings.Replace(call, ":", ":signal=KILL:when=", 1))]++
		if t.Failed() {
			t.Fatalf("round %d, seed %d", i, *moments)
		}
	}
	t.Logf("killed when: %v", reached)
}

// killAt makes links from a few connections until strace kills the program, and
// returns when that was.
func killAt(t *testing.T, base []byte, fault string) string {
	t.Helper()
	dir := t.TempDir()
	file, trace := filepath.Join(dir, "snip.db"), filepath.Join(dir, "trace")
	if err := os.WriteFile(file, base, 0o600); err != nil {
		t.Fatal(err)
	}
	acknowledged := map[string]string{}
	p, err := startTraced(dir, trace, []string{"-e", diskCalls, "-e", "inject=" + fault}, plenty...)
	if err == nil { // else it was killed before it served
		acknowledged = load(newCaller(t, p), "198.51", 4, 10).acknowledged
		p.kill()
	}
	calls, err := readTrace(trace)
	if err != nil {
		t.Fatal(err)
	}
	if err := audit(t, file).holds(acknowledged); err != nil {
		t.Error(err)
	}
	next := start(t, dir, plenty...)
	path := create(t, next, "https://example.org/next")
	mustAsk(t, http.StatusFound, "GET", next.url+path, "", "")
	if err := next.stop(); err != nil {
		t.Error(err)
	}
	if err := audit(t, file).holds(acknowledged); err != nil {
		t.Error(err)
	}
	return killPoint(calls)
}

// TestKillFirstStart kills the program while it makes its file. The next start
// finds a whole file or none, and works.
func TestKillFirstStart(t *testing.T) {
	t.Parallel()
	needStrace(t)
	killed := 0
	for _, name := range []string{"pwrite64", "fdatasync", "fsync", "linkat", "unlinkat"} {
		for when := 1; when <= rounds(2, 10); when++ {
			dir := t.TempDir()
			fault := fmt.Sprintf("%s:signal=KILL:when=%d", name, when)
			p, err := startTraced(dir, filepath.Join(dir, "trace"), []string{"-e", "trace=" + name, "-e", "inject=" + fault})
			if err != nil {
				killed++
			} else {
				p.kill()
			}
			next := start(t, dir)
			create(t, next, "https://example.org/next")
			if err := next.stop(); err != nil {
				t.Errorf("%s: %v", fault, err)
			}
			audit(t, filepath.Join(dir, "snip.db"))
		}
	}
	if killed < 4 {
		t.Errorf("killed %d times while starting", killed)
	}
}
