package boltstore

import (
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"

	"snip/quota"
	"snip/shortener"
)

// recordVersion is what this program writes; a record with a higher one is not
// guessed at.
const recordVersion = 1

// record is how a link is kept. Numbers name the fields: they are never reused.
type record struct {
	Version     uint   `cbor:"0,keyasint"`
	Destination string `cbor:"1,keyasint"`
	CreatedAt   int64  `cbor:"2,keyasint"`           // microseconds since 1970
	ExpiresAt   int64  `cbor:"3,keyasint,omitempty"` // microseconds since 1970; absent is never
	Day         string `cbor:"4,keyasint,omitempty"`
	Creator     []byte `cbor:"5,keyasint,omitempty"`
	Slug        string `cbor:"6,keyasint"` // so that a record can be told without its key
}

func encodeLink(l shortener.Link) ([]byte, error) {
	r := record{
		Version:     recordVersion,
		Destination: l.Destination,
		CreatedAt:   l.CreatedAt.UnixMicro(),
		Day:         l.Day,
		Creator:     []byte(l.Creator),
		Slug:        string(l.Slug),
	}
	if !l.ExpiresAt.IsZero() {
		r.ExpiresAt = l.ExpiresAt.UnixMicro()
	}
	return cbor.Marshal(r)
}

func decodeLink(raw []byte) (shortener.Link, error) {
	var r record
	if err := cbor.Unmarshal(raw, &r); err != nil {
		return shortener.Link{}, err
	}
	if r.Version != recordVersion {
		return shortener.Link{}, fmt.Errorf("version %d is not known", r.Version)
	}
	l := shortener.Link{
		Slug:        shortener.Slug(r.Slug),
		Destination: r.Destination,
		CreatedAt:   time.UnixMicro(r.CreatedAt).UTC(),
		Day:         r.Day,
		Creator:     quota.Subject(r.Creator),
	}
	if r.ExpiresAt != 0 {
		l.ExpiresAt = time.UnixMicro(r.ExpiresAt).UTC()
	}
	return l, nil
}
