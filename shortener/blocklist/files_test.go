package blocklist

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const interval = 5 * time.Second

// folder holds two lists, a.txt and b.txt, and the log of the Files that read them.
type folder struct {
	t    *testing.T
	path string
	log  logText
}

// logText is locked, because no test tells Watch that it has read it.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newFolder(t *testing.T) *folder {
	d := &folder{t: t, path: t.TempDir()}
	d.write("a.txt", "a.example\n")
	d.write("b.txt", "0.0.0.0 b.example\n||b2.example^$script\n")
	return d
}

func (d *folder) file(name string) string { return filepath.Join(d.path, name) }

func (d *folder) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(d.file(name), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *folder) files() *Files {
	return NewFiles(Config{
		Paths:  []string{d.file("a.txt"), d.file("b.txt")},
		Always: []*List{Shorteners()},
		Now:    time.Now,
		Log:    slog.New(slog.NewTextHandler(&d.log, nil)),
	})
}

func (d *folder) wantBlocked(f *Files, hosts ...string) {
	d.t.Helper()
	wanted := strings.Join(hosts, " ")
	var blocked []string
	for _, host := range []string{"a.example", "a2.example", "b.example", "b2.example", "bit.ly"} {
		if f.Blocks(host) {
			blocked = append(blocked, host)
		}
	}
	if got := strings.Join(blocked, " "); got != wanted {
		d.t.Errorf("blocked are %s, want %s", got, wanted)
	}
}

func TestReloadReadsAllFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newFolder(t)
		f := d.files()
		d.wantBlocked(f, "bit.ly")
		if err := f.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.wantBlocked(f, "a.example", "b.example", "bit.ly")
		status := f.Status()
		if want := (Status{Path: d.file("b.txt"), Report: Report{Names: 1, Skipped: 1}, Loaded: time.Now()}); len(status) != 2 || status[1] != want {
			t.Errorf("got %+v", status)
		}
		d.write("a.txt", "a2.example\n")
		d.wantBlocked(f, "a.example", "b.example", "bit.ly")
		if err := f.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.wantBlocked(f, "a2.example", "b.example", "bit.ly")
	})
}

func TestReloadKeepsWhatWasGood(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		spoil  func(d *folder, a string) error
		reason string
	}{
		{"gone", func(_ *folder, a string) error { return os.Remove(a) }, "no such file"},
		{"emptied", func(_ *folder, a string) error { return os.Truncate(a, 0) }, "names nothing to block"},
		{"a hole at its end", func(_ *folder, a string) error { return os.Truncate(a, 1<<30) }, "line 2 has more than"},
		{"a web page", func(d *folder, a string) error { d.write("a.txt", "<html>\n"); return nil }, "as web pages do"},
		{"a folder", func(_ *folder, a string) error { os.Remove(a); return os.Mkdir(a, 0o700) }, "no regular file"},
		{"a pipe", func(_ *folder, a string) error { os.Remove(a); return syscall.Mkfifo(a, 0o600) }, "no regular file"},
		{"a link to itself", func(_ *folder, a string) error { os.Remove(a); return os.Symlink(a, a) }, "a.txt"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := newFolder(t)
			f := d.files()
			if err := f.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			before := f.Status()[0]
			if err := row.spoil(d, d.file("a.txt")); err != nil {
				t.Fatal(err)
			}
			d.write("b.txt", "b2.example\n")
			err := f.Reload(t.Context())
			if err == nil || !strings.Contains(err.Error(), "block list "+d.file("a.txt")) || !strings.Contains(err.Error(), row.reason) {
				t.Errorf("got %v, want one that says %q", err, row.reason)
			}
			d.wantBlocked(f, "a.example", "b2.example", "bit.ly")
			after := f.Status()[0]
			if after.Err == nil || after.Err.Error() != err.Error() {
				t.Errorf("the status says %v, Reload %v", after.Err, err)
			}
			if after.Err = nil; after != before {
				t.Errorf("got %+v, before it was %+v", after, before)
			}
		})
	}
}

func TestReloadSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	d := newFolder(t)
	d.write("a.txt", strings.Repeat("a.example\n", 100)+"a b\n")
	f := d.files()
	if err := f.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.Status()[0].FirstBad; got == nil || got.Line != 101 {
		t.Errorf("got %v", got)
	}
	if log := d.log.String(); !strings.Contains(log, "level=WARN") || !strings.Contains(log, `line 101: \"a b\"`) {
		t.Errorf("the log does not name the line: %s", log)
	}
}

