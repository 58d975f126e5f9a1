package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

func TestReopen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "snip.db")
	first, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustCreate(t, first, noon, 1, "kept")
	want, err := first.Get(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := first.Secret(t.Context(), "2026-11-29")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, path, Options{})
	if got, err := s.Get(t.Context(), "kept"); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if got, err := s.Secret(t.Context(), "2026-11-29"); err != nil || got != secret {
		t.Errorf("the day's secret changed: %v", err)
	}
	mustCreate(t, s, noon, 1, "more")
	wantCounted(t, s, "2026-11-29", 2)
	left, err := filepath.Glob(path + ".new-*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	good := filepath.Join(t.TempDir(), "good.db")
	s, err := Open(good, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		mustCreate(t, s, noon, i, fmt.Sprintf("link-%d", i))
	}
	var copied bytes.Buffer // without the room to grow at the end of the file
	if err := errors.Join(s.Backup(t.Context(), &copied), s.Close()); err != nil {
		t.Fatal(err)
	}
	whole := copied.Bytes()
	change := func(t *testing.T, path string, update func(*bbolt.Tx) error) {
		t.Helper()
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Update(update); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		content []byte
		update  func(*bbolt.Tx) error
		want    string
	}{
		"empty":              {content: []byte{}, want: "is empty"},
		"half a page":        {content: whole[:2048], want: "damaged"},
		"one page":           {content: whole[:os.Getpagesize()], want: "restore a backup"},
		"two pages":          {content: whole[:2*os.Getpagesize()], want: "restore a backup"},
		"cut in the middle":  {content: whole[:len(whole)/2], want: "restore a backup"},
		"text":               {content: []byte(strings.Repeat("not a database\n", 1000)), want: "not a file of Snip's"},
		"zeros":              {content: make([]byte, len(whole)), want: "not a file of Snip's"},
		"another's":          {content: whole, want: "not a file of Snip's", update: func(tx *bbolt.Tx) error { return tx.DeleteBucket(metaName) }},
		"links missing":      {content: whole, want: "restore a backup", update: func(tx *bbolt.Tx) error { return tx.DeleteBucket(linksName) }},
		"counters missing":   {content: whole, want: "restore a backup", update: func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("days")) }},
		"of a newer program": {content: whole, want: "use a newer program", update: newerFormat},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "snip.db")
			if err := os.WriteFile(path, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			if c.update != nil {
				change(t, path, c.update)
			}
			wantRefused(t, path, c.want)
			if c.update == nil {
				if after, err := os.ReadFile(path); err != nil || string(after) != string(c.content) {
					t.Errorf("the file was changed: %v", err)
				}
			}
		})
	}
	t.Run("a folder", func(t *testing.T) {
		t.Parallel()
		wantRefused(t, t.TempDir(), "not a file")
	})
	t.Run("a link to nothing", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "snip.db")
		if err := os.Symlink(path+".missing", path); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, path, "links to, does not exist")
	})
	t.Run("no folder", func(t *testing.T) {
		t.Parallel()
		wantRefused(t, filepath.Join(t.TempDir(), "missing", "snip.db"), "does not exist")
	})
	t.Run("held by another", func(t *testing.T) {
		t.Parallel()
		held := newStore(t, Options{})
		wantRefused(t, held.path, fmt.Sprintf("process id %d", os.Getpid()))
	})
}

func newerFormat(tx *bbolt.Tx) error {
	return tx.Bucket(metaName).Put(formatKey, binary.BigEndian.AppendUint64(nil, format+1))
}

// wantRefused asserts that the file is not opened, with one line that says why.
func wantRefused(t *testing.T, path, want string) {
	t.Helper()
	s, err := Open(path, Options{})
	if err == nil {
		_ = s.Close()
		t.Fatal("it was opened")
	}
	if text := err.Error(); !strings.Contains(text, want) || !strings.Contains(text, path) || strings.Contains(text, "\n") {
		t.Errorf("got %q, want one line with the path and %q", text, want)
	}
}
