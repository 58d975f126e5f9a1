package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"runtime"

	"go.etcd.io/bbolt"

	"snip/shortener"
)

// mapped is how much of the file bbolt maps into memory from the start. When the
// file outgrows that, bbolt maps it anew, and for it waits until nobody reads: the
// writer and every new reader would wait for a backup that is under way. Only
// addresses are taken, no memory; 32-bit systems have too few, and on Windows the
// file itself would become as large.
var mapped = func() int {
	if bits.UintSize < 64 || runtime.GOOS == "windows" {
		return 0
	}
	return bits.UintSize << 30 // 64 GiB, in a form that compiles where it is not used
}()

// growth is how much more than it needs a file is given when it grows. bbolt's own
// would give every small file 16 MiB, since so much is mapped.
const growth = 1 << 20

// Backup writes a copy of the file as it is when Backup begins, with all that was
// acknowledged by then. Creations and redirects go on meanwhile; but no page that
// they give up is used again before Backup ends, so the file may grow. It ends
// early, with an error that wraps [shortener.ErrUnavailable], where the file has to
// be opened again or is closed.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	s.copying.RLock()
	defer s.copying.RUnlock()
	tx, err := s.beginCopy()
	if err != nil {
		return fmt.Errorf("%w: %w", shortener.ErrUnavailable, err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	_, err = tx.WriteTo(&copyWriter{ctx, s, w})
	return err
}

func (s *Store) beginCopy() (*bbolt.Tx, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.copyable(); err != nil {
		return nil, err
	}
	return s.db.Begin(false)
}

// copyable returns why nobody could vouch for a copy now.
func (s *Store) copyable() error {
	if t := s.trouble.Load(); t != nil && t.reopen {
		return t.cause
	}
	select {
	case <-s.closing:
		return errors.New("the store is closed")
	default:
		return nil
	}
}

// copyWriter stops a copy that nobody wants any more, or that the store waits for.
type copyWriter struct {
	ctx   context.Context
	store *Store
	to    io.Writer
}

func (w *copyWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	if err := w.store.copyable(); err != nil {
		return 0, fmt.Errorf("%w: %w", shortener.ErrUnavailable, err)
	}
	return w.to.Write(p)
}
