package boltstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/shortener"
)

// hold keeps the writer busy with an operation of its own until release is
// called. It returns once the writer has begun it.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	begun, held := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	begin := sync.OnceFunc(func() { close(begun) })
	wg.Go(func() {
		for !closed(begun) { // on a busy machine its wait may be over before its turn
			_ = s.submit(context.Background(), func(*bbolt.Tx) error {
				begin()
				<-held
				return nil
			})
		}
	})
	<-begun
	var once sync.Once
	release = func() {
		once.Do(func() { close(held) })
		wg.Wait()
	}
	t.Cleanup(release)
	return release
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func newStore(t testing.TB, o Options) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "snip.db"), o)
}

func TestWithdrawnIsNeverWritten(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	c := creation(t, s, noon, 1, "gone")
	release := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	outcome := make(chan error)
	go func() { outcome <- s.Create(ctx, c) }()
	cancel()
	if err := <-outcome; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want the context's", err)
	}
	release()
	mustCreate(t, s, noon, 1, "next") // behind the withdrawn one in the queue
	wantCounted(t, s, "2026-11-29", 1)
}

func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	c := creation(t, s, noon, 1, "waiting")
	s.patience = 10 * time.Millisecond
	release := hold(t, s)
	wantUnavailable(t, s.Create(t.Context(), c))
	release()

	// One that was begun waits no longer either, and is then there or not as a
	// whole. On a busy machine it may time out before that; then it is tried again.
	for {
		begun, held := make(chan struct{}), make(chan struct{})
		outcome := make(chan error, 1)
		go func() {
			outcome <- s.submit(context.Background(), func(tx *bbolt.Tx) error {
				close(begun)
				<-held
				return s.create(tx, c, [][]byte{{}})
			})
		}()
		select {
		case <-begun:
			err := <-outcome
			close(held)
			wantUnavailable(t, err)
			if !strings.Contains(err.Error(), "unknown") {
				t.Errorf("got error %v, want that the outcome is unknown", err)
			}
			return
		case err := <-outcome:
			wantUnavailable(t, err)
		}
	}
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	c := creation(t, s, noon, 1, "too-many")
	release := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range queueLength {
		wg.Go(func() {
			err := s.submit(ctx, func(*bbolt.Tx) error { return nil })
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v, want the context's", err)
			}
		})
	}
	for len(s.queue) < queueLength {
		select {
		case <-t.Context().Done():
			t.Fatal("the queue never filled")
		default:
		}
	}
	wantUnavailable(t, s.Create(t.Context(), c))
	counts, err := s.Counts(t.Context(), []quota.Counter{c.Charges[0].Counter})
	if err != nil || counts[0] != (quota.Count{}) {
		t.Errorf("reading beside a full queue: %v, %v", counts, err)
	}
	cancel()
	wg.Wait()
	release()
	for len(s.queue) == queueLength { // the withdrawn ones, until the writer comes by
		if t.Context().Err() != nil {
			t.Fatal("the queue never emptied")
		}
	}
	mustCreate(t, s, noon, 1, "later")
	wantCounted(t, s, "2026-11-29", 1)
}

