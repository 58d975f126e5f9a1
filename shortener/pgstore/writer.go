package pgstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"snip/shortener"
)

// writer commits one batch after the other on a connection of its own, and finds
// out what became of a commit whose answer was lost: each transaction writes the
// batch's number into the writer's row, so whoever has that row next knows.
//
// PostgreSQL's own pg_xact_status was left out: after a failover to a standby that
// lacked the transaction, its number may be that of another one.
type writer struct {
	pool     *pgxpool.Pool
	log      *slog.Logger
	health   *commits
	patience time.Duration
	id       []byte
	batch    int64
}

func newWriter(ctx context.Context, config *pgxpool.Config, s *Store) (*writer, error) {
	config = config.Copy()
	config.MaxConns, config.MinConns, config.MinIdleConns = 1, 0, 0
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	w := &writer{pool: pool, log: s.log, health: &s.health, patience: s.patience, id: make([]byte, 16)}
	rand.Read(w.id) // never fails: it ends the program instead
	return w, nil
}

func (w *writer) close() {
	// What is left by a program that was killed, is swept by others.
	_ = within(context.Background(), connectPatience, func(ctx context.Context) error {
		_, err := w.pool.Exec(ctx, `DELETE FROM writers WHERE id = $1`, w.id)
		return err
	})
	w.pool.Close()
}

// errAgain rolls back and runs the function again at once.
var errAgain = errors.New("it has to be done again")

// errNothing rolls back a batch in which nothing was to be written.
var errNothing = errors.New("nothing to commit")

// transact runs the function in a transaction and commits it. The function may run
// several times: with [errAgain], when the database could not serialise it, and
// after a lost connection, but while the database is in trouble only once: then
// whoever waits is told soon. When transact returns nil, it is committed.
func (w *writer) transact(run func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), w.patience)
	defer cancel()
	for {
		err := w.attempt(ctx, run)
		switch {
		case err == nil:
			if w.health.trouble.Swap(nil) != nil {
				w.log.Info("the database is written to again")
			}
			return nil
		case errors.Is(err, errNothing):
			return nil
		case errors.Is(err, errAgain) && ctx.Err() == nil:
			continue
		case mayPass(err) && !errors.Is(err, errUnknown) && w.health.trouble.Load() == nil && pause(ctx) == nil:
			if !connected(err) {
				w.pool.Reset()
			}
			continue
		}
		err = unavailable("write", err)
		text := err.Error()
		if w.health.trouble.Swap(&text) == nil {
			w.log.Error("the database cannot be written to", "err", err)
		}
		return err
	}
}

// connected reports whether the connection on which it happened is of use.
func connected(err error) bool {
	fault, ok := errors.AsType[*pgconn.PgError](err)
	return ok && fault.Code != readOnly && fault.SeverityUnlocalized == "ERROR"
}

// errUnknown means that nobody knows whether it was committed.
var errUnknown = fmt.Errorf("%w: the outcome is unknown", shortener.ErrUnavailable)

// attempt runs the function in a transaction once.
func (w *writer) attempt(ctx context.Context, run func(context.Context, pgx.Tx) error) error {
	conn, err := w.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = within(context.Background(), life, tx.Rollback) }() // after a commit it does nothing
	if err := run(ctx, tx); err != nil {
		return err
	}
	w.batch++
	_, err = tx.Exec(ctx, `INSERT INTO writers (id, batch) VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = now()`, w.id, w.batch)
	if err != nil {
		return err
	}
	forgetWarning(conn.Conn().PgConn())
	start := time.Now()
	err = tx.Commit(ctx)
	w.count(time.Since(start))
	warning := warned(conn.Conn().PgConn())
	switch {
	case err == nil, warning != nil:
		return warning
	case rolledBack(err), errors.Is(err, pgx.ErrTxCommitRollback):
		return err
	}
	return w.resolve(ctx, err)
}

// resolve finds out what became of a commit that returned the error. It waits for
// the transaction to end if it has not, and where there is a standby, until that has
// what is found. It returns nil where it was committed, and the error where it was
// not.
func (w *writer) resolve(ctx context.Context, lost error) error {
	for {
		var batch int64
		err := w.lookUp(ctx, &batch)
		switch {
		case err == nil && batch == w.batch:
			return nil
		case err == nil:
			return lost
		case !mayPass(err) || pause(ctx) != nil:
			return fmt.Errorf("%w: %w; then: %w", errUnknown, lost, err)
		}
	}
}

// lookUp reads the writer's row with a lock, on another connection than the lost
// one. Where the row is not there, an insert waits for one that is on its way.
func (w *writer) lookUp(ctx context.Context, batch *int64) error {
	conn, err := pgx.ConnectConfig(ctx, w.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO writers (id, batch) VALUES ($1, 0) ON CONFLICT DO NOTHING`, w.id); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT batch FROM writers WHERE id = $1 FOR UPDATE`, w.id).Scan(batch)
	})
	return errors.Join(err, warned(conn.PgConn()))
}

func (w *writer) count(took time.Duration) {
	w.health.took.Observe(took)
	w.health.last.Store(int64(took))
}

// warningKey is where a connection keeps the last warning that it has received.
const warningKey = "warning"

func rememberWarning(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		c.CustomData()[warningKey] = n.Message
	}
}

func forgetWarning(c *pgconn.PgConn) { delete(c.CustomData(), warningKey) }

// warned returns an error where a commit has brought a warning: that the wait for a
// standby was cut short. Then it is committed here, and may be lost with this
// machine.
func warned(c *pgconn.PgConn) error {
	warning, ok := c.CustomData()[warningKey].(string)
	if !ok {
		return nil
	}
	return fmt.Errorf("%w: %s", errUnknown, warning)
}
