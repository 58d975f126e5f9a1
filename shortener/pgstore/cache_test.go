package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"snip/shortener"
)

// shelf is a cache over a database of one link, in a time of its own.
type shelf struct {
	*cache
	t     *testing.T
	time  time.Time
	link  shortener.Target
	err   error
	loads int
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	c, err := newCache()
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{cache: c, t: t, time: noon, link: shortener.Target{Destination: "https://example.org/1"}}
	c.now = func() time.Time { return s.time }
	return s
}

func (s *shelf) load(context.Context, shortener.Slug) (shortener.Target, error) {
	s.loads++
	return s.link, s.err
}

// want asserts what a visit finds, and whether the database was asked for it.
func (s *shelf) want(destination string, err error, asked bool) {
	s.t.Helper()
	before := s.loads
	target, got := s.follow(s.t.Context(), "link", s.load)
	if target.Destination != destination || !errors.Is(got, err) || s.loads-before > 1 || (s.loads > before) != asked {
		s.t.Errorf("a visit finds %q, %v, after %d questions, want %q, %v, asked %v", target.Destination, got, s.loads-before, destination, err, asked)
	}
}

func (s *shelf) hear(epoch uint64) { s.cache.heard.Store(&heard{epoch, s.time}) }

func (s *shelf) pass(d time.Duration) { s.time = s.time.Add(d) }

const first, second = "https://example.org/1", "https://example.org/2"

func TestCacheWithoutListener(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.want(first, nil, true)
	s.link.Destination = second
	s.pass(life - 1)
	s.want(first, nil, false)
	s.pass(1)
	s.want(second, nil, true)
	s.link.Destination = first
	s.want(second, nil, false)
	s.invalidate("link")
	s.want(first, nil, true)
	s.link.Destination = second
	s.invalidateAll()
	s.want(second, nil, true)
}

func TestCacheWithListener(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.want(first, nil, true) // before anything is heard, so nothing is known of it later
	s.hear(1)
	s.pass(life)
	s.hear(1)
	s.want(first, nil, true)
	for range 10 {
		s.pass(life - 1)
		s.want(first, nil, false)
		s.hear(1)
	}
	s.link.Destination = second
	s.pass(life) // nothing more is heard
	s.want(second, nil, true)
	s.pass(life)
	s.hear(2) // heard again, but not what was in between
	s.want(second, nil, true)
	s.pass(life)
	s.hear(2)
	s.want(second, nil, false)
	s.heard.Store(nil)
	s.want(second, nil, true)
}

func TestCacheOfUnknown(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.hear(1)
	s.link, s.err = shortener.Target{}, shortener.ErrNotFound
	s.want("", shortener.ErrNotFound, true)
	s.link, s.err = shortener.Target{Destination: first}, nil
	s.pass(life - 1)
	s.want("", shortener.ErrNotFound, false)
	s.pass(1)
	s.hear(1)
	s.want(first, nil, true)

	// Who has made a link here finds it at once.
	s = newShelf(t)
	s.link, s.err = shortener.Target{}, shortener.ErrNotFound
	s.want("", shortener.ErrNotFound, true)
	s.link, s.err = shortener.Target{Destination: first}, nil
	s.born("link")
	s.want(first, nil, true)
}

func TestCacheWhileTheDatabaseIsGone(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	gone := fmt.Errorf("%w: gone", shortener.ErrUnavailable)
	s.want(first, nil, true)
	s.err = gone
	s.pass(time.Hour)
	s.want(first, nil, true)
	s.want(first, nil, false) // nobody waits to hear the same again
	s.pass(life)
	s.want(first, nil, true)
	if _, err := s.follow(t.Context(), "other", s.load); !errors.Is(err, gone) {
		t.Errorf("a link that is not there: %v", err)
	}
	s.invalidate("link") // what is known to be wrong is not served
	s.link = shortener.Target{}
	s.want("", gone, true)
}

// TestCacheIsNotLate changes and makes links while they are read.
func TestCacheIsNotLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			old     error // how the slow read ends
			because func(*cache)
		}{
			"changed": {nil, func(c *cache) { c.invalidate("link") }},
			"made":    {shortener.ErrNotFound, func(c *cache) { c.born("link") }},
		} {
			s := newShelf(t)
			reading, finish := make(chan struct{}), make(chan struct{})
			told := make(chan error)
			go func() {
				_, err := s.follow(t.Context(), "link", func(context.Context, shortener.Slug) (shortener.Target, error) {
					close(reading)
					<-finish
					return shortener.Target{Destination: "old"}, c.old
				})
				told <- err
			}()
			<-reading
			c.because(s.cache)
			s.want(first, nil, true) // not the read that is under way
			close(finish)
			if err := <-told; !errors.Is(err, c.old) {
				t.Errorf("%s: %v", name, err)
			}
			// The slow read has left nothing that is served.
			target, err := s.follow(t.Context(), "link", s.load)
			if err != nil || target.Destination != first {
				t.Errorf("%s: a visit finds %q, %v", name, target.Destination, err)
			}
		}
	})
}

// TestOneFlight has many ask at once, of whom one gives up.
func TestOneFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		var loads atomic.Int64
		finish := make(chan struct{})
		load := func(ctx context.Context, _ shortener.Slug) (shortener.Target, error) {
			loads.Add(1)
			<-finish
			return s.link, ctx.Err()
		}
		impatient, giveUp := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for i := range 100 {
			ctx := t.Context()
			if i == 0 {
				ctx = impatient
			}
			group.Go(func() {
				target, err := s.follow(ctx, "link", load)
				if i == 0 && !errors.Is(err, context.Canceled) || i > 0 && (err != nil || target != s.link) {
					t.Errorf("number %d: %v, %v", i, target, err)
				}
			})
			synctest.Wait()
		}
		giveUp()
		synctest.Wait()
		close(finish)
		group.Wait()
		if n := loads.Load(); n != 1 {
			t.Errorf("%d reads", n)
		}
	})
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.link.Destination = "https://example.org/" + strings.Repeat("x", 8000)
	for i := range 2 * cacheBytes / len(s.link.Destination) {
		if _, err := s.follow(t.Context(), shortener.Slug(fmt.Sprint("link-", i)), s.load); err != nil {
			t.Fatal(err)
		}
	}
	s.err = shortener.ErrNotFound
	for i := range 2 * unknownSlugs {
		if _, err := s.follow(t.Context(), shortener.Slug(fmt.Sprint("none-", i)), s.load); err == nil {
			t.Fatal("it was found")
		}
	}
	s.known.CleanUp()
	s.unknown.CleanUp()
	if size := s.known.WeightedSize(); size > cacheBytes || size < cacheBytes/2 {
		t.Errorf("%d bytes are kept of at most %d", size, cacheBytes)
	}
	if n := s.unknown.EstimatedSize(); n > unknownSlugs || n < unknownSlugs/2 {
		t.Errorf("%d unknown slugs are kept of at most %d", n, unknownSlugs)
	}
}
