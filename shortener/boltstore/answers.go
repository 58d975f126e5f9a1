package boltstore

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/shortener"
)

// answersName is the bucket of answers to demands that came with an
// Idempotency-Key, by day and id. It is made with the first.
var answersName = []byte("answers")

type answerRecord struct {
	Version uint   `cbor:"0,keyasint"`
	At      int64  `cbor:"1,keyasint"` // microseconds since 1970
	Sealed  []byte `cbor:"2,keyasint"`
}

func answerKey(ref shortener.AnswerRef) []byte { return append([]byte(ref.Day), ref.ID[:]...) }

// refOf is answerKey backwards.
func refOf(key []byte) (ref shortener.AnswerRef, err error) {
	split := len(key) - len(ref.ID)
	if split < 0 {
		return ref, fmt.Errorf("%x is no day and id", key)
	}
	ref.Day = string(key[:split])
	copy(ref.ID[:], key[split:])
	_, err = quota.DayBefore(ref.Day)
	return ref, err
}

func putAnswer(tx *bbolt.Tx, a shortener.Answer) error {
	answers, err := tx.CreateBucketIfNotExists(answersName)
	if err != nil {
		return err
	}
	raw, err := encodeAnswer(a)
	if err != nil {
		return err
	}
	return answers.Put(answerKey(a.AnswerRef), raw)
}

func encodeAnswer(a shortener.Answer) ([]byte, error) {
	return cbor.Marshal(answerRecord{recordVersion, a.At.UnixMicro(), a.Sealed})
}

// findAnswer returns the answer that is kept there, and whether there is one.
func findAnswer(tx *bbolt.Tx, ref shortener.AnswerRef) (a shortener.Answer, found bool, err error) {
	answers := tx.Bucket(answersName)
	if answers == nil {
		return a, false, nil
	}
	raw := answers.Get(answerKey(ref))
	if raw == nil {
		return a, false, nil
	}
	a, err = decodeAnswer(ref, raw)
	return a, true, err
}

func decodeAnswer(ref shortener.AnswerRef, raw []byte) (shortener.Answer, error) {
	var r answerRecord
	err := cbor.Unmarshal(raw, &r)
	if err == nil {
		err = knownVersion(r.Version)
	}
	at := time.UnixMicro(r.At).UTC()
	if day := quota.DayOf(at).Label; err == nil && day != ref.Day {
		err = fmt.Errorf("it was given on %s", day)
	}
	if err != nil {
		return shortener.Answer{}, fmt.Errorf("%w: an answer of %s: %w", quota.ErrCannotCount, ref.Day, err)
	}
	return shortener.Answer{AnswerRef: ref, At: at, Sealed: r.Sealed}, nil
}

// replayed refuses a creation that was done before.
func replayed(tx *bbolt.Tx, c shortener.Creation) error {
	if c.Answer == nil {
		return nil
	}
	for _, ref := range c.Replays {
		a, found, err := findAnswer(tx, ref)
		if err != nil {
			return err
		}
		if found && a.Holds(c.Answer.At) {
			return &shortener.ReplayError{Answer: a}
		}
	}
	return nil
}

// Answer implements [shortener.Store].
func (s *Store) Answer(ctx context.Context, refs []shortener.AnswerRef) (a shortener.Answer, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		for _, ref := range refs {
			var found bool
			if a, found, err = findAnswer(tx, ref); found || err != nil {
				return err
			}
		}
		return shortener.ErrNotFound
	})
	return a, err
}

// sweepAnswers removes up to limit answers of days before keep, and reports whether
// it has removed any.
func sweepAnswers(tx *bbolt.Tx, keep string, limit int) (bool, error) {
	answers := tx.Bucket(answersName)
	if answers == nil {
		return false, nil
	}
	removed := false
	cursor := answers.Cursor()
	for key, _ := cursor.First(); key != nil && bytes.Compare(key, []byte(keep)) < 0 && limit > 0; key, _ = cursor.First() {
		if err := cursor.Delete(); err != nil {
			return removed, err
		}
		removed, limit = true, limit-1
	}
	return removed, nil
}
