package pgstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fxamacker/cbor/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"snip/quota/pgquota"
	"snip/shortener"
)

// copyChunk is how many things of a kind are copied in one transaction, which
// bounds the memory that a copy takes.
const copyChunk = 500

var (
	// ErrInUse means that a database holds something already, or is served from.
	ErrInUse = errors.New("the database is in use already: copy into an empty one, from which no snip serves")
	// ErrOtherCopy means that a database holds a part of a copy of something else.
	ErrOtherCopy = errors.New("the database holds a part of a copy of another file, or of this one before it was written to again: empty the database and copy anew")
	// ErrCopyDiffers means that a copy was made, and is not what was copied.
	ErrCopyDiffers = errors.New("the copy is not whole, and no snip serves from it: empty the database and copy anew")

	errUnfinished = errors.New("a copy into the database was not finished: run snip copy again, with the same file")
)

// Copied is how much of a kind of thing was copied.
type Copied struct {
	Kind  string
	Count int64
	// Checksum is that of all of them, in whatever order: the SHA-256 of each, one
	// exclusive-or the other. No two are the same, so none cancels another out.
	Checksum [sha256.Size]byte
}

func (c *Copied) add(thing any) error {
	raw, err := canonical.Marshal(thing)
	if err != nil {
		return err
	}
	for i, b := range sha256.Sum256(raw) {
		c.Checksum[i] ^= b
	}
	c.Count++
	return nil
}

// canonical writes the same thing in the same bytes, from wherever it was read.
var canonical = func() cbor.EncMode {
	o := cbor.CoreDetEncOptions()
	o.NilContainers, o.Time = cbor.NilContainerAsEmpty, cbor.TimeRFC3339Nano
	mode, err := o.EncMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return mode
}()

// Copy copies all that another store keeps into an empty database, which it creates
// the tables in. It may be stopped and run again, and goes on where the last
// transaction was committed: the id must be another one for other contents. In the
// end all is read back and compared, and until then no program serves from the
// database. progress is called after each transaction, with how many things of a
// kind are there.
//
// The errors are [ErrInUse], [ErrOtherCopy], [ErrCopyDiffers], and those of
// connecting, of the database and of reading.
func Copy(ctx context.Context, url string, from shortener.Contents, id string, progress func(kind string, count int64)) ([]Copied, error) {
	config, err := configure(url, Options{})
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	defer hangUp(conn)
	if err := migrate(ctx, conn); err != nil {
		return nil, err
	}
	kinds := kindsOf(from)
	begun, done, err := beginCopy(ctx, conn, id, kinds[0].name)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == begun })
	if at < 0 {
		return nil, fmt.Errorf("%w (it has come to %q, which this program does not know)", ErrOtherCopy, begun)
	}
	copied := make([]Copied, len(kinds))
	for i, k := range kinds {
		there := int64(0)
		switch {
		case i < at:
			there = math.MaxInt64
		case i == at:
			there = done
		}
		copied[i], err = k.copy(ctx, there, func(count int64, put func(pgx.Tx) error) error {
			err := commitCopy(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
				if err := put(tx); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, `UPDATE snip_copy SET kind = $1, done = $2`, k.name, count)
				return err
			})
			if err == nil {
				progress(k.name, count)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("copy %s: %w", k.name, err)
		}
	}
	newest, err := from.Newest()
	if err != nil {
		return nil, err
	}
	return copied, finishCopy(ctx, conn, kinds, copied, newest)
}

