// Package pgstore is the durable store in a PostgreSQL database, for any number of
// programs at once.
//
// It promises what package boltstore does, over all of them: links and the counters
// that allow them are one commit, a refusal writes nothing, and no limit is passed
// however many programs create at the same moment. Each of them writes one
// transaction at a time, which holds whatever has queued, so that many creations
// share a commit. It locks every row that it decides on, in one order, decides on
// each operation in the order of arrival, and writes each row once.
//
// A commit whose answer was lost is looked up and never guessed. Where it cannot be
// looked up in time, the outcome is reported as unknown.
//
// Start with [Open].
package pgstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"snip/quota"
	"snip/quota/pgquota"
	"snip/shortener"
)

// Options are what [Open] needs besides the database.
type Options struct {
	Log *slog.Logger // receives faults and recoveries of the database; nil discards them

	// For tests, with connections that break; zero values are the defaults.
	dial     pgconn.DialFunc
	patience time.Duration
	uncached bool
}

// Store implements [shortener.Store].
type Store struct {
	log      *slog.Logger
	patience time.Duration
	pool     *pgxpool.Pool // all but the two writers'

	cache     *cache // nil in some tests
	creations *queue[operation]
	visits    *queue[*visit]
	writers   [2]*writer

	health commits

	background sync.WaitGroup
	sweep      chan struct{}          // a day has ended
	tallied    atomic.Pointer[string] // the day before which all are in the history
	closing    context.Context
	close      context.CancelFunc
	closed     sync.Once
}

var _ shortener.Store = (*Store)(nil)

// connectPatience is how long a connection may take to be made: then another of the
// URL's hosts is tried.
const connectPatience = 3 * time.Second

// Open connects to the database of a URL as libpq has them, also with several hosts
// of which one takes writes, and creates or migrates its tables. The error says
// what to do, about tables of a newer program or a role that may not migrate.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	config, err := configure(url, o)
	if err != nil {
		return nil, err
	}
	if err := migrateAt(ctx, config); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.patience == 0 {
		o.patience = patience
	}
	s := &Store{log: o.Log, patience: o.patience, sweep: make(chan struct{}, 1)}
	if !o.uncached {
		if s.cache, err = newCache(); err != nil {
			return nil, err
		}
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config.Copy()); err != nil {
		return nil, err
	}
	for i := range s.writers {
		if s.writers[i], err = newWriter(ctx, config, s); err != nil {
			s.pool.Close()
			return nil, err
		}
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.creations = newQueue(&s.health, o.patience, s.commit)
	s.visits = newQueue(&s.health, o.patience, s.commitVisits)
	s.background.Go(s.keepSweeping)
	if s.cache != nil {
		s.background.Go(func() { s.keepListening(config.ConnConfig) })
	}
	return s, nil
}

// Connections returns how many connections to the database the store may have open:
// those of its pool, two for writing, one for listening and one for leading.
func (s *Store) Connections() int { return int(s.pool.Config().MaxConns) + 4 }

// Migrate makes the tables those of this program, for whoever separates the right
// to do so from that of serving. [Open] does it, too.
func Migrate(ctx context.Context, url string) error {
	config, err := configure(url, Options{})
	if err != nil {
		return err
	}
	return migrateAt(ctx, config)
}

func migrateAt(ctx context.Context, config *pgxpool.Config) error {
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return err // which names the host and the role, and no password
	}
	defer hangUp(conn)
	if err := migrate(ctx, conn); err != nil {
		return err
	}
	return refuseUnfinished(ctx, conn)
}

// hangUp closes a connection, which may be dead.
func hangUp(conn *pgx.Conn) { _ = within(context.Background(), life, conn.Close) }

func configure(url string, o Options) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("the URL of the database: %w", err)
	}
	c := config.ConnConfig
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectPatience
	}
	if o.dial != nil {
		c.DialFunc = o.dial
	}
	c.OnNotice = rememberWarning
	// A session that began while the database took no writes would refuse them after
	// it takes them again.
	config.AfterRelease = func(conn *pgx.Conn) bool {
		return conn.PgConn().ParameterStatus("default_transaction_read_only") != "on"
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "snip"
	}
	if c.RuntimeParams["synchronous_commit"] != "remote_apply" { // which is more; the others are less
		c.RuntimeParams["synchronous_commit"] = "on"
	}
	for name, value := range map[string]string{
		"default_transaction_isolation": "read committed",
		// A program that hangs while it holds locks must not stop the others, and who
		// waits for longer than a request does, waits in vain.
		"idle_in_transaction_session_timeout": "5s",
		"lock_timeout":                        "8s",
	} {
		c.RuntimeParams[name] = value
	}
	return config, nil
}

// Close lets what has queued finish, then closes the connections.
func (s *Store) Close() error {
	s.closed.Do(func() {
		s.close()
		s.creations.close()
		s.visits.close()
		s.background.Wait()
		for _, w := range s.writers {
			w.close()
		}
		s.pool.Close()
	})
	return nil
}

// commits is what [shortener.Health] tells of them.
type commits struct {
	operations, turnedAway atomic.Int64
	last                   atomic.Int64 // in nanoseconds
	took, waited           shortener.Histogram
	trouble                atomic.Pointer[string]
}

// Health implements [shortener.Store].
func (s *Store) Health() shortener.Health {
	took := s.health.took.Counts()
	h := shortener.Health{
		Commits:    took.Count,
		Operations: s.health.operations.Load(),
		CommitTime: took,
		LastCommit: time.Duration(s.health.last.Load()),
		WaitTime:   s.health.waited.Counts(),
		Waiting:    len(s.creations.waiting) + len(s.visits.waiting),
		TurnedAway: s.health.turnedAway.Load(),
	}
	if trouble := s.health.trouble.Load(); trouble != nil {
		h.Trouble = *trouble
	}
	return h
}

