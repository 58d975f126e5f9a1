package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// diskCalls is what strace shows of the disk and of what clients were told.
const diskCalls = "trace=pwrite64,ftruncate,fdatasync,fsync,write"

// recording is what one or more processes did to a data file, in order.
type recording struct {
	base         []byte // before the first event
	events       []event
	acknowledged map[string]string // by slug: what clients were told, by their own account
	states       []state
}

// state is which links the file holds once a commit is there.
type state struct {
	at    int // the event that makes it so
	slugs map[string]bool
}

// record starts the program on the file in dir, does something with it, kills it,
// and adds what happened. Options are strace's.
func (r *recording) record(t *testing.T, dir string, options []string, act func(*process) made) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	p, err := startTraced(dir, trace, append([]string{"-e", diskCalls}, options...), plenty...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	maps.Copy(r.acknowledged, act(p).acknowledged)
	p.kill()
	calls, err := readTrace(trace)
	if err != nil {
		t.Fatal(err)
	}
	events, err := eventsOf(calls)
	if err != nil {
		t.Fatal(err)
	}
	r.events = append(r.events, events...)
}

// newRecording puts a data file into dir.
func newRecording(t *testing.T, dir string, base []byte) *recording {
	t.Helper()
	r := &recording{base: base, acknowledged: map[string]string{}}
	if err := os.WriteFile(filepath.Join(dir, "snip.db"), r.base, 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// finish checks the recording against the file that it led to, and works out
// which links each commit left.
func (r *recording) finish(t *testing.T, dir string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "snip.db"))
	if err != nil {
		t.Fatal(err)
	}
	if string(replay(r.base, r.events)) != string(content) {
		t.Fatal("the recording does not lead to the file")
	}
	path := filepath.Join(t.TempDir(), "snip.db")
	add := func(at int, image []byte) {
		content, err := readImage(path, image)
		if err != nil {
			t.Fatal(err)
		}
		r.states = append(r.states, state{at, content.slugs})
	}
	add(0, r.base)
	told := 0
	for i, e := range r.events {
		if e.meta() {
			add(i, replay(r.base, r.events[:i+1]))
		}
		if e.kind == eventAcknowledge {
			told++
			if r.acknowledged[e.data] == "" {
				t.Fatalf("the recording acknowledges %s, which nobody has got", e.data)
			}
		}
	}
	if told < len(r.acknowledged) {
		t.Fatalf("%d links were acknowledged, and the recording shows %d", len(r.acknowledged), told)
	}
}

func readImage(path string, image []byte) (fileContent, error) {
	if err := os.WriteFile(path, image, 0o600); err != nil {
		return fileContent{}, err
	}
	return readFile(path)
}

// judge returns what is wrong with an image of the disk, when the power failed
// after the events. It must be sound and counted, hold every link that was
// acknowledged by then, and be a whole commit: the last one that was flushed, or
// a later one.
func (r *recording) judge(path string, image []byte, events int) error {
	content, err := readImage(path, image)
	if err != nil {
		return err
	}
	told := map[string]string{}
	for _, e := range r.events[:events] {
		if e.kind == eventAcknowledge {
			told[e.data] = r.acknowledged[e.data]
		}
	}
	err = errors.Join(content.counted(nil), content.holds(told))
	flushed := durable(r.events[:events])
	for i, s := range r.states {
		superseded := i+1 < len(r.states) && r.states[i+1].at < flushed
		if !superseded && s.at <= events && maps.Equal(content.slugs, s.slugs) {
			return err
		}
	}
	return errors.Join(err, fmt.Errorf("its %d links are not those of a commit that may be there", len(content.slugs)))
}

// cuts cuts the power at moments between two events, and asserts each time that
// nothing is wrong, and every third time that the program works on what is left.
func (r *recording) cuts(t *testing.T, n, from, to int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snip.db")
	for i := range n {
		random := rand.New(rand.NewPCG(*moments, uint64(i)))
		at := from + random.IntN(min(to, len(r.events))+1-from)
		image := cut(r.base, r.events[:at], random)
		if err := r.judge(path, image, at); err != nil {
			t.Errorf("cut %d of seed %d, after event %d of %d: %v", i, *moments, at, len(r.events), err)
			continue
		}
		if i%3 > 0 {
			continue
		}
		s, err := serveSite(path, time.Now, plenty...)
		if err != nil {
			t.Fatal(err)
		}
		status, _ := s.create(t, request{destination: "https://example.org/after"})
		if status != http.StatusCreated {
			t.Errorf("cut %d of seed %d: a creation after it was answered with %d", i, *moments, status)
		}
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
		audit(t, path)
	}
}

// TestPowerCut cuts the power at any moment while links are made and the file
// grows.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	needStrace(t)
	dir := t.TempDir()
	r := newRecording(t, dir, newBase(t))
	r.record(t, dir, nil, func(p *process) made { return load(newCaller(t, p), "198.51", 4, 15) })
	r.finish(t, dir)
	if n := len(r.acknowledged); n != 60 {
		t.Fatalf("%d links were made, want 60", n)
	}
	if !slices.ContainsFunc(r.events, func(e event) bool { return e.kind == eventResize }) {
		t.Fatal("the file did not grow")
	}
	r.cuts(t, rounds(200, 5000), 0, len(r.events))
	r.lies(t)
}

