package boltstore

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/shortener"
)

const (
	saidFault    = "the store cannot write: creations are refused, redirects go on"
	saidRecovery = "the store can write again"
)

// wantRefusing asserts the state in which nothing can be created: a refusal of
// the third kind, the reason in Ready, and redirects that go on.
func wantRefusing(t *testing.T, s *Store, c shortener.Creation, existing shortener.Slug) {
	t.Helper()
	wantUnavailable(t, s.Create(t.Context(), c))
	wantUnavailable(t, s.Ready(t.Context(), c.Day))
	if _, err := s.Get(t.Context(), existing); err != nil {
		t.Errorf("a redirect while nothing can be written: %v", err)
	}
}

// TestReadOnlyFile takes the right to write from the open file itself, refuses to
// open it for writing again, and gives it back.
func TestReadOnlyFile(t *testing.T) {
	t.Parallel()
	log := make(lines, 100)
	var mu sync.Mutex
	var current *os.File
	var readOnly atomic.Bool
	s := newStore(t, Options{
		Log:        slog.New(log),
		retryEvery: time.Millisecond,
		openFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
			if readOnly.Load() && flag&os.O_RDWR != 0 {
				return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EROFS}
			}
			f, err := os.OpenFile(name, flag, perm)
			mu.Lock()
			current = f
			mu.Unlock()
			return f, err
		},
	})
	mustCreate(t, s, noon, 1, "before")
	mustReserve(t, s, "pending")
	service, who := newService(s), quota.ClientOf(netip.MustParseAddr("192.0.2.1"))
	n := shortener.NewLink{URL: "https://example.org/", Slug: "answered"}
	made, err := service.Create(t.Context(), who, n, "0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	refused := creation(t, s, noon, 1, "refused")

	readOnly.Store(true)
	f, err := os.Open(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mu.Lock()
	err = syscall.Dup3(int(f.Fd()), int(current.Fd()), syscall.O_CLOEXEC)
	mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	wantUnavailable(t, s.Create(t.Context(), refused))
	log.wait(t, saidFault)
	log.wait(t, saidFault) // and why it cannot be opened again
	for range 100 {
		wantRefusing(t, s, refused, "before")
	}
	wantNothingReserved(t, s, "pending")
	if again, err := service.Create(t.Context(), who, n, "0123456789abcdef"); err != nil || again.Token != made.Token {
		t.Errorf("a replay while nothing can be written: %+v, %v", again, err)
	}
	wantCounted(t, s, "2026-11-29", 2)

	readOnly.Store(false)
	log.wait(t, saidRecovery)
	mustCreate(t, s, noon, 1, "after")
	wantCounted(t, s, "2026-11-29", 3)
	wantHeld(t, s, quota.Count{Held: 2})
	if err := s.Ready(t.Context(), "2026-11-29"); err != nil {
		t.Errorf("after recovery: %v", err)
	}
}

// TestBeginFails closes the database under the writer, and for a while the file
// cannot even be opened for reading.
func TestBeginFails(t *testing.T) {
	t.Parallel()
	log := make(lines, 100)
	var missing atomic.Bool
	s := newStore(t, Options{
		Log:        slog.New(log),
		retryEvery: time.Millisecond,
		openFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
			if missing.Load() {
				return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EIO}
			}
			return os.OpenFile(name, flag, perm)
		},
	})
	mustCreate(t, s, noon, 1, "before")
	c := creation(t, s, noon, 1, "refused")
	missing.Store(true)
	s.mu.Lock()
	err := s.db.Close()
	s.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	wantUnavailable(t, s.Create(t.Context(), c))
	log.wait(t, saidFault)
	log.wait(t, saidFault)
	_, err = s.Get(t.Context(), "before")
	wantUnavailable(t, err)
	missing.Store(false)
	log.wait(t, saidRecovery)
	wantCounted(t, s, "2026-11-29", 1)
	mustCreate(t, s, noon, 1, "after")
	wantCounted(t, s, "2026-11-29", 2)
}