// NewSlug implements [shortener.Store].
func (s *Store) NewSlug() shortener.Slug { return shortener.RandomSlug() }

// Get implements [shortener.Store].
func (s *Store) Get(ctx context.Context, slug shortener.Slug) (shortener.Link, error) {
	link, err := s.link(ctx, slug)
	return link.Link, err
}

func (s *Store) link(ctx context.Context, slug shortener.Slug) (visitedLink, error) {
	if !possible(slug) {
		return visitedLink{}, shortener.ErrNotFound
	}
	found, err := query(ctx, s, "read a link", scanLink, `SELECT `+linkColumns+` FROM links WHERE slug = $1`, string(slug))
	if err != nil {
		return visitedLink{}, err
	}
	if len(found) == 0 {
		return visitedLink{}, shortener.ErrNotFound
	}
	return found[0], nil
}

// query reads rows beside the queues, for so long as a request waits.
func query[T any](ctx context.Context, s *Store, what string, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	read := func() ([]T, error) {
		rows, err := s.pool.Query(ctx, sql, args...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, scan)
	}
	found, err := read()
	if err != nil && mayPass(err) && ctx.Err() == nil {
		found, err = read() // the connection may have been lost while it was idle
	}
	return found, unavailable(what, err)
}

// Follow implements [shortener.Store].
func (s *Store) Follow(ctx context.Context, slug shortener.Slug) (shortener.Target, error) {
	if s.cache == nil || !possible(slug) {
		return s.target(ctx, slug)
	}
	return s.cache.follow(ctx, slug, s.target)
}

func (s *Store) target(ctx context.Context, slug shortener.Slug) (shortener.Target, error) {
	link, err := s.Get(ctx, slug)
	if err != nil {
		return shortener.Target{}, err
	}
	return link.Target(), nil
}

// Secret implements [shortener.Store].
func (s *Store) Secret(ctx context.Context, day string) (quota.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	secret, err := pgquota.Secret(ctx, s.pool, day)
	if errors.Is(err, pgquota.ErrNoPeriod) {
		err = fmt.Errorf("secret of %s: %w", day, shortener.ErrNotFound)
	}
	return secret, err
}

// EnsureSecret implements [shortener.Store].
func (s *Store) EnsureSecret(ctx context.Context, day string) (quota.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	if err := s.checkClock(ctx, day); err != nil {
		return quota.Secret{}, err
	}
	secret, err := pgquota.Secret(ctx, s.pool, day)
	if !errors.Is(err, pgquota.ErrNoPeriod) {
		return secret, err
	}
	err = s.update(ctx, "make a day's secret", func(tx pgx.Tx) error {
		newest, err := newestDay(ctx, tx, "FOR UPDATE")
		if err != nil {
			return err
		}
		if err := quota.CheckClock(day, newest); err != nil {
			return refusal{err}
		}
		if day == newest {
			secret, err = pgquota.Secret(ctx, tx, day)
			if errors.Is(err, pgquota.ErrNoPeriod) {
				// Making a new one would start the day's count again.
				return refusal{fmt.Errorf("%w: %s has counted links but its secret is gone", quota.ErrCannotCount, day)}
			}
			return err
		}
		secret, err = pgquota.PutSecret(ctx, tx, day, quota.NewSecret())
		return err
	})
	if err != nil {
		return quota.Secret{}, err
	}
	return secret, nil
}

// Counts implements [shortener.Store].
func (s *Store) Counts(ctx context.Context, counters []quota.Counter) ([]quota.Count, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return pgquota.Counts(ctx, s.pool, counters)
}

// newestDay returns the newest day that has a counted link, and locks it where lock
// says so. Who locks it does so before all else.
func newestDay(ctx context.Context, q pgquota.Querier, lock string) (string, error) {
	rows, err := q.Query(ctx, `SELECT newest FROM state `+lock)
	if err != nil {
		return "", err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
}

func (s *Store) checkClock(ctx context.Context, day string) error {
	newest, err := newestDay(ctx, s.pool, "")
	if err != nil {
		return cannotCount("read the newest day", err)
	}
	return quota.CheckClock(day, newest)
}

// cannotCount makes an error of the database a kind of both sentinels.
func cannotCount(what string, err error) error {
	return fmt.Errorf("%w: %w", quota.ErrCannotCount, unavailable(what, err))
}

// Ready implements [shortener.Store].
func (s *Store) Ready(ctx context.Context, day string) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	var newest string
	var standby bool
	err := s.pool.QueryRow(ctx, `SELECT newest, current_setting('transaction_read_only')::boolean FROM state`).Scan(&newest, &standby)
	switch {
	case err != nil:
		return unavailable("read the database", err)
	case standby:
		return fmt.Errorf("%w: the database takes no writes", shortener.ErrUnavailable)
	}
	return quota.CheckClock(day, newest)
}

// update runs a transaction of its own, again where that may help: for what is
// served beside the queues. Where the function returns a refusal, it is rolled back
// and the refusal returned. An error of the commit leaves the outcome unknown.
func (s *Store) update(ctx context.Context, what string, run func(pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	for {
		committing := false
		err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			err := run(tx)
			committing = err == nil
			return err
		})
		if r, ok := errors.AsType[refusal](err); ok {
			return r.error
		}
		if err == nil {
			return nil
		}
		if committing && !rolledBack(err) {
			return unavailable(what+": its outcome is unknown", err)
		}
		if !mayPass(err) || pause(ctx) != nil {
			return unavailable(what, err)
		}
	}
}

// pause waits before something is tried again, or returns why that is vain.
func pause(ctx context.Context) error {
	const again = 50 * time.Millisecond
	timer := time.NewTimer(again)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