// TestNeighbours puts good and bad operations into one transaction.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for _, c := range []struct {
		name  string
		apply func(*Store, *bbolt.Tx, shortener.Creation) error // with the first neighbour's slug
		want  int                                               // links of the two good neighbours
	}{
		{"a refusal disturbs nobody", func(*Store, *bbolt.Tx, shortener.Creation) error { return refused }, 2},
		{"a taken slug costs nothing", func(s *Store, tx *bbolt.Tx, c shortener.Creation) error {
			return s.create(tx, c, [][]byte{{}})
		}, 2},
		{"a link that cannot be put fails all", func(s *Store, tx *bbolt.Tx, c shortener.Creation) error {
			c.Links[0].Slug = "" // bbolt wants a key
			return s.create(tx, c, [][]byte{{}})
		}, 0},
		{"half a write fails all", func(_ *Store, tx *bbolt.Tx, _ shortener.Creation) error {
			return torn(errors.Join(refused, tx.Bucket(linksName).Put([]byte("half"), []byte("half"))))
		}, 0},
		{"a panic fails all and the writer goes on", func(_ *Store, tx *bbolt.Tx, _ shortener.Creation) error {
			_ = tx.Bucket(linksName).Put([]byte("half"), []byte("half"))
			panic("a bug")
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, Options{})
			first, last := creation(t, s, noon, 1, "first"), creation(t, s, noon, 2, "last")
			between := creation(t, s, noon, 3, "first")
			release := hold(t, s)
			var wg sync.WaitGroup
			failed := make(chan error, 3)
			queued := 0
			submit := func(run func() error) {
				wg.Go(func() { failed <- run() })
				for queued++; len(s.queue) < queued; {
					if t.Context().Err() != nil {
						t.Fatal("it was never queued")
					}
				}
			}
			submit(func() error { return s.Create(context.Background(), first) })
			submit(func() error {
				return s.submit(context.Background(), func(tx *bbolt.Tx) error { return c.apply(s, tx, between) })
			})
			submit(func() error { return s.Create(context.Background(), last) })
			release()
			wg.Wait()
			close(failed)
			errs := 0
			for err := range failed {
				if err != nil {
					errs++
				}
			}
			if errs != 3-c.want {
				t.Errorf("%d of 3 failed, want %d", errs, 3-c.want)
			}
			wantCounted(t, s, "2026-11-29", c.want)
			if _, err := s.Get(t.Context(), "half"); !errors.Is(err, shortener.ErrNotFound) {
				t.Errorf("half a write stayed: %v", err)
			}
			mustCreate(t, s, noon, 3, "after")
		})
	}
}

func TestCloseFinishesWhatHasQueued(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "snip.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	release := hold(t, s)
	const n = 20
	for i := range n {
		wg.Go(func() {
			put := func(tx *bbolt.Tx) error {
				return torn(tx.Bucket(linksName).Put(fmt.Appendf(nil, "queued-%d", i), []byte("x")))
			}
			if err := s.submit(context.Background(), put); err != nil {
				t.Errorf("number %d: %v", i, err)
			}
		})
	}
	for len(s.queue) < n {
		if t.Context().Err() != nil {
			t.Fatal("the queue never filled")
		}
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	<-s.closing
	release()
	wg.Wait()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	wantUnavailable(t, s.submit(t.Context(), func(*bbolt.Tx) error { return nil }))
	again := openAt(t, path, Options{})
	err = again.view(func(tx *bbolt.Tx) error {
		if got := tx.Bucket(linksName).Stats().KeyN; got != n {
			t.Errorf("%d of %d queued writes are there", got, n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A flood of visits to one link does not fill the queue that all links share.
func TestVisitsOfOneLinkAreBounded(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	for i, slug := range []string{"flooded", "other"} {
		c := creation(t, s, noon, i, slug)
		c.Links[0].MaxVisits = 10_000
		if err := s.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	release := hold(t, s)
	var wg sync.WaitGroup
	visit := func(slug shortener.Slug, queued int) {
		wg.Go(func() {
			if _, err := s.Visit(context.Background(), slug); err != nil {
				t.Errorf("%s: %v", slug, err)
			}
		})
		for len(s.lesser) < queued {
			if t.Context().Err() != nil {
				t.Fatal("it was never queued")
			}
		}
	}
	for i := range visitsAtOnce {
		visit("flooded", i+1)
	}
	_, err := s.Visit(t.Context(), "flooded")
	wantUnavailable(t, err)
	visit("other", visitsAtOnce+1)
	release()
	wg.Wait()
	for slug, want := range map[shortener.Slug]int64{"flooded": visitsAtOnce, "other": 1} {
		if got, err := s.Visited(t.Context(), slug); err != nil || got != want {
			t.Errorf("%s has %d visits, %v, want %d", slug, got, err, want)
		}
	}
	if _, err := s.Visit(t.Context(), "flooded"); err != nil {
		t.Errorf("when the flood is over: %v", err)
	}
}
