package boltstore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/shortener"
)

// newService returns the use cases on a store at noon.
func newService(s *Store) *shortener.Service {
	return shortener.New(shortener.Config{
		Store: s, Policy: quota.Policy{Client: 50, Network: 250, Service: 1000}, Now: func() time.Time { return noon },
	})
}

// Nothing of what was answered, and nothing of the key, can be read from the file:
// neither the token nor which link the answer is about.
func TestAnswersAreSealed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "snip.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	service := newService(s)
	const key = "7f0d5a3e-secret-idempotency-key"
	who := quota.ClientOf(netip.MustParseAddr("192.0.2.1"))
	n := shortener.NewLink{URL: "https://example.org/where-it-leads", Slug: "sealed-slug"}
	made, err := service.Create(t.Context(), who, n, key)
	if err != nil {
		t.Fatal(err)
	}
	// The link itself is there, so what remains is looked at without it.
	err = s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(linksName).Delete([]byte("sealed-slug")) })
	if err != nil {
		t.Fatal(err)
	}
	again, err := service.Create(t.Context(), who, n, key)
	if err != nil || again.Token != made.Token || again.Link.Destination != n.URL {
		t.Errorf("again: %+v, %v, want %+v", again, err, made)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compact(path, path+".compact"); err != nil { // without freed pages
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path + ".compact")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(raw, answersName) {
		t.Fatal("there is no answer in the file")
	}
	for name, secret := range map[string][]byte{
		"the key": []byte(key), "a part of it": []byte("secret-idempotency"), "the token": []byte(made.Token), "the slug": []byte("sealed-slug"), "the destination": []byte("where-it-leads"),
	} {
		if bytes.Contains(raw, secret) {
			t.Errorf("%s can be read from the file", name)
		}
	}
}

// answered is creation with an answer.
func answered(t *testing.T, s *Store, now time.Time, host int, slug string) shortener.Creation {
	t.Helper()
	c := creation(t, s, now, host, slug)
	ref := shortener.AnswerRef{Day: c.Day, ID: shortener.AnswerID{byte(host >> 8), byte(host)}}
	c.Answer, c.Replays = &shortener.Answer{AnswerRef: ref, At: now, Sealed: []byte("sealed")}, []shortener.AnswerRef{ref}
	return c
}

// An answer that cannot be read is neither found nor taken for one that is not there.
func TestDamagedAnswers(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	c := answered(t, s, noon, 1, "first")
	if err := s.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]string{
		"nothing":            "",
		"no CBOR":            "3f",
		"of a newer program": "a200020100",
		"of another day":     "a300010100024173",
		"something behind":   "a30001011b00064558cd3c8000024173" + "00",
	} {
		value, err := hex.DecodeString(raw)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(answersName).Put(answerKey(c.Answer.AnswerRef), value) }); err != nil {
			t.Fatal(err)
		}
		if a, err := s.Answer(t.Context(), c.Replays); !errors.Is(err, quota.ErrCannotCount) {
			t.Errorf("%s: found %+v, %v, want ErrCannotCount", name, a, err)
		}
		again := answered(t, s, noon, 1, "again")
		err = s.Create(t.Context(), again)
		wantUnavailable(t, err)
		if !errors.Is(err, quota.ErrCannotCount) {
			t.Errorf("%s: created with error %v, want ErrCannotCount", name, err)
		}
	}
	wantCounted(t, s, "2026-11-29", 1)
	mustCreate(t, s, noon, 1, "another") // others are not concerned
}

// Answers are removed with their days, a bounded number in a commit.
func TestSweepAnswers(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	mustCreate(t, s, noon, 1, "day-0")
	err := s.db.Update(func(tx *bbolt.Tx) error {
		for i := range 2*sweepChunk + 1 {
			a := answered(t, s, noon, i, "x").Answer
			if err := putAnswer(tx, *a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		err := s.view(func(tx *bbolt.Tx) error {
			n = tx.Bucket(answersName).Stats().KeyN
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return n
	}
	for i, want := range []struct {
		keep string
		left int
	}{{"2026-11-29", 2*sweepChunk + 1}, {"2026-11-30", sweepChunk + 1}, {"2026-11-30", 1}, {"2026-11-30", 0}, {"2026-11-30", 0}} {
		before := count()
		removed := false
		err := s.db.Update(func(tx *bbolt.Tx) (err error) {
			removed, err = sweepAnswers(tx, want.keep, sweepChunk)
			return err
		})
		if left := count(); err != nil || left != want.left || removed != (left < before) {
			t.Errorf("round %d: %d are left and removed is %v, %v, want %d", i, left, removed, err, want.left)
		}
	}

	// With the day go its answers, and no sooner than that.
	for day := range 3 {
		if err := s.Create(t.Context(), answered(t, s, noon.AddDate(0, 0, day), 1, fmt.Sprint("later-", day))); err != nil {
			t.Fatal(err)
		}
	}
	swept(t, s, "2026-11-30", "2026-12-01")
	if n := count(); n != 2 {
		t.Errorf("%d answers are kept, want those of two days", n)
	}
}

// Whatever stands in a record, it is refused, or read to an answer that is written and
// read again without a change.
func FuzzDecodeAnswer(f *testing.F) {
	ref := shortener.AnswerRef{Day: "2026-11-29", ID: shortener.AnswerID{1}}
	whole, err := encodeAnswer(shortener.Answer{AnswerRef: ref, At: noon, Sealed: []byte("sealed")})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{nil, {0x3f}, {0xa0}, whole, whole[:len(whole)-1], append(bytes.Clone(whole), 0)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := decodeAnswer(ref, raw)
		if err != nil {
			if !errors.Is(err, quota.ErrCannotCount) || a.AnswerRef != (shortener.AnswerRef{}) || a.Sealed != nil {
				t.Errorf("%x: %v with half an answer %+v", raw, err, a)
			}
			return
		}
		written, err := encodeAnswer(a)
		if err != nil {
			t.Fatalf("%x: %+v cannot be written: %v", raw, a, err)
		}
		again, err := decodeAnswer(ref, written)
		if err != nil || !again.At.Equal(a.At) || !bytes.Equal(again.Sealed, a.Sealed) || a.AnswerRef != ref {
			t.Errorf("%x: %+v, then %+v, %v", raw, a, again, err)
		}
	})
}
