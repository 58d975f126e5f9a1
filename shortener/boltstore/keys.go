package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/shortener"
)

var (
	// keysName is the bucket of API keys, by their names.
	keysName = []byte("keys")
	// keyLinksName is the bucket of which links each key has made: nothing under a
	// key's id, the instant and the slug, so that a cursor meets them in order.
	keyLinksName = []byte("keylinks")
)

// keyRecord is how an API key is kept.
type keyRecord struct {
	Version   uint   `cbor:"0,keyasint"`
	ID        uint64 `cbor:"1,keyasint"`
	Hash      []byte `cbor:"2,keyasint"`
	Daily     int64  `cbor:"3,keyasint"`
	CreatedAt int64  `cbor:"4,keyasint"` // microseconds since 1970
}

func encodeKey(k shortener.Key) ([]byte, error) {
	return cbor.Marshal(keyRecord{recordVersion, uint64(k.ID), k.Hash[:], k.Daily, k.CreatedAt.UnixMicro()})
}

func decodeKey(name string, raw []byte) (k shortener.Key, err error) {
	var r keyRecord
	if err = cbor.Unmarshal(raw, &r); err == nil {
		err = knownVersion(r.Version)
	}
	if err == nil && len(r.Hash) != len(k.Hash) {
		err = fmt.Errorf("the hash has %d bytes, not %d", len(r.Hash), len(k.Hash))
	}
	if err != nil {
		return k, fmt.Errorf("record of the key %q: %w", name, err)
	}
	return shortener.Key{
		ID:        quota.KeyID(r.ID),
		Name:      name,
		Daily:     r.Daily,
		CreatedAt: time.UnixMicro(r.CreatedAt).UTC(),
		Hash:      shortener.TokenHash(r.Hash),
	}, nil
}

// Keys implements [shortener.Store].
func (s *Store) Keys(ctx context.Context) (keys []shortener.Key, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(keysName)
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(name, raw []byte) error {
			key, err := decodeKey(string(name), raw)
			keys = append(keys, key)
			return err
		})
	})
	return keys, err
}

// CreateKey implements [shortener.Store].
func (s *Store) CreateKey(ctx context.Context, key shortener.Key) error {
	return s.withKeys(ctx, func(bucket *bbolt.Bucket) error {
		if bucket.Get([]byte(key.Name)) != nil {
			return shortener.ErrKeyTaken
		}
		return putKey(bucket, key)
	})
}

// ChangeKey implements [shortener.Store].
func (s *Store) ChangeKey(ctx context.Context, name string, daily int64) (shortener.Key, error) {
	var key shortener.Key // the writer's, until the outcome is known
	err := s.withKeys(ctx, func(bucket *bbolt.Bucket) (err error) {
		raw := bucket.Get([]byte(name))
		if raw == nil {
			return shortener.ErrNoKey
		}
		if key, err = decodeKey(name, raw); err != nil {
			return err
		}
		key.Daily = daily
		return putKey(bucket, key)
	})
	if err != nil {
		return shortener.Key{}, err
	}
	return key, nil
}

// DeleteKey implements [shortener.Store].
func (s *Store) DeleteKey(ctx context.Context, name string) error {
	return s.withKeys(ctx, func(bucket *bbolt.Bucket) error {
		if bucket.Get([]byte(name)) == nil {
			return shortener.ErrNoKey
		}
		return torn(bucket.Delete([]byte(name)))
	})
}

func putKey(bucket *bbolt.Bucket, key shortener.Key) error {
	raw, err := encodeKey(key)
	if err != nil {
		return fmt.Errorf("%w: encode key: %w", shortener.ErrUnavailable, err)
	}
	return torn(bucket.Put([]byte(key.Name), raw))
}

// withKeys hands the bucket of keys to a write of its own.
func (s *Store) withKeys(ctx context.Context, write func(*bbolt.Bucket) error) error {
	return s.submitLesser(ctx, func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists(keysName)
		if err != nil {
			return torn(err)
		}
		return write(bucket)
	}, nil)
}

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
	if l.Key == 0 {
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
