// Package boltstore is the durable store in one bbolt file.
//
// It promises that links and the counters that allow them are one commit, that a
// refusal writes nothing, and that reading goes on whatever happens to writing.
// One goroutine writes: it drains whatever has queued into one transaction, so
// that many creations share the two flushes of a commit, without a timer.
// bbolt.Batch was rejected: it adds a delay and runs refused closures again.
//
// It is for one process: the file is locked while it is open. Start with [Open].
package boltstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
	"snip/shortener"
)

var (
	metaName  = []byte("meta")
	linksName = []byte("links")

	formatKey = []byte("format") // in meta: the file's format
	newestKey = []byte("newest") // in meta: the newest day that has a counted link
)

// format is what this program writes. A file with a higher one is refused. In
// format 1 all keys were slugs, and it is rewritten. To format 2 nothing but API keys
// was new, and to format 3 nothing but reservations and answers, of which older
// programs would lose what they do not know, and make the second link of a retry.
const format = 4

// linksFill is how full a page of links is left when it is split. Links come in
// the order of their keys, so the first half of a split page gets no more.
const linksFill = 0.95

// Options are what [Open] needs besides the file.
type Options struct {
	Log *slog.Logger // receives faults and recoveries of the file; nil discards them
	// Now is the clock from which generated slugs go on after a start; without it
	// they go on from the file alone.
	Now func() time.Time

	// For tests, with files that fail and are slow; zero values are the defaults.
	openFile   func(string, int, os.FileMode) (*os.File, error)
	retryEvery time.Duration
}

// Store implements [shortener.Store].
type Store struct {
	path     string
	options  Options
	patience time.Duration

	mu sync.RWMutex // held for writing only while the file is reopened or closed
	db *bbolt.DB    // nil when reopening left nothing to read

	opened os.FileInfo // of db's file, to be known again

	copying sync.RWMutex // held for reading by each backup, and for writing before mu to wait for them

	// The writer's own.
	reported string // the fault that was logged last, until it is said to be over
	calm     int    // how many retries in a row found no trouble
	tallied  string // the day up to which others are swept and are in the history

	numbers numbering
	next    atomic.Uint64 // the number of the next generated slug
	cache   *cache
	today   todayCache
	queue   chan *operation // creations
	lesser  chan *operation // what is served after them

	commits  commits
	visiting visiting
	closing  chan struct{}
	closed   sync.Once
	done     chan struct{} // closed when the writer has ended
	trouble  atomic.Pointer[trouble]
}

var _ shortener.Store = (*Store)(nil)

// Open opens the file, or creates it where there is none. The error is one line
// that says what to do: about a file held by another process, a folder that is
// not writable, a newer format, or a file that is not whole.
func Open(path string, o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = func() time.Time { return numberEpoch }
	}
	if o.retryEvery == 0 {
		o.retryEvery = retryEvery
	}
	if err := createMissing(path); err != nil {
		return nil, err
	}
	db, err := openFile(path, o, false)
	if err != nil {
		return nil, err
	}
	opened, err := os.Stat(path)
	if err != nil {
		return nil, errors.Join(explain(path, err), db.Close())
	}
	s := &Store{
		opened:   opened,
		path:     path,
		options:  o,
		patience: patience,
		db:       db,
		cache:    newCache(),
		queue:    make(chan *operation, queueLength),
		lesser:   make(chan *operation, queueLength),
		closing:  make(chan struct{}),
		done:     make(chan struct{}),
	}
	if err := s.loadNumbers(o.Now()); err != nil {
		return nil, errors.Join(fmt.Errorf("%s is damaged: %w; restore a backup", path, err), db.Close())
	}
	// A file system without room for it must not keep redirects from going on.
	if err := s.settle(); err != nil {
		s.fail(fmt.Errorf("flush what was found: %w", err), true)
	}
	go s.write()
	return s, nil
}

// Close lets what has queued finish, then closes the file.
func (s *Store) Close() error {
	s.closed.Do(func() { close(s.closing) })
	<-s.done
	s.copying.Lock()
	defer s.copying.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}

