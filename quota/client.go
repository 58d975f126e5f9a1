package quota

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

// How much of an address names a client and a network. An IPv6 host picks its
// own low 64 bits and a site is commonly given a /48 (RFC 6177), so anything
// narrower would hand one caller any number of identities.
const (
	clientBits4, clientBits6   = 32, 64
	networkBits4, networkBits6 = 24, 48
)

// nobodies are ranges from which no packet comes that could be answered.
var nobodies = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),   // this host, RFC 1122
	netip.MustParsePrefix("224.0.0.0/4"), // multicast, RFC 5771
	netip.MustParsePrefix("240.0.0.0/4"), // reserved, and broadcast
	netip.MustParsePrefix("ff00::/8"),    // multicast, RFC 4291
}

// Key is what an operator has granted: whoever holds it is a client of its own,
// with a limit of its own, wherever it calls from.
type Key struct {
	ID    KeyID
	Limit int64 // units per window, at least 1
}

// KeyID tells keys apart. The zero KeyID is no key's.
type KeyID uint64

// NewKeyID returns a random id.
func NewKeyID() KeyID {
	var b [8]byte
	for {
		rand.Read(b[:]) // never fails: it ends the program instead
		if id := KeyID(binary.BigEndian.Uint64(b[:])); id != 0 {
			return id
		}
	}
}

// String returns the id as 16 hexadecimal digits.
func (id KeyID) String() string { return fmt.Sprintf("%016x", uint64(id)) }

// Client is who pays: an IPv4 address, an IPv6 /64, or a key. It is comparable,
// and the zero Client is nobody. A key with another limit is another Client, but
// has the same subject and the same bucket in a [Throttle].
type Client struct {
	prefix netip.Prefix
	key    Key
}

// ClientOfKey returns the client that holds a key.
func ClientOfKey(k Key) Client { return Client{key: k} }

// ClientOf returns the client behind an address: an IPv6 address that stands for an
// IPv4 address is read as that, see [EmbeddedIPv4], a zone is dropped, the rest is
// masked.
func ClientOf(addr netip.Addr) Client {
	if addr = addr.Unmap().WithZone(""); !addr.IsLoopback() {
		addr = EmbeddedIPv4(addr)
	}
	return Client{prefix: mask(addr, clientBits4, clientBits6)}
}

// Nobody reports whether the client's address is one from which nothing comes:
// unspecified, multicast, reserved or broadcast.
func (c Client) Nobody() bool {
	return slices.ContainsFunc(nobodies, func(p netip.Prefix) bool { return p.Contains(c.prefix.Addr()) })
}

// Key returns the client's key; the zero Key is none.
func (c Client) Key() Key { return c.key }

// Network returns the IPv4 /24 or IPv6 /48 that the client is in. A key is in
// none: that is the zero Prefix.
func (c Client) Network() netip.Prefix {
	return mask(c.prefix.Addr(), networkBits4, networkBits6)
}

// String returns the masked address or the key's id, for an operator's eyes. It
// is not stored.
func (c Client) String() string {
	if c.key.ID != 0 {
		return "key " + c.key.ID.String()
	}
	return c.prefix.String()
}

// Creator returns the subject that a record keeps of who made it, the same as
// the client level charges.
func (c Client) Creator(secret Secret) Subject {
	if c.key.ID != 0 {
		return secret.subject(LevelClient, []byte(c.String()))
	}
	return secret.Subject(LevelClient, c.prefix)
}

func mask(addr netip.Addr, bits4, bits6 int) netip.Prefix {
	bits := bits6
	if addr.Is4() {
		bits = bits4
	}
	prefix, err := addr.Prefix(bits)
	if err != nil { // only the zero Addr
		return netip.Prefix{}
	}
	return prefix
}

// Secret keys the subjects of one day. Whoever has neither the secret nor the
// day's records cannot tell who was charged.
type Secret [sha256.Size]byte

// NewSecret returns a random secret.
func NewSecret() Secret {
	var s Secret
	rand.Read(s[:]) // never fails: it ends the program instead
	return s
}

// subjectSize is 128 bits of the HMAC: a collision among a day's thousands of
// subjects is out of reach, and every link carries one.
const subjectSize = 16

// Subject returns who is charged at the level for a demand from prefix.
func (s Secret) Subject(level Level, prefix netip.Prefix) Subject {
	return s.subject(level, prefix.AppendTo(nil))
}

// subject keys a name, which no two kinds of client share.
func (s Secret) subject(level Level, name []byte) Subject {
	mac := hmac.New(sha256.New, s[:])
	mac.Write(append([]byte(level), ' '))
	mac.Write(name)
	return Subject(mac.Sum(nil)[:subjectSize])
}
