package boltstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/shortener"
)

// visitsName is the bucket that counts the visits of links that have a limit of
// them, by the links' keys: 8 bytes each, as counters have.
var visitsName = []byte("visits")

// Visit implements [shortener.Store].
func (s *Store) Visit(ctx context.Context, slug shortener.Slug) (shortener.Target, error) {
	var link shortener.Link
	// A look first, which may refuse: a link that is used up costs no write.
	err := s.view(func(tx *bbolt.Tx) (err error) {
		link, _, err = s.visitable(tx, slug)
		return err
	})
	if err != nil {
		return shortener.Target{}, err
	}
	if link.MaxVisits == 0 {
		return link.Target(), nil
	}
	if !s.visiting.begin(slug) {
		return shortener.Target{}, fmt.Errorf("%w: %d visits of one link are waiting already", shortener.ErrUnavailable, visitsAtOnce)
	}
	defer s.visiting.end(slug)
	err = s.submitLesser(ctx, func(tx *bbolt.Tx) (err error) {
		var visited int64
		if link, visited, err = s.visitable(tx, slug); err != nil {
			return err
		}
		return torn(s.putVisited(tx, slug, visited+1))
	}, nil)
	if err != nil {
		return shortener.Target{}, err
	}
	return link.Target(), nil
}

// visitable returns the link and its counted visits, unless it is used up.
func (s *Store) visitable(tx *bbolt.Tx, slug shortener.Slug) (link shortener.Link, visited int64, err error) {
	link, err = s.changeable(tx, slug)
	if err != nil || link.MaxVisits == 0 {
		return link, 0, err
	}
	visited, err = s.visited(tx, slug)
	if err == nil && visited >= link.MaxVisits {
		err = shortener.ErrGone
	}
	return link, visited, err
}

// Visited implements [shortener.Store].
func (s *Store) Visited(ctx context.Context, slug shortener.Slug) (visited int64, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		visited, err = s.visited(tx, slug)
		return err
	})
	return visited, err
}

func (s *Store) visited(tx *bbolt.Tx, slug shortener.Slug) (int64, error) {
	visits := tx.Bucket(visitsName)
	if visits == nil {
		return 0, nil
	}
	return decodeVisited(slug, visits.Get(s.numbers.key(slug)))
}

func decodeVisited(slug shortener.Slug, raw []byte) (int64, error) {
	if raw == nil {
		return 0, nil
	}
	if len(raw) != 8 {
		return 0, fmt.Errorf("%w: the visits of %s have %d bytes, not 8", quota.ErrCannotCount, slug, len(raw))
	}
	return int64(binary.BigEndian.Uint64(raw)), nil
}

func (s *Store) putVisited(tx *bbolt.Tx, slug shortener.Slug, visited int64) error {
	visits, err := tx.CreateBucketIfNotExists(visitsName)
	if err != nil {
		return err
	}
	return visits.Put(s.numbers.key(slug), binary.BigEndian.AppendUint64(nil, uint64(visited)))
}

// clicksName is the bucket of what is known of each link's visits, by the links'
// keys.
var clicksName = []byte("clicks")

// AddVisits implements [shortener.Store].
func (s *Store) AddVisits(ctx context.Context, visits map[shortener.Slug]shortener.Visits) error {
	return s.submitLesser(ctx, func(tx *bbolt.Tx) error { return s.addVisits(tx, visits) }, nil)
}

func (s *Store) addVisits(tx *bbolt.Tx, visits map[shortener.Slug]shortener.Visits) error {
	for slug, added := range visits {
		if _, err := s.living(tx, slug); err != nil {
			continue // deleted meanwhile, or not to be read: there is nothing to count
		}
		clicks, err := tx.CreateBucketIfNotExists(clicksName)
		if err != nil {
			return torn(err)
		}
		sum, err := decodeVisits(clicks.Get(s.numbers.key(slug)))
		if err != nil {
			continue // what cannot be read is left for the operator to look at
		}
		sum.Add(added)
		raw, err := cbor.Marshal(clicksRecord{recordVersion, sum.Kinds[:], sum.Days, sum.Referrers})
		if err != nil {
			return torn(err)
		}
		if err := clicks.Put(s.numbers.key(slug), raw); err != nil {
			return torn(err)
		}
	}
	return nil
}

