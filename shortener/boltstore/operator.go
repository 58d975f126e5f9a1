package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/shortener"
)

var (
	// operatorName is the bucket of what operators have set: a value under the
	// kind, a zero byte, and the name.
	operatorName = []byte("operator")
	// auditName is the bucket of what operators did: 8 bytes of the line's number,
	// big-endian, and a CBOR map.
	auditName = []byte("audit")
)

// auditRecord is how a line of the audit log is kept.
type auditRecord struct {
	Version uint   `cbor:"0,keyasint"`
	At      int64  `cbor:"1,keyasint"` // microseconds since 1970
	Action  string `cbor:"2,keyasint"`
	Target  string `cbor:"3,keyasint,omitempty"`
	Reason  string `cbor:"4,keyasint,omitempty"`
	Note    string `cbor:"5,keyasint,omitempty"`
	Links   int64  `cbor:"6,keyasint,omitempty"`
}

// Entries implements [shortener.Store].
func (s *Store) Entries(ctx context.Context, kind shortener.EntryKind) (entries []shortener.Entry, err error) {
	prefix := entryKey(shortener.Entry{Kind: kind})
	err = s.view(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(operatorName)
		if bucket == nil {
			return nil
		}
		cursor := bucket.Cursor()
		for at, value := cursor.Seek(prefix); bytes.HasPrefix(at, prefix); at, value = cursor.Next() {
			entries = append(entries, shortener.Entry{Kind: kind, Name: string(at[len(prefix):]), Value: string(value)})
		}
		return nil
	})
	return entries, err
}

func entryKey(e shortener.Entry) []byte {
	return append(append([]byte(e.Kind), 0), e.Name...)
}

// Act implements [shortener.Store].
func (s *Store) Act(ctx context.Context, act shortener.Act) (shortener.Done, error) {
	imported := make([][]byte, len(act.Import))
	for i, m := range act.Import {
		var err error
		if imported[i], err = encodeLink(m.Link); err != nil {
			return shortener.Done{}, fmt.Errorf("%w: encode link: %w", shortener.ErrUnavailable, err)
		}
	}
	var done shortener.Done // the writer's, until the outcome is known
	err := s.submitLesser(ctx, func(tx *bbolt.Tx) (err error) {
		done, err = s.act(tx, act, imported)
		return err
	}, func() {
		for _, slug := range act.Links {
			s.cache.invalidate(slug)
		}
	})
	if err = changed(err); err != nil {
		return shortener.Done{}, err
	}
	return done, nil
}

// act checks everything before anything is written, as everywhere.
func (s *Store) act(tx *bbolt.Tx, act shortener.Act, imported [][]byte) (done shortener.Done, err error) {
	if err := checkEntries(tx, act); err != nil {
		return done, err
	}
	links, err := s.actedOn(tx, act)
	if err != nil {
		return done, err
	}
	if err := s.importable(tx, act.Import); err != nil {
		return done, err
	}
	if act.AcceptClock != "" {
		newest, err := checkClock(tx, act.AcceptClock)
		switch {
		case errors.Is(err, quota.ErrClock):
			done.Forgotten = newest
		case err != nil:
			return done, err
		}
	}
	done.Links = len(links) + len(act.Import)
	if act.Nothing(done) {
		return done, errUnchanged
	}
	if done.Forgotten != "" {
		if err := tx.Bucket(metaName).Delete(newestKey); err != nil {
			return done, torn(err)
		}
	}
	for _, link := range links {
		if err := s.put(tx, link.before, link.after); err != nil {
			return done, torn(err)
		}
	}
	if err := s.importLinks(tx, act.Import, imported); err != nil {
		return done, torn(err)
	}
	return done, torn(errors.Join(putEntries(tx, act.Entries), putAuditLine(tx, act.LineOf(done))))
}

// checkEntries refuses an act in view of the entries as they are.
func checkEntries(tx *bbolt.Tx, act shortener.Act) error {
	find := func(e shortener.Entry) []byte {
		if bucket := tx.Bucket(operatorName); bucket != nil {
			return bucket.Get(entryKey(e))
		}
		return nil
	}
	for _, e := range act.If {
		if found := find(e); found == nil || string(found) != e.Value {
			return shortener.ErrChanged
		}
	}
	for _, c := range act.Entries {
		there := find(c.Entry) != nil
		switch {
		case c.Verb == shortener.AddEntry && there:
			return shortener.ErrEntryExists
		case (c.Verb == shortener.ReplaceEntry || c.Verb == shortener.RemoveEntry) && !there:
			return shortener.ErrNoEntry
		}
	}
	return nil
}

// actedOn is a link before and after an act.
type actedOn struct{ before, after shortener.Link }

