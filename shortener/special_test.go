package shortener_test

import (
	"net/netip"
	"testing"

	"snip/shortener"
)

// The entries of the two registries, see the comment of specials, and of the ranges
// beyond them. No link may lead into those that are not global.
var specialEntries = []struct {
	prefix, name, source string
	global               bool
}{
	{"0.0.0.0/8", "This network", "RFC 791, section 3.2", false},
	{"0.0.0.0/32", "This host on this network", "RFC 1122, section 3.2.1.3", false},
	{"10.0.0.0/8", "Private-Use", "RFC 1918", false},
	{"100.64.0.0/10", "Shared Address Space", "RFC 6598", false},
	{"127.0.0.0/8", "Loopback", "RFC 1122, section 3.2.1.3", false},
	{"169.254.0.0/16", "Link Local", "RFC 3927", false},
	{"172.16.0.0/12", "Private-Use", "RFC 1918", false},
	{"192.0.0.0/24", "IETF Protocol Assignments", "RFC 6890, section 2.1", false},
	{"192.0.0.0/29", "IPv4 Service Continuity Prefix", "RFC 7335", false},
	{"192.0.0.8/32", "IPv4 dummy address", "RFC 7600", false},
	{"192.0.0.9/32", "Port Control Protocol Anycast: the reader's own router", "RFC 7723", false},
	{"192.0.0.10/32", "Traversal Using Relays around NAT Anycast: the reader's own network", "RFC 8155", false},
	{"192.0.0.170/32", "NAT64/DNS64 Discovery", "RFC 8880", false},
	{"192.0.0.171/32", "NAT64/DNS64 Discovery", "RFC 8880", false},
	{"192.0.2.0/24", "Documentation (TEST-NET-1)", "RFC 5737", false},
	{"192.31.196.0/24", "AS112-v4", "RFC 7535", true},
	{"192.52.193.0/24", "AMT", "RFC 7450", true},
	{"192.88.99.0/24", "Deprecated (6to4 Relay Anycast)", "RFC 7526", false},
	{"192.88.99.2/32", "6a44-relay anycast address", "RFC 6751", false},
	{"192.168.0.0/16", "Private-Use", "RFC 1918", false},
	{"192.175.48.0/24", "Direct Delegation AS112 Service", "RFC 7534", true},
	{"198.18.0.0/15", "Benchmarking", "RFC 2544", false},
	{"198.51.100.0/24", "Documentation (TEST-NET-2)", "RFC 5737", false},
	{"203.0.113.0/24", "Documentation (TEST-NET-3)", "RFC 5737", false},
	{"240.0.0.0/4", "Reserved", "RFC 1112, section 4", false},
	{"255.255.255.255/32", "Limited Broadcast", "RFC 919, section 7", false},
	{"224.0.0.0/4", "Multicast", "RFC 5771", false},

	{"::1/128", "Loopback Address", "RFC 4291", false},
	{"::/128", "Unspecified Address", "RFC 4291", false},
	{"::ffff:127.0.0.0/104", "IPv4-mapped Address", "RFC 4291", false},
	{"::ffff:198.51.100.0/120", "IPv4-mapped Address", "RFC 4291", false},
	{"::ffff:8.8.8.0/120", "IPv4-mapped Address of a public one", "RFC 4291", true},
	{"::127.0.0.0/104", "IPv4-compatible Address", "RFC 4291, section 2.5.5.1", false},
	{"::8.8.8.0/120", "IPv4-compatible Address of a public one", "RFC 4291, section 2.5.5.1", true},
	{"64:ff9b::10.0.0.0/104", "IPv4-IPv6 Translation", "RFC 6052", false},
	{"64:ff9b::192.0.0.0/120", "IPv4-IPv6 Translation", "RFC 6052", false},
	{"64:ff9b::8.8.8.0/120", "IPv4-IPv6 Translation of a public one", "RFC 6052", true},
	{"64:ff9b:1::/48", "IPv4-IPv6 Translation", "RFC 8215", false},
	{"100::/64", "Discard-Only Address Block", "RFC 6666", false},
	{"100:0:0:1::/64", "Dummy IPv6 Prefix", "RFC 9780", false},
	{"2001:100::/24", "IETF Protocol Assignments", "RFC 2928", false},
	{"2001::f5ff:fffe/128", "TEREDO, of 10.0.0.1", "RFC 4380", false},
	{"2001:0:808:808:0:0:3f57:fe00/120", "TEREDO, of 192.168.1.0/24", "RFC 4380", false},
	{"2001:0:a00:1:0:0:f7f7:f700/120", "TEREDO, of 8.8.8.0/24", "RFC 4380", true},
	{"2001:1::1/128", "Port Control Protocol Anycast: the reader's own router", "RFC 7723", false},
	{"2001:1::2/128", "Traversal Using Relays around NAT Anycast: the reader's own network", "RFC 8155", false},
	{"2001:1::3/128", "DNS-SD Service Registration Protocol Anycast: the reader's own network", "RFC 9665", false},
	{"2001:2::/48", "Benchmarking", "RFC 5180", false},
	{"2001:3::/32", "AMT", "RFC 7450", true},
	{"2001:4:112::/48", "AS112-v6", "RFC 7535", true},
	{"2001:10::/28", "Deprecated (previously ORCHID)", "RFC 4843", false},
	{"2001:20::/28", "ORCHIDv2", "RFC 7343", true},
	{"2001:30::/28", "Drone Remote ID Protocol Entity Tags", "RFC 9374", true},
	{"2001:db8::/32", "Documentation", "RFC 3849", false},
	{"2002:7f00::/24", "6to4, of 127.0.0.0/8", "RFC 3056", false},
	{"2002:c0a8::/32", "6to4, of 192.168.0.0/16", "RFC 3056", false},
	{"2002:808:808::/48", "6to4, of 8.8.8.8", "RFC 3056", true},
	{"2620:4f:8000::/48", "Direct Delegation AS112 Service", "RFC 7534", true},
	{"3fff::/20", "Documentation", "RFC 9637", false},
	{"5f00::/16", "Segment Routing (SRv6) SIDs", "RFC 9602", false},
	{"fc00::/7", "Unique-Local", "RFC 4193", false},
	{"fe80::/10", "Link-Local Unicast", "RFC 4291", false},
	{"fec0::/10", "Site-Local Unicast, deprecated", "RFC 3879", false},
	{"ff00::/8", "Multicast", "RFC 4291", false},
}

func TestParseBlocksSpecialAddresses(t *testing.T) {
	t.Parallel()
	d := rules(t, "https://s.example", false)
	for _, entry := range specialEntries {
		prefix := netip.MustParsePrefix(entry.prefix)
		for _, addr := range []netip.Addr{prefix.Masked().Addr(), lastOf(prefix)} {
			text := "http://" + netip.AddrPortFrom(addr, 8080).String() + "/"
			stored, err := d.Parse(text)
			switch {
			case !entry.global:
				t.Run(entry.prefix+" "+entry.name, func(t *testing.T) {
					wantInvalid(t, stored, err, shortener.ErrBlockedDestination, "leads to a private address")
				})
			case err != nil:
				t.Errorf("%s, %s, %s: %s: %v", entry.prefix, entry.name, entry.source, text, err)
			}
		}
	}
}

// What lies before and behind a range is judged for itself.
func TestParseAllowsAddressesBesideSpecialOnes(t *testing.T) {
	t.Parallel()
	d := rules(t, "https://s.example", false)
	for _, text := range []string{
		"1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255",
		"169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0",
		"192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0",
		"223.255.255.255", "64:ff9b:0:1::", "64:ff9b:2::", "100:0:0:2::", "2001:200::", "2001:db7:ffff::", "2001:db9::", "2003::",
		"3ffe:ffff::", "3fff:1000::", "5eff:ffff::", "5f01::", "fbff:ffff::", "fe00::", "fe7f::",
	} {
		if _, err := d.Parse("http://" + netip.AddrPortFrom(netip.MustParseAddr(text), 80).String()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// lastOf returns the last address of a prefix.
func lastOf(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Masked().Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	addr, _ := netip.AddrFromSlice(bytes)
	return addr
}
