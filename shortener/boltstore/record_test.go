package boltstore

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"snip/shortener"
)

// The bytes of a record are a promise to later versions: they must read what
// this one has written.
func TestRecordBytes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		link shortener.Link
		want string // in hexadecimal
	}{
		{"least", shortener.Link{Slug: "abc", Destination: "https://example.org/", CreatedAt: noon},
			"a40001017468747470733a2f2f6578616d706c652e6f72672f021b00066169085c70000663616263"},
		{"all", shortener.Link{Slug: "abc", Destination: "https://example.org/ä", CreatedAt: noon,
			ExpiresAt: noon.Add(time.Microsecond), Day: "2026-11-29", Creator: "\x00\xff"},
			"a70001017668747470733a2f2f6578616d706c652e6f72672fc3a4021b00066169085c7000031b00066169085c7001046a323032362d31312d3239054200ff0663616263"},
	} {
		raw, err := encodeLink(row.link)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(raw); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
		got, err := decodeLink(raw)
		if diff := cmp.Diff(row.link, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", row.name, err, diff)
		}
	}
}

// A record that is not whole, or of a version to come, is an error and never
// half a link.
func TestUnreadableRecords(t *testing.T) {
	t.Parallel()
	whole, err := encodeLink(shortener.Link{Slug: "abc", Destination: "https://example.org/", CreatedAt: noon})
	if err != nil {
		t.Fatal(err)
	}
	later := bytes.Clone(whole)
	later[2] = recordVersion + 1 // after the map's head and the key 0
	rows := map[string][]byte{
		"a later version":  later,
		"nothing":          nil,
		"no version":       {0xa0},
		"a list":           {0x80},
		"a byte more":      append(bytes.Clone(whole), 0),
		"a negative count": {0xa1, 0x00, 0x20},
	}
	for cut := range whole {
		rows[fmt.Sprintf("cut at %d", cut)] = whole[:cut]
	}
	for name, raw := range rows {
		if link, err := decodeLink(raw); err == nil || link != (shortener.Link{}) {
			t.Errorf("%s: %+v, %v", name, link, err)
		}
	}
}

// A record that lies under another slug's key leads nobody astray.
func TestRecordOfAnotherSlug(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	link := shortener.Link{Slug: "theirs", Destination: "https://example.org/", CreatedAt: noon}
	for _, kept := range []shortener.Link{link, link.Tombstone()} {
		raw, err := encodeLink(kept)
		if err != nil {
			t.Fatal(err)
		}
		err = s.submit(t.Context(), func(tx *bbolt.Tx) error { return tx.Bucket(linksName).Put([]byte("ours"), raw) })
		if err != nil {
			t.Fatal(err)
		}
		if link, err := s.Get(t.Context(), "ours"); err == nil || !strings.Contains(err.Error(), "theirs") {
			t.Errorf("%+v, %v", link, err)
		}
		for range 2 { // it is not kept for the next visit either
			if target, err := s.Follow(t.Context(), "ours"); err == nil || !strings.Contains(err.Error(), "theirs") {
				t.Errorf("%+v, %v", target, err)
			}
		}
	}
}

// Whatever stands in a record, it is refused, or read to a link that is written
// and read again without a change.
func FuzzDecodeLink(f *testing.F) {
	for _, link := range []shortener.Link{
		{Slug: "abc", Destination: "https://example.org/", CreatedAt: noon},
		{Slug: "abc", Destination: "https://example.org/ä", CreatedAt: noon, ExpiresAt: noon.Add(time.Hour), Day: "2026-11-29", Creator: "\x00\xff"},
	} {
		raw, err := encodeLink(link)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for _, seed := range []string{
		"", "a0", "a10001", "a10002", "bf0001ff", "a200010001", "a2000101617f", "a200010261ff", "a20001011bffffffffffffffff",
		"a20001033b7fffffffffffffff", "d81ea10001", "9f9f9f9f9f9f", "5f41ff", "a2000105f6", "a10020", "fb7ff0000000000000",
	} {
		raw, err := hex.DecodeString(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		link, err := decodeLink(raw)
		visit, visitErr := decodeTarget(raw)
		if err != nil {
			if link != (shortener.Link{}) {
				t.Errorf("%x: %v with half a link %+v", raw, err, link)
			}
			return
		}
		if visitErr != nil || visit.Destination != link.Destination || visit.Slug != string(link.Slug) || !instant(visit.ExpiresAt).Equal(link.ExpiresAt) {
			t.Errorf("%x: a visit reads %+v, %v where the link is %+v", raw, visit, visitErr, link)
		}
		written, err := encodeLink(link)
		if err != nil {
			t.Fatalf("%x: %+v cannot be written: %v", raw, link, err)
		}
		again, err := decodeLink(written)
		if diff := cmp.Diff(link, again); err != nil || diff != "" {
			t.Errorf("%x: %v (-first +again):\n%s", raw, err, diff)
		}
	})
}