// lies shows that the judgement can fail: a disk that loses a write of the newest
// commit, which it had said it had flushed, is found out. Of the pages only those
// are lost that were never written before: where an older page shows through,
// bbolt's check was seen to follow buckets in a circle until the process ended.
func (r *recording) lies(t *testing.T) {
	t.Helper()
	used := map[int64]bool{}
	for at := int64(0); at < int64(len(r.base)); at += pageSize {
		used[at] = true
	}
	var fresh []int // writes of pages that are new, since the last commit
	metas, pages := 0, 0
	for i, e := range r.events {
		if e.kind == eventWrite && !used[e.offset] {
			fresh = append(fresh, i)
			used[e.offset] = true
		}
		if !e.meta() {
			continue
		}
		// What the next commit begins with is not there yet, the answers are.
		end := len(r.events)
		if next := slices.IndexFunc(r.events[i+1:], func(e event) bool { return e.kind == eventWrite || e.kind == eventResize }); next >= 0 {
			end = i + 1 + next
		}
		told := slices.ContainsFunc(r.events[i:end], func(e event) bool { return e.kind == eventAcknowledge })
		for _, lost := range append(fresh, i) {
			if lost == i && !told {
				continue // nobody would miss it
			}
			lying := slices.Delete(slices.Clone(r.events[:end]), lost, lost+1)
			// A path for each: what panics over a page may leave its file locked.
			if r.judge(filepath.Join(t.TempDir(), "snip.db"), replay(r.base, lying), len(lying)) == nil {
				t.Errorf("a disk that lost the write at %d, event %d, was not found out", r.events[lost].offset, lost)
			}
			if pages++; lost == i {
				metas++
			}
		}
		if fresh = nil; metas >= 4 && pages-metas >= 8 {
			break
		}
	}
	if metas < 3 || pages-metas < 3 {
		t.Errorf("%d lies were judged, %d of them about the newest commit", pages, metas)
	}
}

// TestPowerCutAfterKill kills the program between writing and flushing what makes
// a commit the newest, and cuts the power during the first commits of the next
// process. That one has read what only the system's cache holds.
func TestPowerCutAfterKill(t *testing.T) {
	t.Parallel()
	needStrace(t)
	const attempts = 30
	base := newBase(t)
	for i := range attempts {
		dir := t.TempDir()
		r := newRecording(t, dir, base)
		// strace counts in each thread, and the writer moves between them.
		r.record(t, dir, []string{"-e", fmt.Sprintf("inject=fdatasync:signal=KILL:when=%d", 2+i%4*2)},
			func(p *process) made { return load(newCaller(t, p), "198.51", 2, 8) })
		if !r.endsUnflushed() {
			continue
		}
		killed := len(r.events)
		r.record(t, dir, nil, func(p *process) made { return load(newCaller(t, p), "198.51", 2, 2) })
		r.finish(t, dir)
		r.cuts(t, rounds(60, 1000), killed, killed+30)
		return
	}
	t.Fatalf("the program was not killed at that moment in %d attempts", attempts)
}

// endsUnflushed tells whether the last write makes a commit the newest and was not
// flushed.
func (r *recording) endsUnflushed() bool {
	for _, e := range slices.Backward(r.events) {
		switch e.kind {
		case eventWrite:
			return e.meta()
		case eventFlush, eventFailedFlush:
			return false
		}
	}
	return false
}

// TestPowerCutAfterFailedFlush lets flushes fail for a while, of which Linux
// forgets what they were to write, and cuts the power after the program has
// opened the file again.
func TestPowerCutAfterFailedFlush(t *testing.T) {
	t.Parallel()
	needStrace(t)
	dir := t.TempDir()
	r := newRecording(t, dir, newBase(t))
	failed := -1
	r.record(t, dir, []string{"-e", "inject=fdatasync:error=EIO:when=6"}, func(p *process) made {
		c := newCaller(t, p)
		m := load(c, "198.51", 2, 15)
		for begun := time.Now(); ; {
			if status, slug, err := c.create("198.52.0.1", "https://example.org/again"); status == http.StatusCreated {
				m.acknowledged[slug] = "https://example.org/again"
				break
			} else if err != nil || time.Since(begun) > patience {
				t.Fatalf("status %d, %v", status, err)
			}
		}
		maps.Copy(m.acknowledged, load(c, "198.51", 2, 5).acknowledged)
		return m
	})
	r.finish(t, dir)
	for i, e := range r.events {
		if e.kind == eventFailedFlush && failed < 0 {
			failed = i
		}
	}
	if failed < 0 {
		t.Fatal("no flush failed")
	}
	r.cuts(t, rounds(60, 1000), failed, failed+60)
}
