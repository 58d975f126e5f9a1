package shortener

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"snip/quota"
)

// AnswerHolds is how long an answer is given again for the same Idempotency-Key.
const AnswerHolds = 24 * time.Hour

// AnswerRef is where an answer is kept: with the day on which it was given, under
// what only who sends the same Idempotency-Key again leads to.
type AnswerRef struct {
	Day string
	ID  AnswerID
}

// AnswerID is 128 bits of an HMAC of the Idempotency-Key under the day's secret.
type AnswerID [16]byte

// Answer is what was answered to a demand that came with an Idempotency-Key. It is
// sealed with a key derived from that, so that nobody who has the store can read it.
type Answer struct {
	AnswerRef
	At     time.Time // UTC, in whole microseconds
	Sealed []byte
}

// Holds reports whether the answer is still given again at the instant now. It goes
// by what was stored and not by when answers are removed.
func (a Answer) Holds(now time.Time) bool { return now.Sub(a.At) < AnswerHolds }

// ReplayError means that the demand was done before, and what was answered.
type ReplayError struct{ Answer Answer }

func (e *ReplayError) Error() string { return "it was done before" }

// Errors about Idempotency-Keys.
var (
	// ErrKeyReused means that an Idempotency-Key came before with another demand.
	ErrKeyReused = errors.New("the Idempotency-Key was used for another request")
	// ErrInProgress means that a demand with the same Idempotency-Key is waiting for a
	// check of its destination.
	ErrInProgress = errors.New("a request with the same Idempotency-Key is in progress")
)

// IdempotencyKey is what a client sends to mark its tries of one demand. The empty
// key is none.
type IdempotencyKey string

// demandKey is an Idempotency-Key with what demands must have in common to share it.
type demandKey struct {
	key    IdempotencyKey
	scope  string // single links and batches do not share keys
	holder quota.KeyID
}

// replayable is a demand as it is found again by its Idempotency-Key; without one
// it is never.
type replayable struct {
	demandKey
	fingerprint [sha256.Size]byte
	refs        []AnswerRef // where the answer may be
	today       AnswerRef   // where it is to be kept
}

// replay returns the demand as it is found again, and what was made if it was done
// before.
func (s *Service) replay(ctx context.Context, who quota.Client, d demand, now time.Time) (r replayable, made []Made, err error) {
	if d.key == "" {
		return r, nil, nil
	}
	r.demandKey = demandKey{key: d.key, scope: "single", holder: who.Key().ID}
	if d.batch {
		r.scope = "batch"
	}
	if r.fingerprint, err = fingerprint(d.links); err != nil {
		return r, nil, err
	}
	// The latest day first, and that of tomorrow too: a clock may step back over midnight.
	for _, days := range []int{1, 0, -1} {
		day := quota.DayOf(now.AddDate(0, 0, days)).Label
		secret, err := s.store.Secret(ctx, day)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return r, nil, refusal(err)
		}
		r.refs = append(r.refs, r.ref(day, secret))
	}
	answer, err := s.store.Answer(ctx, r.refs)
	switch {
	case errors.Is(err, ErrNotFound) || err == nil && !answer.Holds(now):
		return r, nil, nil
	case err != nil:
		return r, nil, refusal(err)
	}
	made, err = r.open(answer)
	return r, made, err
}

// unlessDone refuses a demand, unless another try of it has been counted since it was
// looked for: that may have taken the last unit.
func (s *Service) unlessDone(ctx context.Context, who quota.Client, d demand, now time.Time, refused error) ([]Made, bool, error) {
	if _, made, err := s.replay(ctx, who, d, now); made != nil || err != nil {
		return made, true, err
	}
	return nil, false, refused
}

// triesApart is more than may lie between the instants of two tries of which neither
// has been counted yet.
const triesApart = time.Minute