// beginCopy returns which kind the copy has come to, and how many of it are there. As
// long as the connection lives, no other copy begins.
func beginCopy(ctx context.Context, conn *pgx.Conn, id, first string) (kind string, done int64, err error) {
	// It waits: the connection of a copy that was killed may not have ended yet.
	_, err = conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, lockCopy)
	if fault, ok := errors.AsType[*pgconn.PgError](err); ok && fault.Code == lockNotAvailable {
		return "", 0, errors.New("another copy into the database is under way")
	}
	if err != nil {
		return "", 0, err
	}
	unfinished, err := copyUnfinished(ctx, conn)
	if err != nil {
		return "", 0, err
	}
	if unfinished {
		var begun string
		if err := conn.QueryRow(ctx, `SELECT source, kind, done FROM snip_copy`).Scan(&begun, &kind, &done); err != nil {
			return "", 0, err
		}
		if begun != id {
			return "", 0, ErrOtherCopy
		}
		return kind, done, nil
	}
	var used bool
	if err := conn.QueryRow(ctx, selectUsed, lockLead>>32, lockLead&math.MaxUint32).Scan(&used); err != nil {
		return "", 0, err
	}
	if used {
		return "", 0, ErrInUse
	}
	return first, 0, commitCopy(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `CREATE TABLE snip_copy (source text NOT NULL, kind text NOT NULL, done bigint NOT NULL)`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO snip_copy VALUES ($1, $2, 0)`, id, first)
		return err
	})
}

// selectUsed is whether anything is kept, or a program leads those that serve.
const selectUsed = `SELECT EXISTS (SELECT FROM links) OR EXISTS (SELECT FROM clicks) OR EXISTS (SELECT FROM answers) OR EXISTS (SELECT FROM outbox)
	OR EXISTS (SELECT FROM entries) OR EXISTS (SELECT FROM audit) OR EXISTS (SELECT FROM history) OR EXISTS (SELECT FROM quota_secrets)
	OR EXISTS (SELECT FROM quota_counters) OR EXISTS (SELECT FROM quota_reservations) OR EXISTS (SELECT FROM state WHERE newest <> '')
	OR EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
		WHERE l.locktype = 'advisory' AND l.classid = $1 AND l.objid = $2)`

// copyUnfinished reports whether a copy was begun and not finished. Its table is
// there for so long only.
func copyUnfinished(ctx context.Context, conn *pgx.Conn) (unfinished bool, err error) {
	err = conn.QueryRow(ctx, selectTable, "snip_copy").Scan(&unfinished)
	return unfinished, err
}

// refuseUnfinished returns why nothing may be served from the database.
func refuseUnfinished(ctx context.Context, conn *pgx.Conn) error {
	unfinished, err := copyUnfinished(ctx, conn)
	if err == nil && unfinished {
		err = errUnfinished
	}
	return err
}

// finishCopy compares what is there with what was copied, and lets programs serve
// from it.
func finishCopy(ctx context.Context, conn *pgx.Conn, kinds []kind, copied []Copied, newest string) error {
	// What is compared is all there at one moment.
	err := commitCopy(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		var differences []error
		for i, k := range kinds {
			found, err := k.read(ctx, tx)
			if err != nil {
				return fmt.Errorf("read %s back: %w", k.name, err)
			}
			if found != copied[i] {
				differences = append(differences, fmt.Errorf("%s: %d with the checksum %x were copied, and %d with %x are there",
					k.name, copied[i].Count, copied[i].Checksum[:8], found.Count, found.Checksum[:8]))
			}
		}
		if differences != nil {
			return refusal{fmt.Errorf("%w: %w", ErrCopyDiffers, errors.Join(differences...))}
		}
		if _, err := tx.Exec(ctx, `UPDATE state SET newest = $1`, newest); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DROP TABLE snip_copy`)
		return err
	})
	if r, ok := errors.AsType[refusal](err); ok {
		return r.error
	}
	if err != nil {
		return fmt.Errorf("finish the copy: %w; run it again: if it finds the database in use, it was finished", err)
	}
	return nil
}

// commitCopy runs the function in a transaction, and does not take a commit that did
// not wait for its standby for done.
func commitCopy(ctx context.Context, conn *pgx.Conn, o pgx.TxOptions, run func(pgx.Tx) error) error {
	forgetWarning(conn.PgConn())
	if err := pgx.BeginTxFunc(ctx, conn, o, run); err != nil {
		return err
	}
	return warned(conn.PgConn())
}

// kind is one kind of thing that is kept.
type kind struct {
	name string
	// copy gives what comes after the first so many to commit, part by part, and
	// returns how many there are in all.
	copy func(ctx context.Context, there int64, commit func(count int64, put func(pgx.Tx) error) error) (Copied, error)
	read func(context.Context, pgquota.Querier) (Copied, error)
}

func kindOf[T any](name string, from func(func(T) error) error, put func(context.Context, pgx.Tx, []T) error,
	each func(context.Context, pgquota.Querier, func(T) error) error) kind {
	return kind{
		name: name,
		copy: func(ctx context.Context, there int64, commit func(int64, func(pgx.Tx) error) error) (Copied, error) {
			sum := Copied{Kind: name}
			var part []T
			flush := func() error {
				err := commit(sum.Count, func(tx pgx.Tx) error { return put(ctx, tx, part) })
				part = part[:0]
				return err
			}
			err := from(func(thing T) error {
				if err := sum.add(thing); err != nil || sum.Count <= there {
					return err
				}
				if part = append(part, thing); len(part) < copyChunk {
					return nil
				}
				return flush()
			})
			if err == nil && len(part) > 0 {
				err = flush()
			}
			return sum, err
		},
		read: func(ctx context.Context, q pgquota.Querier) (Copied, error) {
			sum := Copied{Kind: name}
			err := each(ctx, q, func(thing T) error { return sum.add(thing) })
			return sum, err
		},
	}
}
