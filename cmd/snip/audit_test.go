package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/bbolt"

	"snip/shortener"
	"snip/shortener/boltstore"
)

// fileContent is what a data file holds once its process has ended.
type fileContent struct {
	slugs map[string]bool
	links map[string]shortener.Link // by slug, as the program reads them
	// used adds up the counters of each day and level, the level by the first
	// letter of its name.
	used map[string]map[byte]int64
}

// readFile reads a data file, and its error holds what bbolt's own check finds.
// A panic over a broken page is an error like others: some tests break pages.
func readFile(path string) (content fileContent, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while reading: %v", p)
		}
	}()
	content = fileContent{
		slugs: map[string]bool{}, links: map[string]shortener.Link{}, used: map[string]map[byte]int64{},
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: patience})
	if err != nil {
		return content, err
	}
	err = func() error {
		defer db.Close() // nothing was written
		return db.View(content.read)
	}()
	if err != nil {
		return content, err
	}
	store, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		return content, err
	}
	for slug := range content.slugs {
		link, getErr := store.Get(context.Background(), shortener.Slug(slug))
		content.links[slug] = link
		err = errors.Join(err, getErr)
	}
	return content, errors.Join(err, store.Close())
}

func (c fileContent) read(tx *bbolt.Tx) error {
	var found error
	for err := range tx.Check() {
		found = errors.Join(found, fmt.Errorf("bbolt's check: %w", err))
	}
	if found != nil {
		return found
	}
	links, days := tx.Bucket([]byte("links")), tx.Bucket([]byte("days"))
	if links == nil || days == nil {
		return errors.New("a bucket is missing")
	}
	err := links.ForEach(func(_, raw []byte) error {
		var record struct {
			Slug string `cbor:"6,keyasint"`
		}
		err := cbor.Unmarshal(raw, &record)
		if c.slugs[record.Slug] {
			err = errors.Join(err, fmt.Errorf("two records of %q", record.Slug))
		}
		c.slugs[record.Slug] = true
		return err
	})
	if err != nil {
		return err
	}
	return days.ForEachBucket(func(day []byte) error {
		used := map[byte]int64{}
		c.used[string(day)] = used
		counters := days.Bucket(day).Bucket([]byte("counters"))
		if counters == nil {
			return nil // the day has its secret and no link yet
		}
		return counters.ForEach(func(key, count []byte) error {
			var n int64
			for _, b := range count {
				n = n<<8 | int64(b)
			}
			used[key[0]] += n
			return nil
		})
	})
}

// counted returns an error unless every level has counted exactly the links of
// each day. forgotten says of how many links the counters were swept, by day.
func (c fileContent) counted(forgotten map[string]int64) error {
	made := map[string]int64{}
	for day := range c.used {
		made[day] = 0
	}
	for _, link := range c.links {
		made[link.Day]++
	}
	for day, links := range made {
		links -= forgotten[day]
		for _, level := range "snc" {
			if used := c.used[day][byte(level)]; used != links {
				return fmt.Errorf("level %c has counted %d on %s, but there are %d links to count", level, used, day, links)
			}
		}
	}
	return nil
}

// holds returns an error unless every link that was acknowledged is there and
// leads to its destination, byte for byte.
func (c fileContent) holds(acknowledged map[string]string) error {
	for slug, destination := range acknowledged {
		link, there := c.links[slug]
		if !there {
			return fmt.Errorf("the acknowledged link %s is gone", slug)
		}
		if link.Destination != destination {
			return fmt.Errorf("%s leads to %.80q, want %.80q", slug, link.Destination, destination)
		}
	}
	return nil
}

// audit asserts all that must be true of a data file, whatever happened to the
// process: it is sound, and every level has counted exactly the links there are.
func audit(t *testing.T, path string) fileContent {
	t.Helper()
	content, err := readFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := content.counted(nil); err != nil {
		t.Error(err)
	}
	return content
}
