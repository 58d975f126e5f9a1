package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

// writerFunc is an io.Writer.
type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// A backup whose reader takes its time holds nobody up, even where the file grows
// to many times its size meanwhile, and holds what was there when it began.
func TestBackupWhileTheFileGrows(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	for i := range 100 {
		mustCreate(t, s, noon, i, fmt.Sprintf("before-%d", i))
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	err = s.Backup(t.Context(), writerFunc(func(p []byte) (int, error) {
		once.Do(func() {
			long := strings.Repeat("x", 8000)
			var group sync.WaitGroup
			for host := range 16 {
				group.Go(func() {
					for i := range 40 {
						c := creation(t, s, noon, 1000+host, fmt.Sprintf("during-%d-%d", host, i))
						c.Links[0].Destination += long
						if err := s.Create(t.Context(), c); err != nil {
							t.Error(err)
						}
						if _, err := s.Get(t.Context(), c.Links[0].Slug); err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
		})
		return file.Write(p)
	}))
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	report, err := Check(path)
	if err != nil || report.Err() != nil || len(report.Doubts) > 0 || report.Links != 100 || report.Days[0].Links != 100 {
		t.Errorf("%+v, %v", report, err)
	}
	if used := s.db.Info().Data; used == 0 {
		t.Error("the file is not mapped")
	}
	wantCounted(t, s, "2026-11-29", 100+16*40)
}

// A file that has to be opened again does not wait for a slow reader with redirects
// held up, and the copy is not taken for whole.
func TestBackupEndsWhereTheFileIsOpenedAgain(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{retryEvery: time.Millisecond})
	mustCreate(t, s, noon, 1, "before")
	begun, release := make(chan struct{}), make(chan struct{})
	outcome := make(chan error)
	go func() {
		var once sync.Once
		outcome <- s.Backup(t.Context(), writerFunc(func(p []byte) (int, error) {
			once.Do(func() {
				close(begun)
				<-release
			})
			return len(p), nil
		}))
	}()
	<-begun
	s.trouble.Store(&trouble{cause: errors.New("a flush failed"), reopen: true})
	for s.copying.TryRLock() { // until the writer waits for the copy
		s.copying.RUnlock()
		runtime.Gosched()
	}
	for range 100 {
		if _, err := s.Get(t.Context(), "before"); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	if err := <-outcome; err == nil || !strings.Contains(err.Error(), "a flush failed") {
		t.Errorf("got error %v, want why the copy ended", err)
	}
	for s.Ready(t.Context(), "2026-11-29") != nil {
		runtime.Gosched()
	}
	mustCreate(t, s, noon, 1, "after")
}

func TestBackupRefuses(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var to bytes.Buffer
	if err := s.Backup(ctx, &to); err == nil {
		t.Error("a copy that nobody waits for is made")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantUnavailable(t, s.Backup(t.Context(), &to))
	if to.Len() > 0 {
		t.Errorf("%d bytes were written", to.Len())
	}
}

// A restored copy holds all that the file held, goes on where it ended, and takes
// no more room than it needs.
func TestRestore(t *testing.T) {
	t.Parallel()
	from := variedFile(t)
	path := filepath.Join(t.TempDir(), "restored.db")
	report, err := Restore(from, path, "")
	if err != nil || report.Links != 7 || report.Reservations != 2 || report.Answers != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || info.Size() >= growth {
		t.Errorf("%v, %v", info, err)
	}
	want, got := contentOf(t, from), contentOf(t, path)
	if want != got {
		t.Errorf("restored:\n%s\nwant:\n%s", got, want)
	}
	s := openAt(t, path, Options{})
	if _, err := s.Act(t.Context(), shortener.Act{Line: shortener.AuditLine{At: noon, Action: "test"}}); err != nil {
		t.Fatal(err)
	}
	if lines, err := s.Audit(t.Context(), 0, 1); err != nil || len(lines) != 1 || lines[0].Number != 4 {
		t.Errorf("the audit log goes on with %+v, %v", lines, err)
	}
	if _, err := Restore(from, path, ""); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got error %v, want that it exists", err)
	}
	if _, err := Restore(from, path, path+".aside"); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got error %v, want that it is in use", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	changed := contentOf(t, path)
	for _, aside := range []string{".aside", ".again"} {
		// The file itself is a file to restore: that makes it compact.
		if _, err := Restore(path, path, path+aside); err != nil {
			t.Fatal(err)
		}
		if contentOf(t, path) != changed || contentOf(t, path+aside) != changed {
			t.Errorf("%s: the content has changed", aside)
		}
	}
	if _, err := Restore(from, path, path+".aside"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got error %v, want that the name is taken", err)
	}
	if contentOf(t, path) != changed {
		t.Error("a restore that was refused has changed the file")
	}
	if err := os.WriteFile(path, []byte("nobody can open this"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(from, path, path+".broken"); err != nil || contentOf(t, path) != want {
		t.Errorf("over a file that is damaged: %v", err)
	}
	left, err := filepath.Glob(path + ".restore-*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// contentOf returns all that the store's readers find in a file, as text.
func contentOf(t *testing.T, path string) string {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var text strings.Builder
	links, _, err := s.Scan(t.Context(), "", 1000)
	for _, m := range links {
		fmt.Fprintln(&text, m.Link, m.Visited, m.Visits)
	}
	keys, keysErr := s.LinksOf(t.Context(), theKey.ID, "", 10)
	entries, entriesErr := s.Entries(t.Context(), shortener.EntryKey)
	lines, linesErr := s.Audit(t.Context(), 0, 10)
	secret, secretErr := s.Secret(t.Context(), "2026-11-29")
	if err := errors.Join(err, keysErr, entriesErr, linesErr, secretErr); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(&text, keys, entries, lines, secret)
	return text.String()
}

// theKey has made a link of each variedFile.
var theKey = quota.Key{ID: 7, Limit: 10}