func TestReloadReadsAgainWhatChanges(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		changes int
		err     string
	}{{1, ""}, {attempts - 1, ""}, {attempts, "changed each time"}} {
		t.Run(fmt.Sprint(row.changes), func(t *testing.T) {
			t.Parallel()
			d := newFolder(t)
			f := d.files()
			changes := 0
			f.parse = func(r io.Reader) (*List, Report, error) {
				list, report, err := Parse(r)
				if changes < row.changes {
					changes++
					d.write("new", strings.Repeat("a2.example\n", changes))
					if err := os.Rename(d.file("new"), d.file("a.txt")); err != nil {
						t.Error(err)
					}
				}
				return list, report, err
			}
			err := f.Reload(t.Context())
			if row.err == "" {
				if err != nil {
					t.Error(err)
				}
				d.wantBlocked(f, "a2.example", "b.example", "bit.ly")
				return
			}
			if err == nil || !strings.Contains(err.Error(), row.err) {
				t.Errorf("got %v", err)
			}
			d.wantBlocked(f, "b.example", "bit.ly")
		})
	}
}

func TestReloadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	d := newFolder(t)
	f := d.files()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Reload(ctx); err == nil || f.Status()[1].Err == nil {
		t.Errorf("got %v", err)
	}
	d.wantBlocked(f, "bit.ly")
}

func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newFolder(t)
		f := d.files()
		if err := f.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		told, ended := make(chan os.Signal), make(chan struct{})
		go func() { f.Watch(ctx, interval, told); close(ended) }()
		look := func() { <-time.After(interval); synctest.Wait() }
		said := func(text string, want int) {
			t.Helper()
			if got := strings.Count(d.log.String(), text); got != want {
				t.Errorf("%q is %d times in the log, want %d: %s", text, got, want, &d.log)
			}
		}

		look()
		look()
		said("block list loaded", 2) // by Reload: nothing has changed

		d.write("a.txt", "a.example\na2.example\n") // a download that has begun
		look()
		d.write("a.txt", "a2.example\n")
		look()
		d.wantBlocked(f, "a.example", "b.example", "bit.ly")
		look()
		d.wantBlocked(f, "a2.example", "b.example", "bit.ly")
		look()
		said("block list loaded", 3)

		d.write("new", "a.example\n\n") // as large and as old as what it replaces
		info, err := os.Stat(d.file("a.txt"))
		if err != nil {
			t.Fatal(err)
		}
		os.Chtimes(d.file("new"), info.ModTime(), info.ModTime())
		os.Rename(d.file("new"), d.file("a.txt"))
		look()
		look()
		d.wantBlocked(f, "a.example", "b.example", "bit.ly")
		said("block list loaded", 4)

		os.Chtimes(d.file("a.txt"), info.ModTime(), info.ModTime().Add(-time.Hour))
		look()
		look()
		said("block list loaded", 5)
		os.Chmod(d.file("a.txt"), 0o640) // as when its reader was given the right
		look()
		look()
		said("block list loaded", 6)

		os.Rename(d.file("a.txt"), d.file("old"))
		look()
		look()
		look()
		d.wantBlocked(f, "a.example", "b.example", "bit.ly")
		said("no such file", 1)
		os.Rename(d.file("old"), d.file("a.txt"))
		look()
		look()
		said("block list loaded", 7)
		if err := f.Status()[0].Err; err != nil {
			t.Error(err)
		}

		d.write("b.txt", "Forbidden\n")
		look()
		look()
		look()
		d.wantBlocked(f, "a.example", "b.example", "bit.ly")
		said("has no dot", 1)
		d.write("b.txt", "b2.example\n")
		told <- syscall.SIGHUP
		synctest.Wait()
		d.wantBlocked(f, "a.example", "b2.example", "bit.ly")
		said("block list loaded", 9)

		cancel()
		<-ended
	})
}

// TestReloadUnderLoad asks without a pause while the lists change: what is on
// both sides of a change is blocked at every moment.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	d := newFolder(t)
	f := d.files()
	if err := f.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	var stop atomic.Bool
	for range 8 {
		asking.Go(func() {
			for !stop.Load() {
				if !f.Blocks("www.a.example") || !f.Blocks("b.example") || f.Blocks("c.example") {
					t.Error("the list has a gap")
					return
				}
			}
		})
	}
	for i := range 50 {
		d.write("a.txt", fmt.Sprintf("a.example\nx%d.example\n", i))
		if i%2 == 0 {
			d.write("a.txt", "<html>")
		}
		if err := f.Reload(t.Context()); (err != nil) != (i%2 == 0) {
			t.Error(err)
		}
	}
	stop.Store(true)
	asking.Wait()
}

func TestFilesLeaveTheirConfigAlone(t *testing.T) {
	t.Parallel()
	d := newFolder(t)
	always := make([]*List, 1, 8)
	always[0] = Shorteners()
	f := NewFiles(Config{Paths: []string{d.file("a.txt")}, Always: always, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err := f.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if always[:2][1] != nil {
		t.Error("the spare room of Always was written to")
	}
}
