package pgstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"snip/shortener"
)

const (
	channel = "snip"
	// beat is how often the listener asks whether it is still heard.
	beat = life / 4
	// everything stands for more slugs than a notification holds. No slug is like that.
	everything = "*"
	// longest is how long a notification may be: PostgreSQL refuses 8,000 bytes.
	longest = 7900
)

// notify tells other programs of links that have changed, when the transaction is
// committed.
func notify(ctx context.Context, tx pgx.Tx, slugs []string) error {
	text := strings.Join(slugs, " ")
	if len(text) > longest {
		text = everything
	}
	_, err := tx.Exec(ctx, `SELECT pg_notify($1, $2)`, channel, text)
	return err
}

// keepListening hears of changes elsewhere, again and again after it was cut off.
func (s *Store) keepListening(config *pgx.ConnConfig) {
	config = config.Copy()
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		if n.Payload == everything {
			s.cache.invalidateAll()
			return
		}
		for slug := range strings.FieldsSeq(n.Payload) {
			s.cache.invalidate(shortener.Slug(slug))
		}
	}
	quiet := false // whether it was said that nothing is heard
	for epoch := uint64(1); ; epoch++ {
		err := s.listen(config, epoch, func() {
			if quiet {
				s.log.Info("changes by other programs are heard of again")
			}
			quiet = false
		})
		s.cache.heard.Store(nil)
		if s.closing.Err() != nil {
			return
		}
		if !quiet {
			s.log.Warn("changes by other programs are not heard of, so links are read anew all the time", "err", err)
		}
		quiet = true
		if pause(s.closing) != nil {
			return
		}
	}
}

// listen hears of changes until the connection breaks. What was read since begin was
// called is known to be as it was, as long as the connection answers.
func (s *Store) listen(config *pgx.ConnConfig, epoch uint64, begin func()) error {
	conn, err := pgx.ConnectConfig(s.closing, config)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	if err := within(s.closing, connectPatience, func(ctx context.Context) error {
		_, err := conn.Exec(ctx, "LISTEN "+channel)
		return err
	}); err != nil {
		return err
	}
	begin()
	for {
		asked := s.cache.now()
		if err := within(s.closing, life, conn.Ping); err != nil { // what was sent before its answer has been heard by then
			return err
		}
		s.cache.heard.Store(&heard{epoch, asked})
		if err := hearFor(s.closing, conn.PgConn(), beat); err != nil {
			return err
		}
	}
}

// within gives a function so much time.
func within(ctx context.Context, d time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return do(ctx)
}

// hearFor waits for notifications for some time. They go to the connection's handler.
func hearFor(ctx context.Context, conn *pgconn.PgConn, d time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		if err := conn.WaitForNotification(waiting); err != nil {
			if errors.Is(waiting.Err(), context.DeadlineExceeded) && !conn.IsClosed() {
				return nil
			}
			return err
		}
	}
}
