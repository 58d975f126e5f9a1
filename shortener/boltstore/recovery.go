package boltstore

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
)

const (
	// retryEvery is how often the writer tries to leave trouble by itself.
	retryEvery = time.Second
	// calmRetries is how many of those must find no trouble before it is said to
	// be over: on a disk that is nearly full, small writes succeed in between.
	calmRetries = 5
)

// trouble is why the last write failed.
type trouble struct {
	cause error
	// reopen refuses every write until the file was opened again and checked:
	// after a failed flush nobody knows what the disk holds.
	reopen bool
}

// fail records a failed write and logs it, once for a row of the same.
func (s *Store) fail(err error, reopen bool) {
	s.trouble.Store(&trouble{cause: err, reopen: reopen})
	s.calm = 0
	if text := err.Error(); text != s.reported {
		s.reported = text
		s.options.Log.Error("the store cannot write: creations are refused, redirects go on", "store", s.path, "err", err)
	}
}

// noSpace reports whether a page could not be written for want of space. Nothing
// was flushed then and bbolt has rolled back, so the next attempt may succeed. A
// flush that fails for want of space comes without the path and is a failed flush.
func noSpace(err error) bool {
	var pathError *os.PathError
	return errors.As(err, &pathError) && pathError.Op == "write" &&
		(errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT))
}

// recover tries to leave trouble: by a small write, after reopening and checking
// the file where that is needed.
func (s *Store) recover() {
	t := s.trouble.Load()
	if t == nil {
		if s.calm++; s.calm >= calmRetries && s.reported != "" {
			s.reported = ""
			s.options.Log.Info("the store can write again", "store", s.path)
		}
		return
	}
	if t.reopen {
		if err := s.reopen(); err != nil {
			s.fail(fmt.Errorf("open again: %w", err), true)
			return
		}
		// From here on the probe below decides, on a file known to be sound.
		s.trouble.Store(&trouble{cause: t.cause})
	}
	s.probe()
}

// probeKey is in meta while a probe is under way.
var probeKey = []byte("probe")

// probePages is how much room a probe takes, for a moment: more than a batch of
// creations. On a disk that is full a smaller write may find a page that is free
// in the file, and the store would be called ready.
const probePages = 16

// probe writes something and removes it again; transact reports how that went.
func (s *Store) probe() {
	for _, value := range [][]byte{make([]byte, probePages*os.Getpagesize()), nil} {
		err := s.transact(func(tx *bbolt.Tx) error {
			meta, err := bucket(tx, metaName)
			if err != nil {
				return err
			}
			if value == nil {
				return meta.Delete(probeKey)
			}
			return meta.Put(probeKey, value)
		})
		if err != nil {
			return
		}
	}
}

// reopen closes the file, opens it again and checks it. Meanwhile, and when it
// cannot be opened for writing, redirects are served from it all the same.
func (s *Store) reopen() error {
	if err := s.swap(); err != nil {
		return err
	}
	if err := s.settle(); err != nil {
		return err
	}
	return s.view(check)
}

// settle makes durable which commit was found to be the newest, before another
// one builds on it. It may be in the system's cache alone: the process was killed
// before the last flush, or the flush failed. The next commit uses the pages that
// this one gave up, and a power cut before its own end would leave neither whole.
//
// A flush is not enough, since Linux takes for written what it failed to flush,
// so bbolt's two meta pages are written as they are. Only one that is not on the
// disk yet can change there, and what it says lies in one sector.
func (s *Store) settle() (err error) {
	f, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	metas := make([]byte, 2*s.db.Info().PageSize)
	if _, err := f.ReadAt(metas, 0); err != nil {
		return err
	}
	if _, err := f.WriteAt(metas, 0); err != nil {
		return err
	}
	return f.Sync()
}

func (s *Store) swap() error {
	s.copying.Lock() // while redirects go on
	defer s.copying.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.clear()
	s.today.invalidate()
	if s.db != nil {
		if err := s.db.Close(); err != nil {
			s.options.Log.Error("close the store before opening it again", "store", s.path, "err", err)
		}
	}
	var err error
	if s.db, err = openFile(s.path, s.options, false); err == nil {
		s.opened, err = os.Stat(s.path)
		return err
	}
	var readErr error
	if s.db, readErr = openFile(s.path, s.options, true); readErr != nil {
		s.db = nil
		return errors.Join(err, fmt.Errorf("nor for reading: %w", readErr))
	}
	return err
}

// inPlace returns an error when the file that is open is no longer the one at its
// path. What is written to it then would be gone with the process, and the count
// of the day with it.
func (s *Store) inPlace() error {
	found, err := os.Stat(s.path)
	if err == nil && os.SameFile(found, s.opened) {
		return nil
	}
	return fmt.Errorf("%s was removed, moved or replaced while it was open: put it back, or start again with the file that is to be used", s.path)
}

// check reports the first inconsistencies that bbolt finds in the file. It reads
// bbolt's list of free pages, so nothing may be written meanwhile.
func check(tx *bbolt.Tx) error {
	const most = 3
	var found []error
	for err := range tx.Check() { // must be read to its end, or its goroutine stays
		if len(found) < most {
			found = append(found, err)
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("the file is damaged, restore a backup: %w", errors.Join(found...))
	}
	return nil
}