// view reads in a transaction of its own.
func (s *Store) view(read func(*bbolt.Tx) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db == nil {
		return fmt.Errorf("%w: %s cannot be opened", shortener.ErrUnavailable, s.path)
	}
	return s.db.View(read)
}

// Get implements [shortener.Store].
func (s *Store) Get(ctx context.Context, slug shortener.Slug) (link shortener.Link, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		link, err = s.link(tx, slug)
		return err
	})
	return link, err
}

// Follow implements [shortener.Store].
func (s *Store) Follow(ctx context.Context, slug shortener.Slug) (shortener.Target, error) {
	if v := s.cache.get(slug); v != nil {
		return v.target(), nil
	}
	generation := s.cache.generation(slug) // before the file is read
	var t target
	err := s.view(func(tx *bbolt.Tx) error {
		return s.recordIn(tx, slug, func(raw []byte) (err error) {
			if t, err = decodeTarget(raw); err != nil {
				return err
			}
			if err := isOf(slug, t.Slug); err != nil {
				return err
			}
			s.cache.put(t, generation) // under the lock that opening the file again waits for
			return nil
		})
	})
	if err != nil {
		return shortener.Target{}, err
	}
	return t.target(), nil
}

// recordIn gives the slug's record to a function.
func (s *Store) recordIn(tx *bbolt.Tx, slug shortener.Slug, use func(raw []byte) error) error {
	links, err := bucket(tx, linksName)
	if err != nil {
		return err
	}
	raw := links.Get(s.numbers.key(slug))
	if raw == nil {
		return shortener.ErrNotFound
	}
	if err := use(raw); err != nil {
		return fmt.Errorf("record of %s: %w", slug, err)
	}
	return nil
}

// isOf returns an error for a record that lies under another slug's key.
func isOf(slug shortener.Slug, found string) error {
	if found != string(slug) {
		return fmt.Errorf("it is that of %q", found)
	}
	return nil
}

// Secret implements [shortener.Store].
func (s *Store) Secret(ctx context.Context, day string) (secret quota.Secret, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		secret, err = boltquota.Secret(tx, day)
		return err
	})
	if errors.Is(err, boltquota.ErrNoPeriod) {
		err = fmt.Errorf("secret of %s: %w", day, shortener.ErrNotFound)
	}
	return secret, err
}

// EnsureSecret implements [shortener.Store].
func (s *Store) EnsureSecret(ctx context.Context, day string) (quota.Secret, error) {
	secret, ok := s.today.get(day)
	if ok {
		return secret, nil
	}
	generation := s.today.generation.Load()
	err := s.view(func(tx *bbolt.Tx) error {
		_, err := checkClock(tx, day)
		if err == nil {
			secret, err = boltquota.Secret(tx, day)
		}
		return err
	})
	if err == nil {
		s.today.put(generation, day, secret)
	}
	if !errors.Is(err, boltquota.ErrNoPeriod) {
		return secret, err
	}
	err = s.submit(ctx, func(tx *bbolt.Tx) error {
		newest, err := checkClock(tx, day)
		if err != nil {
			return err
		}
		secret, err = boltquota.Secret(tx, day)
		if !errors.Is(err, boltquota.ErrNoPeriod) {
			return err // another request was first, or it cannot be read
		}
		if day == newest {
			// Making a new one would start the day's count again.
			return fmt.Errorf("%w: %s has counted links but its counters are gone", quota.ErrCannotCount, day)
		}
		secret = quota.NewSecret()
		return torn(boltquota.PutSecret(tx, day, secret))
	})
	if err != nil {
		return quota.Secret{}, err
	}
	return secret, nil
}

// Counts implements [shortener.Store].
func (s *Store) Counts(ctx context.Context, counters []quota.Counter) (counts []quota.Count, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		counts, err = boltquota.Counts(tx, counters)
		return err
	})
	return counts, err
}

