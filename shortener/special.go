package shortener

import (
	"net/netip"
	"slices"
	"strings"

	"snip/quota"
)

// special is an entry of the IANA special-purpose address registries, or a range that
// needs a rule of its own.
type special struct {
	prefix netip.Prefix
	global bool // whether everybody reaches the same place there
}

func local(prefix string) special  { return special{netip.MustParsePrefix(prefix), false} }
func global(prefix string) special { return special{netip.MustParsePrefix(prefix), true} }

// specials are the special-purpose ranges that do not lead to the same place for
// everybody, with the parts of them that do: the entries "Globally Reachable: False" of
// https://www.iana.org/assignments/iana-ipv4-special-registry and
// https://www.iana.org/assignments/iana-ipv6-special-registry as of October 2025, and
// those that stand for an IPv4 address, see [quota.EmbeddedIPv4]. Anycast addresses of services in
// the reader's own network are local although the registries call them reachable.
// Multicast and site-local addresses have registries of their own.
var specials = []special{
	local("0.0.0.0/8"),       // this network, RFC 791; with 0.0.0.0/32, this host, RFC 1122
	local("10.0.0.0/8"),      // private use, RFC 1918
	local("100.64.0.0/10"),   // shared by the clients of a carrier, RFC 6598
	local("127.0.0.0/8"),     // loopback, RFC 1122
	local("169.254.0.0/16"),  // link-local, RFC 3927
	local("172.16.0.0/12"),   // private use, RFC 1918
	local("192.0.0.0/24"),    // protocol assignments, RFC 6890, with all entries within
	local("192.0.2.0/24"),    // documentation, RFC 5737
	local("192.88.99.0/24"),  // 6to4 relays, deprecated by RFC 7526; with 192.88.99.2/32, RFC 6751
	local("192.168.0.0/16"),  // private use, RFC 1918
	local("198.18.0.0/15"),   // benchmarking, RFC 2544
	local("198.51.100.0/24"), // documentation, RFC 5737
	local("203.0.113.0/24"),  // documentation, RFC 5737
	local("224.0.0.0/4"),     // multicast, RFC 5771
	local("240.0.0.0/4"),     // reserved, RFC 1112; with 255.255.255.255/32, broadcast, RFC 919

	local("64:ff9b:1::/48"),   // translation within a network, RFC 8215
	local("100::/64"),         // discarded, RFC 6666
	local("100:0:0:1::/64"),   // dummy prefix, RFC 9780
	local("2001::/23"),        // protocol assignments, RFC 2928, with all entries within but these:
	global("2001:3::/32"),     // AMT, RFC 7450
	global("2001:4:112::/48"), // AS112, RFC 7535
	global("2001:20::/28"),    // ORCHIDv2, RFC 7343
	global("2001:30::/28"),    // drone remote identification, RFC 9374
	local("2001:db8::/32"),    // documentation, RFC 3849
	local("3fff::/20"),        // documentation, RFC 9637
	local("5f00::/16"),        // segment routing, RFC 9602
	local("fc00::/7"),         // unique local, RFC 4193
	local("fe80::/10"),        // link-local, RFC 4291
	local("fec0::/10"),        // site-local, deprecated by RFC 3879
	local("ff00::/8"),         // multicast, RFC 4291
}

// isLocal reports whether the smallest range that holds the address is local.
func isLocal(addr netip.Addr) bool {
	addr = quota.EmbeddedIPv4(addr)
	found := special{global: true}
	for _, s := range specials {
		if s.prefix.Contains(addr) && (!found.prefix.IsValid() || s.prefix.Bits() > found.prefix.Bits()) {
			found = s
		}
	}
	return !found.global
}

// localNames are names, with all below them, that each network or machine resolves for
// itself.
var localNames = []string{
	"localhost",                                   // RFC 6761
	"localdomain", "localdomain4", "localdomain6", // what common hosts files put after localhost
	"local",                                      // multicast DNS, RFC 6762
	"internal",                                   // reserved for private use by ICANN in 2024
	"intranet", "private", "corp", "home", "lan", // used in private networks, RFC 6762, appendix G
	"home.arpa",     // RFC 8375
	"service.arpa",  // RFC 9665
	"resolver.arpa", // RFC 9462
	"ipv4only.arpa", // RFC 8880, which has addresses of 192.0.0.0/24
}

// private reports whether the host leads to the machine or the network of the person
// who follows a link, or nowhere: an address that is not the same place for everybody,
// one of the localNames, or a name of one label. A name of one label, such as
// ip6-localhost, is looked for in hosts files and below the reader's own domain; ICANN
// lets no top-level domain have an address (SAC 053). Names are not looked up: what a
// name leads to may change after any look.
func (h host) private() bool {
	if h.addr.IsValid() {
		return isLocal(h.addr)
	}
	name := strings.TrimRight(h.ascii, ".")
	return !strings.Contains(name, ".") || slices.ContainsFunc(localNames, func(local string) bool {
		return name == local || strings.HasSuffix(name, "."+local)
	})
}
