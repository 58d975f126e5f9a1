package pgstore

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"snip/shortener"
)

// Codes of PostgreSQL, from appendix A of its manual.
const (
	insufficientPrivilege = "42501"
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	lockNotAvailable      = "55P03"
	readOnly              = "25006" // a primary that has become a standby
	idleTooLong           = "25P03"
	tooManyConnections    = "53300"
)

// mayPass reports whether a transaction that failed before its commit may succeed
// when it is tried again.
func mayPass(err error) bool {
	fault, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return lostConnection(err)
	}
	switch fault.Code {
	case serializationFailure, deadlockDetected, lockNotAvailable, readOnly, idleTooLong, tooManyConnections:
		return true
	}
	// The server goes down or comes up, or it will be another one the next time.
	return strings.HasPrefix(fault.Code, "08") || strings.HasPrefix(fault.Code, "57P")
}

// lostConnection reports whether it is no answer of the server's.
func lostConnection(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || pgconn.SafeToRetry(err) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// rolledBack reports whether a commit that returned an error is known to have
// failed: the server has said so and lives on.
func rolledBack(err error) bool {
	fault, ok := errors.AsType[*pgconn.PgError](err)
	return ok && fault.SeverityUnlocalized == "ERROR"
}

// unavailable makes an error of the database a kind of [shortener.ErrUnavailable].
func unavailable(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s: %w", shortener.ErrUnavailable, what, err)
}

// refusal is what was decided inside a transaction, which is then rolled back. It is
// no fault of the database.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }
