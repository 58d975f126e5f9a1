package quota

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// carriers are the IPv6 ranges that stand for an IPv4 address, and where it is.
// Addresses mapped to IPv6 are unmapped before. Those of ISATAP (RFC 5214) are not
// among them: they have a prefix of their own, which decides where they lead.
var carriers = []struct {
	prefix   netip.Prefix
	at       int  // its first byte
	inverted bool // whether each of its bits is
}{
	{netip.MustParsePrefix("::/96"), 12, false},           // IPv4-compatible, RFC 4291
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, false}, // translated, RFC 2765
	{netip.MustParsePrefix("64:ff9b::/96"), 12, false},    // NAT64, RFC 6052
	{netip.MustParsePrefix("2001::/32"), 12, true},        // Teredo, RFC 4380
	{netip.MustParsePrefix("2002::/16"), 2, false},        // 6to4, RFC 3056
}

// EmbeddedIPv4 returns the IPv4 address that an IPv6 address stands for, or the
// address itself. It takes :: and ::1 for addresses in 0.0.0.0/8.
func EmbeddedIPv4(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	for _, c := range carriers {
		if !c.prefix.Contains(addr) {
			continue
		}
		all := addr.As16()
		v4 := [4]byte(all[c.at:])
		if c.inverted {
			for i := range v4 {
				v4[i] = ^v4[i]
			}
		}
		return netip.AddrFrom4(v4)
	}
	return addr
}

// NAT64 is the prefixes that networks have chosen to stand for IPv4 addresses
// (RFC 6052, section 2.2), next to the well-known 64:ff9b::/96.
type NAT64 []netip.Prefix

// Validate reports what is wrong with the prefixes.
func (n NAT64) Validate() error {
	var errs []error
	for i, p := range n {
		addr := p.Addr()
		switch {
		case !addr.Is6() || addr.Is4In6() || !slices.Contains([]int{32, 40, 48, 56, 64, 96}, p.Bits()):
			errs = append(errs, fmt.Errorf("%q must be an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits (RFC 6052)", p))
		case p != p.Masked():
			errs = append(errs, fmt.Errorf("%q has bits beyond its length; %s is meant", p, p.Masked()))
		case addr.As16()[reservedByte] != 0:
			errs = append(errs, fmt.Errorf("%q must have zeros in its bits 64 to 71 (RFC 6052)", p))
		case slices.ContainsFunc(n[:i], p.Overlaps):
			errs = append(errs, fmt.Errorf("%q overlaps with another prefix", p))
		}
	}
	return errors.Join(errs...)
}

// reservedByte of an address is no part of what the prefixes stand for.
const reservedByte = 8

// embedded returns the IPv4 address that the address stands for, or the address
// itself. The bytes follow the prefix, around the reserved one.
func (n NAT64) embedded(addr netip.Addr) netip.Addr {
	for _, p := range n {
		if !p.Contains(addr) {
			continue
		}
		var v4 []byte
		for i, b := range addr.AsSlice() {
			if i >= p.Bits()/8 && i != reservedByte && len(v4) < 4 {
				v4 = append(v4, b)
			}
		}
		return netip.AddrFrom4([4]byte(v4))
	}
	return addr
}

// ClientOf is the function of that name where these prefixes stand for IPv4
// addresses, too.
func (n NAT64) ClientOf(addr netip.Addr) Client { return ClientOf(n.embedded(addr.WithZone(""))) }
