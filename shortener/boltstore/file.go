package boltstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"snip/quota/boltquota"
	"snip/shortener"
)

// lockTimeout is how long the file may be held by a process that is just ending.
const lockTimeout = time.Second

// createMissing makes a whole new file under another name and links it into
// place, so that a file of ours is never seen empty or half made: an empty one
// that is found later was damaged, and starting over would forgive everyone.
func createMissing(path string) error {
	// Lstat, so that a link that leads nowhere is not taken for a file to make.
	_, err := os.Lstat(path)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return explain(path, err)
	}
	folder := filepath.Dir(path)
	temp, err := os.CreateTemp(folder, filepath.Base(path)+".new-*")
	if err != nil {
		return explain(path, err)
	}
	defer os.Remove(temp.Name())
	if err := temp.Close(); err != nil {
		return explain(path, err)
	}
	db, err := bbolt.Open(temp.Name(), 0o600, &bbolt.Options{Timeout: lockTimeout})
	if err != nil {
		return explain(path, err)
	}
	err = errors.Join(db.Update(initialize), db.Close())
	if err != nil {
		return explain(path, err)
	}
	if err := Place(temp.Name(), path, false); err != nil && !errors.Is(err, fs.ErrExist) {
		return explain(path, err)
	}
	return nil
}

// Place gives a whole file its name, durably. A file that has the name is replaced
// in one step, or else the error is [fs.ErrExist] and the old name may stay.
func Place(temp, path string, replace bool) (err error) {
	if replace {
		err = os.Rename(temp, path)
	} else {
		err = link(temp, path)
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// link refuses where rename would replace a file that another process has just
// made; but not every file system has links.
func link(from, to string) error {
	err := os.Link(from, to)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return os.Rename(from, to)
	}
	return err
}

func initialize(tx *bbolt.Tx) error {
	meta, err := tx.CreateBucket(metaName)
	if err != nil {
		return err
	}
	if _, err := tx.CreateBucket(linksName); err != nil {
		return err
	}
	if err := boltquota.Init(tx); err != nil {
		return err
	}
	return errors.Join(meta.Put(slugKeyKey, newSlugKey()), putFormat(meta))
}

func putFormat(meta *bbolt.Bucket) error {
	return meta.Put(formatKey, binary.BigEndian.AppendUint64(nil, format))
}

// upgrade turns a file of an older format into one of the present.
func upgrade(tx *bbolt.Tx, found uint64) error {
	if found == 1 {
		if err := numberLinks(tx); err != nil {
			return err
		}
	}
	return putFormat(tx.Bucket(metaName))
}

// numberLinks rewrites the links of format 1, where every key was a slug and no
// record held it.
func numberLinks(tx *bbolt.Tx) error {
	slugKey := newSlugKey()
	numbers, err := newNumbering(slugKey)
	if err != nil {
		return err
	}
	old, err := bucket(tx, linksName)
	if err != nil {
		return err
	}
	upgraded := map[string][]byte{}
	err = old.ForEach(func(slug, raw []byte) error {
		link, err := decodeLink(raw)
		if err != nil {
			return fmt.Errorf("record of %s: %w", slug, err)
		}
		link.Slug = shortener.Slug(slug)
		upgraded[string(numbers.key(link.Slug))], err = encodeLink(link)
		return err
	})
	if err != nil {
		return err
	}
	if err := tx.DeleteBucket(linksName); err != nil {
		return err
	}
	links, err := tx.CreateBucket(linksName)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(upgraded)) {
		if err := links.Put([]byte(key), upgraded[key]); err != nil {
			return err
		}
	}
	return tx.Bucket(metaName).Put(slugKeyKey, slugKey)
}

// syncFolder makes the new name durable.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// openFile opens a file that exists and makes sure that it is whole and ours.
func openFile(path string, o Options, readOnly bool) (db *bbolt.DB, err error) {
	size, err := existing(path)
	if err != nil {
		return nil, err
	}
	options := &bbolt.Options{
		Timeout:         lockTimeout,
		FreelistType:    bbolt.FreelistMapType,
		NoStatistics:    true, // they cost a lock in every read
		ReadOnly:        readOnly,
		OpenFile:        o.openFile,
		InitialMmapSize: mapped,
	}
	db, err = openBolt(path, options)
	if errors.Is(err, syscall.ENOMEM) { // the process may not have so many addresses
		options.InitialMmapSize = 0
		db, err = openBolt(path, options)
	}
	if err != nil {
		return nil, explain(path, err)
	}
	db.AllocSize = growth
	var found uint64
	err = db.View(func(tx *bbolt.Tx) error {
		found, err = inspect(tx, size)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s %w", path, err), db.Close())
	}
	if found < format {
		if err := db.Update(func(tx *bbolt.Tx) error { return upgrade(tx, found) }); err != nil {
			return nil, errors.Join(fmt.Errorf("%s has format %d and cannot be rewritten: %w", path, found, err), db.Close())
		}
	}
	return db, nil
}

// existing returns the size of a file that could be ours.
func existing(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, explain(path, err)
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is not a file but a folder or a device: choose a file with --store", path)
	}
	if info.Size() == 0 {
		return 0, fmt.Errorf("%s is empty and not a file of Snip's: restore a backup, or remove it to start anew", path)
	}
	return info.Size(), nil
}

// openBolt turns the fault of reading a mapped page beyond the end of a
// truncated file into an error.
func openBolt(path string, o *bbolt.Options) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: pages are missing", bolterrors.ErrInvalid)
		}
	}()
	return bbolt.Open(path, 0o600, o)
}

func whole(tx *bbolt.Tx, size int64) error {
	if tx.Size() > size {
		return fmt.Errorf("is truncated: %d of %d bytes are there; restore a backup", size, tx.Size())
	}
	return nil
}

// inspect returns the file's format, if the file is whole and of a known one.
func inspect(tx *bbolt.Tx, size int64) (found uint64, err error) {
	if err := whole(tx, size); err != nil {
		return 0, err
	}
	meta := tx.Bucket(metaName)
	if meta == nil || len(meta.Get(formatKey)) != 8 {
		return 0, errors.New("is not a file of Snip's: choose another with --store")
	}
	if found = binary.BigEndian.Uint64(meta.Get(formatKey)); found > format {
		return 0, fmt.Errorf("has format %d and this program knows up to %d: use a newer program", found, format)
	}
	if _, err := bucket(tx, linksName); err != nil {
		return 0, fmt.Errorf("is damaged: %w; restore a backup", err)
	}
	if _, err := boltquota.Counts(tx, nil); err != nil {
		return 0, fmt.Errorf("is damaged: %w; restore a backup", err)
	}
	return found, nil
}

// explain says in one line what to do about a file that cannot be opened.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%s is in use by another process%s: stop it, or choose another file with --store", path, holder(path))
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s cannot be opened for writing by user id %d (%w): give the folder %s and the file to that user, or choose another with --store",
			path, os.Getuid(), err, filepath.Dir(path))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: the folder, or what the path links to, does not exist: create it, or choose another with --store", path)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%s: no space is left in %s: make room, or choose another with --store", path, filepath.Dir(path))
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return fmt.Errorf("%s is damaged or not a file of Snip's (%w): restore a backup, or choose another with --store", path, err)
	}
	if _, ok := errors.AsType[*fs.PathError](err); !ok { // bbolt's own words about what it found
		return fmt.Errorf("%s cannot be opened (%w): restore a backup, or choose another with --store", path, err)
	}
	return fmt.Errorf("open %s: %w", path, err)
}
