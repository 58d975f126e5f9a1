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

	MaxVisits      int64  `cbor:"7,keyasint,omitempty"`
	ForwardQuery   bool   `cbor:"8,keyasint,omitempty"`
	Token          []byte `cbor:"9,keyasint,omitempty"`
	Deleted        bool   `cbor:"10,keyasint,omitempty"`
	Key            uint64 `cbor:"11,keyasint,omitempty"`
	TakenDown      string `cbor:"12,keyasint,omitempty"`
	ShowsTarget    bool   `cbor:"13,keyasint,omitempty"`
	DirectRedirect bool   `cbor:"14,keyasint,omitempty"`
}

func encodeLink(l shortener.Link) ([]byte, error) {
	r := record{
		Version:     recordVersion,
		Destination: l.Destination,
		CreatedAt:   l.CreatedAt.UnixMicro(),
		Day:         l.Day,
		Creator:     []byte(l.Creator),
		Slug:        string(l.Slug),

		MaxVisits:      l.MaxVisits,
		ForwardQuery:   l.ForwardQuery,
		ShowsTarget:    l.ShowsTarget,
		DirectRedirect: l.DirectRedirect,
		Deleted:        l.Deleted,
		Key:            uint64(l.Key),
		TakenDown:      l.TakenDown,
	}
	if l.Token != (shortener.TokenHash{}) {
		r.Token = l.Token[:]
	}
	if !l.ExpiresAt.IsZero() {
		r.ExpiresAt = l.ExpiresAt.UnixMicro()
	}
	return cbor.Marshal(r)
}

// target is what a visit needs of a record; the rest is left undecoded.
type target struct {
	Version     uint   `cbor:"0,keyasint"`
	Destination string `cbor:"1,keyasint"`
	ExpiresAt   int64  `cbor:"3,keyasint,omitempty"`
	Slug        string `cbor:"6,keyasint"`

	MaxVisits    int64 `cbor:"7,keyasint,omitempty"`
	ForwardQuery bool  `cbor:"8,keyasint,omitempty"`
	Deleted      bool  `cbor:"10,keyasint,omitempty"`

	TakenDown      string `cbor:"12,keyasint,omitempty"`
	DirectRedirect bool   `cbor:"14,keyasint,omitempty"`
}

func (t target) target() shortener.Target {
	return shortener.Target{
		Destination:    shortener.Location(t.Destination),
		Host:           shortener.HostOf(t.Destination),
		ExpiresAt:      instant(t.ExpiresAt),
		ForwardQuery:   t.ForwardQuery,
		Limited:        t.MaxVisits > 0,
		DirectRedirect: t.DirectRedirect,
		TakenDown:      t.TakenDown != "",
		Deleted:        t.Deleted,
	}
}

func decodeTarget(raw []byte) (target, error) {
	var t target
	if err := cbor.Unmarshal(raw, &t); err != nil {
		return target{}, err
	}
	return t, knownVersion(t.Version)
}

func knownVersion(version uint) error {
	if version != recordVersion {
		return fmt.Errorf("version %d is not known", version)
	}
	return nil
}

func decodeLink(raw []byte) (shortener.Link, error) {
	var r record
	if err := cbor.Unmarshal(raw, &r); err != nil {
		return shortener.Link{}, err
	}
	if err := knownVersion(r.Version); err != nil {
		return shortener.Link{}, err
	}
	l := shortener.Link{
		Slug:        shortener.Slug(r.Slug),
		Destination: r.Destination,
		CreatedAt:   time.UnixMicro(r.CreatedAt).UTC(),
		Day:         r.Day,
		Creator:     quota.Subject(r.Creator),
		Key:         quota.KeyID(r.Key),

		MaxVisits:      r.MaxVisits,
		ForwardQuery:   r.ForwardQuery,
		ShowsTarget:    r.ShowsTarget,
		DirectRedirect: r.DirectRedirect,
		TakenDown:      r.TakenDown,
		Deleted:        r.Deleted,
	}
	switch len(r.Token) {
	case 0:
	case len(l.Token):
		copy(l.Token[:], r.Token)
	default:
		return shortener.Link{}, fmt.Errorf("the token's hash has %d bytes, not %d", len(r.Token), len(l.Token))
	}
	l.ExpiresAt = instant(r.ExpiresAt)
	return l, nil
}

// instant is a time of a record, of which 0 is never.
func instant(micro int64) time.Time {
	if micro == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micro).UTC()
}
