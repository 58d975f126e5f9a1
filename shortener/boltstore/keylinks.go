package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/shortener"
)

// keyLinksName is the bucket of which links each key has made: nothing under a
// key's id, the instant and the slug, so that a cursor meets them in order.
var keyLinksName = []byte("keylinks")

// LinksOf implements [shortener.Store].
func (s *Store) LinksOf(ctx context.Context, key quota.KeyID, before shortener.Slug, n int) (links []shortener.Link, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		made := binary.BigEndian.AppendUint64(nil, uint64(key))
		end := append(slices.Clone(made), 0xff) // behind every instant
		if before != "" {
			link, err := s.link(tx, before)
			if err != nil {
				return err
			}
			if link.Key != key {
				return shortener.ErrNotFound
			}
			end = keyLinkOf(link)
		}
		bucket := tx.Bucket(keyLinksName)
		if bucket == nil {
			return nil
		}
		cursor := bucket.Cursor()
		cursor.Seek(end)
		for at, _ := cursor.Prev(); len(links) < n && bytes.HasPrefix(at, made); at, _ = cursor.Prev() {
			slug := shortener.Slug(at[len(made)+8:])
			link, err := s.link(tx, slug)
			if err != nil { // whatever it is, it is not about before
				return fmt.Errorf("%w: link %s of key %s: %v", shortener.ErrUnavailable, slug, key, err)
			}
			links = append(links, link)
		}
		return nil
	})
	return links, err
}

// keyLinkOf is where a link is found by its key.
func keyLinkOf(l shortener.Link) []byte {
	at := binary.BigEndian.AppendUint64(nil, uint64(l.Key))
	at = binary.BigEndian.AppendUint64(at, uint64(l.CreatedAt.UnixMicro()))
	return append(at, l.Slug...)
}

// putKeyLink makes a link that is put be found by its key.
func putKeyLink(tx *bbolt.Tx, l shortener.Link) error {
	if l.Key == 0 || l.Deleted {
		return nil
	}
	bucket, err := tx.CreateBucketIfNotExists(keyLinksName)
	if err != nil {
		return err
	}
	return bucket.Put(keyLinkOf(l), nil)
}

// deleteKeyLink makes a link that is deleted be found no more.
func deleteKeyLink(tx *bbolt.Tx, l shortener.Link) error {
	bucket := tx.Bucket(keyLinksName)
	if l.Key == 0 || bucket == nil {
		return nil
	}
	return bucket.Delete(keyLinkOf(l))
}