// Visits implements [shortener.Store].
func (s *Store) Visits(ctx context.Context, slug shortener.Slug) (v shortener.Visits, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		clicks := tx.Bucket(clicksName)
		if clicks == nil {
			return nil
		}
		v, err = decodeVisits(clicks.Get(s.numbers.key(slug)))
		return err
	})
	return v, err
}

// clicksRecord is how a link's visits are kept.
type clicksRecord struct {
	Version   uint             `cbor:"0,keyasint"`
	Kinds     []int64          `cbor:"1,keyasint"` // by shortener.Visitor
	Days      map[string]int64 `cbor:"2,keyasint,omitempty"`
	Referrers map[string]int64 `cbor:"3,keyasint,omitempty"`
}

func decodeVisits(raw []byte) (v shortener.Visits, err error) {
	if raw == nil {
		return v, nil
	}
	var r clicksRecord
	if err := cbor.Unmarshal(raw, &r); err != nil {
		return v, fmt.Errorf("visits: %w", err)
	}
	if err := knownVersion(r.Version); err != nil {
		return v, fmt.Errorf("visits: %w", err)
	}
	copy(v.Kinds[:], r.Kinds)
	v.Days, v.Referrers = r.Days, r.Referrers
	return v, nil
}

// Change implements [shortener.Store].
func (s *Store) Change(ctx context.Context, slug shortener.Slug, change shortener.Change) (shortener.Link, error) {
	return s.replace(ctx, slug, func(l shortener.Link) shortener.Link { return l.Change(change) })
}

// Delete implements [shortener.Store].
func (s *Store) Delete(ctx context.Context, slug shortener.Slug) error {
	_, err := s.replace(ctx, slug, shortener.Link.Tombstone)
	return err
}

// replace puts another link in the place of one that may be changed.
func (s *Store) replace(ctx context.Context, slug shortener.Slug, by func(shortener.Link) shortener.Link) (shortener.Link, error) {
	var link shortener.Link // the writer's, until the outcome is known
	err := s.submitLesser(ctx, func(tx *bbolt.Tx) error {
		before, err := s.changeable(tx, slug)
		if err != nil {
			return err
		}
		link = by(before)
		return torn(s.put(tx, before, link))
	}, func() { s.cache.invalidate(slug) })
	if err != nil {
		return shortener.Link{}, err
	}
	return link, nil
}

// put puts a link in the place of what it was before.
func (s *Store) put(tx *bbolt.Tx, before, link shortener.Link) error {
	raw, err := encodeLink(link)
	if err != nil {
		return fmt.Errorf("encode link: %w", err)
	}
	if link.Deleted {
		if err := errors.Join(s.forgetVisits(tx, link.Slug), deleteKeyLink(tx, before)); err != nil {
			return err
		}
	}
	return tx.Bucket(linksName).Put(s.numbers.key(link.Slug), raw)
}

// forgetVisits removes what is known of a link's visits.
func (s *Store) forgetVisits(tx *bbolt.Tx, slug shortener.Slug) error {
	for _, name := range [][]byte{visitsName, clicksName} {
		if b := tx.Bucket(name); b != nil {
			if err := b.Delete(s.numbers.key(slug)); err != nil {
				return err
			}
		}
	}
	return nil
}

// changeable returns the link unless it is deleted or taken down.
func (s *Store) changeable(tx *bbolt.Tx, slug shortener.Slug) (shortener.Link, error) {
	link, err := s.living(tx, slug)
	if err == nil && link.TakenDown != "" {
		err = shortener.ErrTakenDown
	}
	return link, err
}

// living returns the link unless it is deleted.
func (s *Store) living(tx *bbolt.Tx, slug shortener.Slug) (shortener.Link, error) {
	link, err := s.link(tx, slug)
	if err == nil && link.Deleted {
		err = shortener.ErrGone
	}
	return link, err
}

// link returns what is kept under the slug, a tombstone too.
func (s *Store) link(tx *bbolt.Tx, slug shortener.Slug) (link shortener.Link, err error) {
	err = s.recordIn(tx, slug, func(raw []byte) error {
		if link, err = decodeLink(raw); err != nil {
			return err
		}
		return isOf(slug, string(link.Slug))
	})
	if err != nil {
		return shortener.Link{}, err
	}
	return link, nil
}