// TestFileMoved takes the file away under the running store, and puts it back.
func TestFileMoved(t *testing.T) {
	t.Parallel()
	log := make(lines, 100)
	s := newStore(t, Options{Log: slog.New(log), retryEvery: time.Millisecond})
	mustCreate(t, s, noon, 1, "before")
	refused := creation(t, s, noon, 1, "refused")
	for name, replace := range map[string]func() error{
		"removed":  func() error { return nil },
		"replaced": func() error { return os.WriteFile(s.path, []byte("another"), 0o600) },
	} {
		if err := os.Rename(s.path, s.path+".away"); err != nil {
			t.Fatal(err)
		}
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		err := s.Create(t.Context(), refused)
		wantUnavailable(t, err)
		if err == nil || !strings.Contains(err.Error(), "put it back") {
			t.Errorf("%s: got error %v, want what to do", name, err)
		}
		wantRefusing(t, s, refused, "before")
		log.wait(t, saidFault)
		if err := os.Rename(s.path+".away", s.path); err != nil {
			t.Fatal(err)
		}
		log.wait(t, saidRecovery)
		mustCreate(t, s, noon, 1, "after-"+name)
	}
	wantCounted(t, s, "2026-11-29", 3)
}

// TestDiskFull fills a small file system of its own.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	mount := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder)
	if out, err := mount.CombinedOutput(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("mount a small file system: %v: %s", err, out)
		}
		t.Skipf("needs the right to mount a small file system (run as root): %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", folder).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	log := make(lines, 100)
	s := openAt(t, filepath.Join(folder, "snip.db"), Options{Log: slog.New(log), retryEvery: time.Millisecond})
	mustCreate(t, s, noon, 1, "before")

	ballast := filepath.Join(folder, "ballast")
	fill(t, ballast)
	made := 1
	var err error
	for i := 0; err == nil && i < 5000; i++ {
		c := creation(t, s, noon, 100+i, "full-"+string(rune('a'+i%26))+time.Duration(i).String())
		c.Links[0].Destination += string(make([]byte, 4096))
		if err = s.Create(t.Context(), c); err == nil {
			made++
		}
	}
	wantUnavailable(t, err)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got error %v, want one that names the full disk", err)
	}
	log.wait(t, saidFault)
	wantCounted(t, s, "2026-11-29", made)
	if _, err := s.Get(t.Context(), "before"); err != nil {
		t.Errorf("a redirect while the disk is full: %v", err)
	}

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, s, noon, 2, "after") // at once: there is nothing to reopen
	wantCounted(t, s, "2026-11-29", made+1)
}

// fill writes until there is no space left.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size >= 1; size /= 2 {
		for {
			if _, err := f.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
}

// TestCannotCount damages what counts, at run time.
func TestCannotCount(t *testing.T) {
	t.Parallel()
	days, today := []byte("days"), []byte("2026-11-29")
	for name, damage := range map[string]func(*bbolt.Tx) error{
		"every day is gone":    func(tx *bbolt.Tx) error { return tx.DeleteBucket(days) },
		"today is gone":        func(tx *bbolt.Tx) error { return tx.Bucket(days).DeleteBucket(today) },
		"its counters are":     func(tx *bbolt.Tx) error { return tx.Bucket(days).Bucket(today).DeleteBucket([]byte("counters")) },
		"its secret is":        func(tx *bbolt.Tx) error { return tx.Bucket(days).Bucket(today).Delete([]byte("secret")) },
		"a counter is cut":     func(tx *bbolt.Tx) error { return putCounter(tx, []byte{0, 0, 0}) },
		"a counter is below 0": func(tx *bbolt.Tx) error { return putCounter(tx, []byte{0xff, 0, 0, 0, 0, 0, 0, 1}) },
		"links are gone":       func(tx *bbolt.Tx) error { return tx.DeleteBucket(linksName) },
		"meta is gone":         func(tx *bbolt.Tx) error { return tx.DeleteBucket(metaName) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, Options{})
			mustCreate(t, s, noon, 1, "before")
			if err := s.db.Update(damage); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				_, err := s.EnsureSecret(t.Context(), "2026-11-29")
				if err == nil {
					c := shortener.Creation{Day: "2026-11-29", Links: []shortener.Link{{Slug: "refused"}}, Charges: []quota.Charge{{
						Counter: quota.Counter{Level: quota.LevelService, Period: "2026-11-29"}, Cost: 1, Max: 10,
					}}}
					err = s.Create(t.Context(), c)
					wantUnavailable(t, err)
				}
				if err == nil || errors.Is(err, quota.ErrExceeded) {
					t.Errorf("got error %v, want that it cannot be counted", err)
				}
			}
			if _, err := s.Get(t.Context(), "refused"); err == nil {
				t.Error("a link was stored that nothing counted")
			}
			if _, err := s.Get(t.Context(), "before"); err != nil && name != "links are gone" {
				t.Errorf("a redirect: %v", err)
			}
		})
	}
}

func putCounter(tx *bbolt.Tx, raw []byte) error {
	return tx.Bucket([]byte("days")).Bucket([]byte("2026-11-29")).Bucket([]byte("counters")).Put([]byte("s"), raw)
}
