package boltstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Restore puts a compact copy of a file at path, and returns what it found in the
// file. The errors are [ErrDamaged], or [fs.ErrExist] where there is a file at path
// already. With a name to keep that one under it is replaced, in one step, unless
// somebody has it open. Both may be the same file.
func Restore(from, path, aside string) (Report, error) {
	found, err := checkSound(from)
	if err != nil {
		return found, err
	}
	replace := false
	if _, err := os.Lstat(path); err == nil {
		if aside == "" {
			return found, fmt.Errorf("%s is there already: %w", path, fs.ErrExist)
		}
		old, err := lock(path)
		if err != nil {
			return found, err
		}
		defer old.Close()
		replace = true
	}
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".restore-*")
	if err != nil {
		return found, explain(path, err)
	}
	defer os.Remove(temp.Name())
	if err := errors.Join(temp.Close(), compact(from, temp.Name())); err != nil {
		return found, err
	}
	if _, err := checkSound(temp.Name()); err != nil {
		return found, fmt.Errorf("the copy of %s: %w", from, err)
	}
	if replace {
		if err := link(path, aside); err != nil {
			return found, fmt.Errorf("keep %s: %w", path, err)
		}
	}
	return found, Place(temp.Name(), path, replace)
}

func checkSound(path string) (Report, error) {
	found, err := Check(path)
	if err == nil {
		err = found.Err()
	}
	return found, err
}

// lock keeps other processes from opening a file of ours. One that cannot be read
// is nobody's.
func lock(path string) (io.Closer, error) {
	db, err := openBolt(path, &bbolt.Options{Timeout: lockTimeout, ReadOnly: true})
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, explain(path, err)
	}
	return io.NopCloser(nil), nil
}

// compact copies what a file holds into an empty one, durably.
func compact(from, to string) (err error) {
	source, err := openBolt(from, &bbolt.Options{Timeout: lockTimeout, ReadOnly: true})
	if err != nil {
		return explain(from, err)
	}
	defer source.Close() // nothing is written
	// One flush, at the end.
	target, err := openBolt(to, &bbolt.Options{NoSync: true, NoGrowSync: true})
	if err != nil {
		return explain(to, err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	const atOnce = 16 << 20 // bytes in a transaction
	if err := bbolt.Compact(target, source, atOnce); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return target.Sync()
}

// NotInUse returns an error for a file that a server has open, as its lock shows. A
// file that is not there is in nobody's use.
func NotInUse(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close() // which gives the lock up, too
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%s is in use by another process%s: choose another name", path, holder(path))
	}
	return nil // a file system without locks has no server's file that could be told
}
