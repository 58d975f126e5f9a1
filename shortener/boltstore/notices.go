package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
	"snip/shortener"
)

var (
	// outboxName is the bucket of notices, by their IDs: a CBOR map, or nothing once
	// one is delivered, so that it is not kept again.
	outboxName = []byte("outbox")
	// historyName is the bucket of what is kept of past days, by their labels.
	historyName = []byte("history")
)

type noticeRecord struct {
	Version uint   `cbor:"0,keyasint"`
	At      int64  `cbor:"1,keyasint"` // microseconds since 1970
	Kind    string `cbor:"2,keyasint"`
	Text    string `cbor:"3,keyasint"`
}

// Post implements [shortener.Store].
func (s *Store) Post(ctx context.Context, n shortener.Notice) error {
	return s.submitLesser(ctx, func(tx *bbolt.Tx) error { return torn(putNotice(tx, n)) }, nil)
}

// putNotice keeps a notice unless one of the same ID was kept, and forgets those
// that were delivered the day before yesterday or earlier.
func putNotice(tx *bbolt.Tx, n shortener.Notice) error {
	day, _, _ := strings.Cut(n.ID, "/")
	oldest, err := quota.DayBefore(day)
	if err != nil {
		return err
	}
	outbox, err := tx.CreateBucketIfNotExists(outboxName)
	if err != nil {
		return err
	}
	cursor := outbox.Cursor()
	for id, raw := cursor.First(); id != nil && string(id) < oldest; id, raw = cursor.Next() {
		if len(raw) > 0 {
			continue
		}
		if err := cursor.Delete(); err != nil {
			return err
		}
	}
	if outbox.Get([]byte(n.ID)) != nil {
		return nil
	}
	raw, err := cbor.Marshal(noticeRecord{recordVersion, n.At.UnixMicro(), n.Kind, n.Text})
	if err != nil {
		return err
	}
	return outbox.Put([]byte(n.ID), raw)
}

// Notices implements [shortener.Store].
func (s *Store) Notices(ctx context.Context, n int) (waiting []shortener.Notice, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		outbox := tx.Bucket(outboxName)
		if outbox == nil {
			return nil
		}
		return outbox.ForEach(func(id, raw []byte) error {
			if len(raw) == 0 {
				return nil
			}
			notice, err := decodeNotice(string(id), raw)
			waiting = append(waiting, notice)
			return err
		})
	})
	slices.SortFunc(waiting, shortener.OldestFirst)
	return waiting[:min(n, len(waiting))], err
}

func decodeNotice(id string, raw []byte) (shortener.Notice, error) {
	var r noticeRecord
	if err := cbor.Unmarshal(raw, &r); err != nil {
		return shortener.Notice{}, fmt.Errorf("notice %s: %w", id, err)
	}
	return shortener.Notice{ID: id, At: time.UnixMicro(r.At).UTC(), Kind: r.Kind, Text: r.Text}, knownVersion(r.Version)
}

// Delivered implements [shortener.Store].
func (s *Store) Delivered(ctx context.Context, id string) error {
	return s.submitLesser(ctx, func(tx *bbolt.Tx) error {
		outbox := tx.Bucket(outboxName)
		if outbox == nil || outbox.Get([]byte(id)) == nil {
			return nil
		}
		return torn(outbox.Put([]byte(id), nil))
	}, nil)
}

// historyRecord is how a day is kept. The level's names are those of package quota.
type historyRecord struct {
	Version uint                  `cbor:"0,keyasint"`
	Created int64                 `cbor:"1,keyasint"`
	Clients int64                 `cbor:"2,keyasint"`
	Busiest int64                 `cbor:"3,keyasint"`
	Refused map[quota.Level]int64 `cbor:"4,keyasint,omitempty"`
	Hours   []int64               `cbor:"5,keyasint,omitempty"` // none, or one for each hour
}