// Create implements [shortener.Store].
func (s *Store) Create(ctx context.Context, c shortener.Creation) error {
	records := make([][]byte, len(c.Links))
	for i, link := range c.Links {
		var err error
		if records[i], err = encodeLink(link); err != nil {
			return fmt.Errorf("%w: encode link: %w", shortener.ErrUnavailable, err)
		}
	}
	return shortener.Uncounted(s.submit(ctx, func(tx *bbolt.Tx) error { return s.create(tx, c, records) }))
}

// create is the one place where a link and its count meet. Nothing is written
// before everything has been checked.
func (s *Store) create(tx *bbolt.Tx, c shortener.Creation, records [][]byte) error {
	newest, err := checkClock(tx, c.Day)
	if err != nil {
		return err
	}
	if err := replayed(tx, c); err != nil {
		return err
	}
	links, err := bucket(tx, linksName)
	if err != nil {
		return err
	}
	keys := make([][]byte, len(c.Links))
	var taken []shortener.Slug
	for i, link := range c.Links {
		keys[i] = s.numbers.key(link.Slug)
		if links.Get(keys[i]) != nil {
			taken = append(taken, link.Slug)
		}
	}
	if taken != nil {
		// Whoever has no quota left cannot learn which slugs exist.
		if _, err := boltquota.Check(tx, c.Charges); err != nil {
			return err
		}
		return &shortener.SlugTakenError{Slugs: taken}
	}
	usages, err := boltquota.Apply(tx, c.Charges)
	if err != nil {
		if decided(err) {
			return err
		}
		return torn(err)
	}
	if n, ok := shortener.BudgetNotice(c, usages); ok {
		if err := putNotice(tx, n); err != nil {
			return torn(fmt.Errorf("put notice: %w", err))
		}
	}
	if c.Answer != nil {
		if err := putAnswer(tx, *c.Answer); err != nil {
			return torn(fmt.Errorf("put answer: %w", err))
		}
	}
	for i, key := range keys {
		if err := putNew(tx, links, key, c.Links[i], records[i]); err != nil {
			return torn(err)
		}
	}
	meta := tx.Bucket(metaName)
	if err := s.reserve(meta); err != nil {
		return torn(err)
	}
	if c.Day > newest {
		return torn(meta.Put(newestKey, []byte(c.Day)))
	}
	return nil
}

// putNew stores a link whose slug is not taken.
func putNew(tx *bbolt.Tx, links *bbolt.Bucket, key []byte, link shortener.Link, record []byte) error {
	links.FillPercent = linksFill
	if err := links.Put(key, record); err != nil {
		return fmt.Errorf("put link: %w", err)
	}
	if err := putKeyLink(tx, link); err != nil {
		return fmt.Errorf("put link of a key: %w", err)
	}
	return nil
}

// decided reports whether boltquota.Apply refused before it wrote anything.
func decided(err error) bool {
	return errors.Is(err, quota.ErrExceeded) || errors.Is(err, quota.ErrCannotCount) || errors.Is(err, quota.ErrInvalidCharge)
}

// Ready implements [shortener.Store].
func (s *Store) Ready(ctx context.Context, day string) error {
	if t := s.trouble.Load(); t != nil {
		return fmt.Errorf("%w: %w", shortener.ErrUnavailable, t.cause)
	}
	return s.view(func(tx *bbolt.Tx) error {
		_, err := checkClock(tx, day)
		return err
	})
}

// checkClock returns the newest day that has a counted link, or quota.ErrClock
// beside it when the given day lies too far behind.
func checkClock(tx *bbolt.Tx, day string) (newest string, err error) {
	newest, err = newestDay(tx)
	if err != nil {
		return "", err
	}
	return newest, quota.CheckClock(day, newest)
}

func newestDay(tx *bbolt.Tx) (string, error) {
	meta, err := bucket(tx, metaName)
	if err != nil {
		return "", err
	}
	return string(meta.Get(newestKey)), nil
}

// bucket returns a bucket that every file of ours has.
func bucket(tx *bbolt.Tx, name []byte) (*bbolt.Bucket, error) {
	b := tx.Bucket(name)
	if b == nil {
		return nil, fmt.Errorf("%w: the bucket %q is missing", quota.ErrCannotCount, name)
	}
	return b, nil
}