// place says on which day the demand is decided, and so where its answer is kept.
// Near midnight it adds the other day, on which another try may have been decided:
// each must find the other's answer, whichever is counted first.
func (s *Service) place(ctx context.Context, r *replayable, day string, secret quota.Secret, now time.Time) error {
	if r.key == "" {
		return nil
	}
	r.today = r.ref(day, secret)
	r.add(r.today)
	for _, at := range []time.Time{now.Add(-triesApart), now.Add(triesApart)} {
		other := quota.DayOf(at).Label
		if other == day {
			continue
		}
		secret, err := s.store.EnsureSecret(ctx, other)
		if errors.Is(err, quota.ErrClock) { // nothing is decided on that day
			continue
		}
		if err != nil {
			return err
		}
		r.add(r.ref(other, secret))
	}
	return nil
}

func (r *replayable) add(ref AnswerRef) {
	if !slices.Contains(r.refs, ref) {
		r.refs = append(r.refs, ref)
	}
}

// ref is where the answer is kept on a day. Not the address but the key leads to
// it: a phone changes networks.
func (r replayable) ref(day string, secret quota.Secret) AnswerRef {
	mac := hmac.New(sha256.New, secret[:])
	// No subject of a counter begins like that, and all before the key is of a known
	// length.
	fmt.Fprintf(mac, "idempotency %s ", r.scope)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(r.holder)))
	mac.Write([]byte(r.key))
	return AnswerRef{Day: day, ID: AnswerID(mac.Sum(nil))}
}

// fingerprint tells demands apart. The names of [NewLink]'s fields are a part of it, and
// so of a format: the program knows the demands that it did before an upgrade. A field
// that is ever added must be left out where it is zero.
func fingerprint(links []NewLink) (sum [sha256.Size]byte, err error) {
	hash := sha256.New()
	for _, n := range links {
		n.URL = strings.TrimSpace(n.URL) // as it is stored
		if err := plainJSON(hash).Encode(n); err != nil {
			return sum, err
		}
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}

// plainJSON writes one value a line, and & as it is: as an escape it would have six
// bytes, and a list of long links many times the memory that its body had.
func plainJSON(w io.Writer) *json.Encoder {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder
}

// seal returns the answer to be kept, or nil without a key. Sealed are the
// fingerprint, and then each of the links, in JSON: the names of the fields of [Made]
// are a format, too.
func (r replayable) seal(at time.Time, made []Made) (*Answer, error) {
	if r.key == "" {
		return nil, nil
	}
	var text bytes.Buffer
	text.Write(r.fingerprint[:])
	encoder := plainJSON(&text)
	for _, m := range made {
		m.Link.Creator, m.Link.Token = "", TokenHash{} // which are no text, and in no answer
		if err := encoder.Encode(m); err != nil {
			return nil, err
		}
	}
	aead, err := r.aead(r.today)
	if err != nil {
		return nil, err
	}
	return &Answer{AnswerRef: r.today, At: at, Sealed: aead.Seal(nil, nil, text.Bytes(), nil)}, nil
}

// open returns what was answered, or [ErrKeyReused] where that was to another
// demand.
func (r replayable) open(a Answer) ([]Made, error) {
	aead, err := r.aead(a.AnswerRef)
	if err != nil {
		return nil, err
	}
	text, err := aead.Open(nil, nil, a.Sealed, nil)
	if err != nil {
		return nil, unreadable(err)
	}
	if len(text) < sha256.Size {
		return nil, unreadable(io.ErrUnexpectedEOF)
	}
	if !hmac.Equal(text[:sha256.Size], r.fingerprint[:]) {
		return nil, ErrKeyReused
	}
	var made []Made
	for decoder := json.NewDecoder(bytes.NewReader(text[sha256.Size:])); ; {
		var m Made
		switch err := decoder.Decode(&m); {
		case err == nil:
			made = append(made, m)
		case errors.Is(err, io.EOF) && made != nil:
			return made, nil
		default:
			return nil, unreadable(err)
		}
	}
}

// unreadable refuses: without the answer nobody knows whether the demand was done.
func unreadable(err error) error {
	return fmt.Errorf("%w: the answer to an Idempotency-Key: %w", ErrUnavailable, err)
}

// aead seals with a key that only the Idempotency-Key gives.
func (r replayable) aead(ref AnswerRef) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(r.key), ref.ID[:], "snip answer of "+ref.Day, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
