package boltstore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"snip/shortener"
)

// What a file keeps is read, and nobody opens the file meanwhile.
func TestContents(t *testing.T) {
	t.Parallel()
	path := variedFile(t)
	c, found, err := OpenContents(path)
	if err != nil {
		t.Fatal(err)
	}
	links := int64(0)
	err = c.Links(func(l shortener.KeptLink) error {
		links++
		if counted := l.Visited == 1; counted != (l.Slug == "limited") {
			t.Errorf("%d visits of %s were counted", l.Visited, l.Slug)
		}
		return nil
	})
	if err != nil || links != found.Links {
		t.Errorf("%d links, %v, want %d", links, err, found.Links)
	}
	stop := errors.New("stop")
	if err := c.Counters(func(shortener.KeptCounter) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got error %v, want that of the function", err)
	}
	if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("it can be opened meanwhile: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// The counters of a day that is being removed are left out, and its secret is gone.
func TestContentsLeaveOutWhatIsRemoved(t *testing.T) {
	t.Parallel()
	path := variedFile(t)
	changeFile(t, path, edit("days/2026-11-29", func(b *bbolt.Bucket) error {
		return errors.Join(b.Delete([]byte("secret")), b.Put([]byte("swept"), []byte{1}))
	}))
	changeFile(t, path, remove("meta", "newest"))
	c, _, err := OpenContents(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = errors.Join(
		c.Secrets(func(s shortener.KeptSecret) error { return fmt.Errorf("the secret of %s", s.Period) }),
		c.Counters(func(k shortener.KeptCounter) error { return fmt.Errorf("the counter %v", k) }))
	if err != nil {
		t.Error(err)
	}
}

func TestOpenContentsRefuses(t *testing.T) {
	t.Parallel()
	for _, refused := range []struct {
		name, want string
		change     func(*testing.T, string)
	}{
		{"a damaged record", "damaged", func(t *testing.T, path string) { changeFile(t, path, put("links", "plain", []byte{0xff})) }},
		{"an older file", "start snip on it once", func(t *testing.T, path string) {
			changeFile(t, path, put("meta", "format", []byte{0, 0, 0, 0, 0, 0, 0, 3}))
		}},
		{"no file", "no such file", func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}},
		{"a server's file", "in use", func(t *testing.T, path string) {
			s, err := Open(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
		}},
	} {
		t.Run(refused.name, func(t *testing.T) {
			t.Parallel()
			path := variedFile(t)
			refused.change(t, path)
			if c, _, err := OpenContents(path); err == nil || !strings.Contains(err.Error(), refused.want) {
				t.Errorf("got %v, %v, want %q", c, err, refused.want)
			}
		})
	}
}

// The ID tells files apart, and a file from what it was before a write.
func TestContentsID(t *testing.T) {
	t.Parallel()
	id := func(path string) string {
		c, _, err := OpenContents(path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ID()
	}
	path := variedFile(t)
	first := id(path)
	if again := id(path); again != first {
		t.Errorf("it was %s and is %s", first, again)
	}
	if other := id(variedFile(t)); other == first {
		t.Errorf("another file has the same: %s", other)
	}
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustCreate(t, s, noon, 9, "later")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if later := id(path); later == first {
		t.Errorf("after a write it is still %s", later)
	}
}