// Tally implements [shortener.Store].
func (s *Store) Tally(ctx context.Context) (records []shortener.DayRecord, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		records, err = tally(tx)
		return err
	})
	return records, err
}

// tally returns the tallies of the days that can be read, and what is wrong with the
// others.
func tally(tx *bbolt.Tx) (records []shortener.DayRecord, err error) {
	periods, err := boltquota.Periods(tx)
	for _, period := range periods {
		if !quota.IsDay(period) {
			continue
		}
		r := shortener.DayRecord{Day: period}
		unread := boltquota.Each(tx, quota.LevelClient, period, func(_ quota.Subject, used int64) {
			if used > 0 {
				r.Created, r.Clients, r.Busiest = r.Created+used, r.Clients+1, max(r.Busiest, used)
			}
		})
		if unread != nil {
			err = errors.Join(err, fmt.Errorf("tally of %s: %w", period, unread))
		} else if r.Created > 0 {
			records = append(records, r)
		}
	}
	return records, err
}

// Busiest implements [shortener.Store].
func (s *Store) Busiest(ctx context.Context, day string, level quota.Level, n int) (counts []shortener.Count, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		return boltquota.Each(tx, level, day, func(subject quota.Subject, used int64) {
			counts = append(counts, shortener.Count{Subject: subject, Used: used})
		})
	})
	slices.SortFunc(counts, shortener.BusiestFirst)
	return counts[:min(n, len(counts))], err
}

// AddHistory implements [shortener.Store].
func (s *Store) AddHistory(ctx context.Context, r shortener.DayRecord) error {
	return s.submitLesser(ctx, func(tx *bbolt.Tx) error { return torn(addHistory(tx, r)) }, nil)
}

func addHistory(tx *bbolt.Tx, r shortener.DayRecord) error {
	bucket, err := tx.CreateBucketIfNotExists(historyName)
	if err != nil {
		return err
	}
	sum, err := decodeDay(r.Day, bucket.Get([]byte(r.Day)))
	if err != nil {
		return err
	}
	sum = sum.Add(r)
	record := historyRecord{recordVersion, sum.Created, sum.Clients, sum.Busiest, maps.Clone(sum.Refused), sum.Hours[:]}
	raw, err := cbor.Marshal(record)
	if err != nil {
		return err
	}
	if err := bucket.Put([]byte(r.Day), raw); err != nil {
		return err
	}
	var outdated [][]byte
	cursor, kept := bucket.Cursor(), 0
	for day, _ := cursor.Last(); day != nil; day, _ = cursor.Prev() {
		if kept++; kept > shortener.HistoryDays {
			outdated = append(outdated, bytes.Clone(day))
		}
	}
	for _, day := range outdated {
		if err := bucket.Delete(day); err != nil {
			return err
		}
	}
	return nil
}

// decodeDay returns the record of a day; nothing is the record of a day of which
// nothing is known.
func decodeDay(day string, raw []byte) (shortener.DayRecord, error) {
	if raw == nil {
		return shortener.DayRecord{Day: day}, nil
	}
	var r historyRecord
	if err := cbor.Unmarshal(raw, &r); err != nil {
		return shortener.DayRecord{}, fmt.Errorf("history of %s: %w", day, err)
	}
	record := shortener.DayRecord{Day: day, Created: r.Created, Clients: r.Clients, Busiest: r.Busiest, Refused: r.Refused}
	copy(record.Hours[:], r.Hours)
	return record, knownVersion(r.Version)
}

// History implements [shortener.Store].
func (s *Store) History(ctx context.Context, n int) (records []shortener.DayRecord, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(historyName)
		if bucket == nil {
			return nil
		}
		cursor := bucket.Cursor()
		for day, raw := cursor.Last(); day != nil && len(records) < n; day, raw = cursor.Prev() {
			r, err := decodeDay(string(day), raw)
			if err != nil {
				return err
			}
			records = append(records, r)
		}
		return nil
	})
	return records, err
}
