package pgstore

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// leadBeat is how often who leads sees that it still does, and the others whether
	// nobody does any more.
	leadBeat = time.Second
	// leadTerm is how long after a beat it leads without another one. The database ends
	// the connection of one that is not heard of for leadSilence, which is longer: so two
	// do not lead at once, whatever becomes of the network.
	leadTerm    = 4 * time.Second
	leadSilence = "8s"
)

// Candidate is one of the programs that share a database. Of what one of them has to
// do, such as delivering alerts, it is the one that leads; when that ends, however it
// does, another takes over within about ten seconds, mostly two.
//
// With a database that was replaced by its standby, two may lead for the time of a
// term: what they do must bear being done twice.
type Candidate struct {
	log   *slog.Logger
	until atomic.Pointer[time.Time] // nil while it does not lead

	close context.CancelFunc
	done  sync.WaitGroup
}

// Stand makes the program a candidate at the database that [Open] was given.
func Stand(url string, log *slog.Logger) (*Candidate, error) {
	config, err := configureLead(url)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Candidate{log: log, close: cancel}
	c.done.Go(func() {
		for ctx.Err() == nil {
			_ = c.stand(ctx, config) // the store tells of a database that is gone
			if c.until.Swap(nil) != nil {
				log.Info("this server leads no more")
			}
			_ = pause(ctx)
		}
	})
	return c, nil
}

func configureLead(url string) (*pgx.ConnConfig, error) {
	config, err := configure(url, Options{})
	if err != nil {
		return nil, err
	}
	config.ConnConfig.RuntimeParams["idle_session_timeout"] = leadSilence
	return config.ConnConfig, nil
}

// Leads reports whether what one has to do is this program's.
func (c *Candidate) Leads() bool {
	until := c.until.Load()
	return until != nil && time.Now().Before(*until)
}

// Close ends it, and lets another lead.
func (c *Candidate) Close() {
	c.close()
	c.done.Wait()
}

// stand is a candidature, until the connection breaks.
func (c *Candidate) stand(ctx context.Context, config *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	beat := time.NewTicker(leadBeat)
	defer beat.Stop()
	for leads := false; ; {
		asked := time.Now()
		err := within(ctx, leadTerm, func(ctx context.Context) error {
			if leads {
				return conn.Ping(ctx)
			}
			return conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, lockLead).Scan(&leads)
		})
		if err != nil {
			return err
		}
		if leads {
			until := asked.Add(leadTerm)
			if c.until.Swap(&until) == nil {
				c.log.Info("this server leads: it delivers alerts and settles what has expired")
			}
		}
		select {
		case <-beat.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
