package quota

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"net/netip"
)

// How much of an address names a client and a network. An IPv6 host picks its
// own low 64 bits and a site is commonly given a /48 (RFC 6177), so anything
// narrower would hand one caller any number of identities.
const (
	clientBits4, clientBits6   = 32, 64
	networkBits4, networkBits6 = 24, 48
)

// nat64 is the well-known prefix of RFC 6052, whose last 32 bits are the IPv4
// address of the real caller.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Client is who pays: an IPv4 address or an IPv6 /64. It is comparable, and the
// zero Client is nobody.
type Client struct {
	prefix netip.Prefix
}

// ClientOf returns the client behind an address: IPv4-mapped and NAT64 forms
// are read as their IPv4 address, a zone is dropped, the rest is masked.
func ClientOf(addr netip.Addr) Client {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
	}
	return Client{prefix: mask(addr, clientBits4, clientBits6)}
}

// Network returns the IPv4 /24 or IPv6 /48 that the client is in.
func (c Client) Network() netip.Prefix {
	return mask(c.prefix.Addr(), networkBits4, networkBits6)
}

// String returns the masked address, for an operator's eyes. It is not stored.
func (c Client) String() string { return c.prefix.String() }

// Creator returns the subject that a record keeps of who made it, the same as
// the client level charges.
func (c Client) Creator(secret Secret) Subject { return secret.Subject(LevelClient, c.prefix) }

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
	mac := hmac.New(sha256.New, s[:])
	mac.Write(prefix.AppendTo(append([]byte(level), ' ')))
	return Subject(mac.Sum(nil)[:subjectSize])
}
