package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// warm brings a file into the page cache, from which the kernel may have dropped
// some of it. It reads page by page, as the server does: a plain look through the
// whole file would leave it there in larger units, which are quicker to look
// things up in.
func (b *bench) warm(store string) error {
	const readers, page = 32, 4096
	file := filepath.Join(b.dir, store)
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	pages := (info.Size() + page - 1) / page
	var group sync.WaitGroup
	var errs [readers]error
	for r := range int64(readers) {
		group.Go(func() { errs[r] = readPages(file, page, r*pages/readers, (r+1)*pages/readers) })
	}
	group.Wait()
	return errors.Join(errs[:]...)
}

// readPages reads some of the pages, without the kernel's reading ahead.
func readPages(file string, page int, first, end int64) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
		return fmt.Errorf("fadvise %s: %w", file, err)
	}
	content := make([]byte, page)
	for i := first; i < end; i++ {
		if _, err := f.ReadAt(content, i*int64(page)); err != nil && err != io.EOF {
			return err
		}
	}
	return nil
}