func (s *Store) actedOn(tx *bbolt.Tx, act shortener.Act) ([]actedOn, error) {
	var links []actedOn
	for _, slug := range act.Links {
		before, err := s.link(tx, slug)
		if errors.Is(err, shortener.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if act.Means(before) {
			links = append(links, actedOn{before, act.Apply(before)})
		}
	}
	return links, nil
}

// importable refuses links whose slugs are taken.
func (s *Store) importable(tx *bbolt.Tx, imported []shortener.Managed) error {
	if len(imported) == 0 {
		return nil
	}
	links, err := bucket(tx, linksName)
	if err != nil {
		return err
	}
	var taken []shortener.Slug
	for _, m := range imported {
		if links.Get(s.numbers.key(m.Link.Slug)) != nil {
			taken = append(taken, m.Link.Slug)
		}
	}
	if taken != nil {
		return &shortener.SlugTakenError{Slugs: taken}
	}
	return nil
}

// importLinks stores links with the visits that they come with.
func (s *Store) importLinks(tx *bbolt.Tx, imported []shortener.Managed, records [][]byte) error {
	visits := map[shortener.Slug]shortener.Visits{}
	links := tx.Bucket(linksName)
	for i, m := range imported {
		if err := putNew(tx, links, s.numbers.key(m.Link.Slug), m.Link, records[i]); err != nil {
			return err
		}
		if m.Visited > 0 {
			if err := s.putVisited(tx, m.Link.Slug, m.Visited); err != nil {
				return fmt.Errorf("put the visits of a link: %w", err)
			}
		}
		if m.Visits.Any() {
			visits[m.Link.Slug] = m.Visits
		}
	}
	return s.addVisits(tx, visits)
}

func putEntries(tx *bbolt.Tx, changes []shortener.EntryChange) error {
	if len(changes) == 0 {
		return nil
	}
	bucket, err := tx.CreateBucketIfNotExists(operatorName)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.Verb == shortener.RemoveEntry || c.Verb == shortener.DropEntry {
			err = bucket.Delete(entryKey(c.Entry))
		} else {
			err = bucket.Put(entryKey(c.Entry), []byte(c.Value))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func putAuditLine(tx *bbolt.Tx, line shortener.AuditLine) error {
	bucket, err := tx.CreateBucketIfNotExists(auditName)
	if err != nil {
		return err
	}
	r := auditRecord{recordVersion, line.At.UnixMicro(), line.Action, line.Target, line.Reason, line.Note, line.Links}
	raw, err := cbor.Marshal(r)
	if err != nil {
		return err
	}
	number, err := bucket.NextSequence()
	if err != nil {
		return err
	}
	return bucket.Put(binary.BigEndian.AppendUint64(nil, number), raw)
}

// Audit implements [shortener.Store].
func (s *Store) Audit(ctx context.Context, before uint64, n int) (lines []shortener.AuditLine, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(auditName)
		if bucket == nil {
			return nil
		}
		cursor := bucket.Cursor()
		at, raw := cursor.Last()
		if before > 0 {
			cursor.Seek(binary.BigEndian.AppendUint64(nil, before))
			at, raw = cursor.Prev()
		}
		for ; at != nil && len(lines) < n; at, raw = cursor.Prev() {
			line, err := decodeAuditLine(at, raw)
			if err != nil {
				return err
			}
			lines = append(lines, line)
		}
		return nil
	})
	return lines, err
}

func decodeAuditLine(at, raw []byte) (shortener.AuditLine, error) {
	var r auditRecord
	err := cbor.Unmarshal(raw, &r)
	if err == nil {
		err = knownVersion(r.Version)
	}
	if err == nil && len(at) != 8 {
		err = fmt.Errorf("its number has %d bytes, not 8", len(at))
	}
	if err != nil {
		return shortener.AuditLine{}, fmt.Errorf("audit line %x: %w", at, err)
	}
	return shortener.AuditLine{
		Number: binary.BigEndian.Uint64(at),
		At:     time.UnixMicro(r.At).UTC(),
		Action: r.Action,
		Target: r.Target,
		Reason: r.Reason,
		Note:   r.Note,
		Links:  r.Links,
	}, nil
}

// Scan implements [shortener.Store]. The mark is the last link's key.
func (s *Store) Scan(ctx context.Context, mark string, n int) (links []shortener.Managed, next string, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		bucket, err := bucket(tx, linksName)
		if err != nil {
			return err
		}
		visits, clicks := tx.Bucket(visitsName), tx.Bucket(clicksName) // nil where there never were any
		cursor := bucket.Cursor()
		key, raw := cursor.Seek([]byte(mark))
		if key != nil && string(key) == mark {
			key, raw = cursor.Next()
		}
		for ; key != nil; key, raw = cursor.Next() {
			if len(links) == n {
				return nil
			}
			m, err := decodeManaged(key, raw, visits, clicks)
			if err != nil {
				return fmt.Errorf("record under the key %x: %w", key, err)
			}
			links, next = append(links, m), string(key)
		}
		next = ""
		return nil
	})
	return links, next, err
}

// decodeManaged returns a link with what the buckets keep of its visits under its key.
func decodeManaged(key, raw []byte, visits, clicks *bbolt.Bucket) (m shortener.Managed, err error) {
	if m.Link, err = decodeLink(raw); err != nil {
		return m, err
	}
	if visits != nil {
		if m.Visited, err = decodeVisited(m.Link.Slug, visits.Get(key)); err != nil {
			return m, err
		}
	}
	if clicks != nil {
		m.Visits, err = decodeVisits(clicks.Get(key))
	}
	return m, err
}
