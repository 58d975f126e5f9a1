package pgstore

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"snip/quota/pgquota"
)

// Each file takes the tables from one version to the next. One that was released is
// never changed. A library for this was left out: it would bring a language of
// templates and more code than it saves.
//
//go:embed migrations
var migrations embed.FS

// version is that of the tables that this program reads and writes.
const version = 4

// Numbers of advisory locks, which are the database's own.
const (
	lockMigration = 0x736e6970_00000001 // "snip"
	lockSweep     = 0x736e6970_00000002
	lockAct       = 0x736e6970_00000003
	lockLead      = 0x736e6970_00000004
	lockCopy      = 0x736e6970_00000005
)

// errMustMigrate says that the tables are older than the program.
var errMustMigrate = errors.New("the tables are not those of this version, and the role may not change them: run snip migrate as a role that may")

// migrate makes the tables those of this program. Several programs may do so at
// once; one does it and the others wait.
func migrate(ctx context.Context, conn *pgx.Conn) error {
	found, err := foundVersion(ctx, conn)
	if err != nil || found == version {
		return err
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockMigration); err != nil {
			return err
		}
		if found, err = foundVersion(ctx, tx); err != nil {
			return err
		}
		for next := found + 1; next <= version; next++ {
			if err := step(ctx, tx, next); err != nil {
				return fmt.Errorf("to version %d: %w", next, err)
			}
		}
		return nil
	})
	if fault, ok := errors.AsType[*pgconn.PgError](err); ok && fault.Code == insufficientPrivilege {
		return fmt.Errorf("%w (%w)", errMustMigrate, err)
	}
	if err != nil {
		return fmt.Errorf("migrate the tables: %w", err)
	}
	return nil
}

// selectTable is whether there is a table. It reads the catalogue: to_regclass was
// seen to miss, for the rest of a transaction, what another one had made while this
// one waited for a lock.
const selectTable = `SELECT EXISTS (SELECT FROM pg_tables WHERE tablename = $1 AND schemaname = ANY (current_schemas(false)))`

// foundVersion returns which version the tables have, 0 where there are none.
func foundVersion(ctx context.Context, q interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (found int, err error) {
	var there bool
	err = q.QueryRow(ctx, selectTable, "snip_version").Scan(&there)
	if err != nil || !there {
		return 0, err
	}
	if err := q.QueryRow(ctx, `SELECT version FROM snip_version`).Scan(&found); err != nil {
		return 0, fmt.Errorf("which version the tables have: %w", err)
	}
	if found > version {
		return 0, fmt.Errorf("the tables have version %d, but this program knows none after %d: run a newer one", found, version)
	}
	return found, nil
}

func step(ctx context.Context, tx pgx.Tx, next int) error {
	text, err := migrations.ReadFile(fmt.Sprintf("migrations/%03d.sql", next))
	if err != nil {
		return err
	}
	if next == 1 {
		if _, err := tx.Exec(ctx, `CREATE TABLE snip_version (version integer NOT NULL); INSERT INTO snip_version VALUES (0)`); err != nil {
			return err
		}
	}
	if err := pgquota.Init(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, string(text)); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE snip_version SET version = $1`, next)
	return err
}
