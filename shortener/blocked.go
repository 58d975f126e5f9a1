package shortener

import (
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// site is the place on the web that short links start with, where no
// destination may lead: a link to a link can be a loop.
type site struct {
	host   host   // the zero host is nowhere
	port   uint16 // 0 is the scheme's own
	prefix string // cleaned, "/" when the whole host belongs to it
}

func newSite(public *url.URL) (site, error) {
	p, err := split(public.Scheme + "://" + public.Host)
	if err != nil {
		return site{}, err
	}
	s := site{prefix: path.Clean("/" + public.Path)}
	if s.host, err = parseHost(p.host); err != nil {
		return site{}, err
	}
	s.port, err = p.portNumber()
	return s, err
}

// has reports whether a destination leads there. The ports of HTTP and
// HTTPS count as its own, because a proxy in front commonly answers there, also
// when the program itself is known by another.
func (s site) has(h host, port uint16, typed string) bool {
	if s.host.ascii == "" || s.host.canonical() != h.canonical() {
		return false
	}
	if port != 0 && port != 80 && port != 443 && port != s.port {
		return false
	}
	sent := browserPath(typed)
	return s.below(sent) || s.below(serverPath(sent))
}

func (s site) below(p string) bool {
	return s.prefix == "/" || p == s.prefix || strings.HasPrefix(p, s.prefix+"/")
}

// browserPath returns the path that a browser sends: backslashes are slashes, and
// dot segments, also written %2e, are resolved while empty segments still count.
func browserPath(typed string) string {
	var sent []string
	for segment := range strings.SplitSeq(strings.ReplaceAll(typed, `\`, "/"), "/") {
		switch strings.ReplaceAll(strings.ToLower(segment), "%2e", ".") {
		case ".":
		case "..":
			sent = sent[:max(len(sent)-1, 1)] // the first is what precedes the leading slash
		default:
			sent = append(sent, segment)
		}
	}
	return strings.Join(sent, "/")
}

// serverPath returns the path that a server or a proxy may make of the one sent:
// decoded once, repeated slashes joined, dot segments resolved again.
func serverPath(sent string) string {
	var b strings.Builder
	for i := 0; i < len(sent); i++ {
		c := sent[i]
		if c == '%' {
			// A % without two digits stands for itself.
			if text, err := url.PathUnescape(sent[i:min(i+3, len(sent))]); err == nil {
				c = text[0]
				i += 2
			}
		}
		b.WriteByte(c)
	}
	return path.Clean("/" + strings.ReplaceAll(b.String(), `\`, "/"))
}

// privateRanges lead to the machine or the network of whoever follows a link,
// or to nobody: from the IANA special-purpose registries of RFC 6890, without the
// ranges for documentation, which harm nobody.
var privateRanges = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),      // this host
	netip.MustParsePrefix("10.0.0.0/8"),     // private
	netip.MustParsePrefix("100.64.0.0/10"),  // shared by carriers
	netip.MustParsePrefix("127.0.0.0/8"),    // loopback
	netip.MustParsePrefix("169.254.0.0/16"), // link-local
	netip.MustParsePrefix("172.16.0.0/12"),  // private
	netip.MustParsePrefix("192.168.0.0/16"), // private
	netip.MustParsePrefix("224.0.0.0/4"),    // multicast
	netip.MustParsePrefix("240.0.0.0/4"),    // reserved, and broadcast
	netip.MustParsePrefix("64:ff9b:1::/48"), // translation within a network
	netip.MustParsePrefix("fc00::/7"),       // unique local
	netip.MustParsePrefix("fe80::/10"),      // link-local
	netip.MustParsePrefix("fec0::/10"),      // site-local, deprecated
	netip.MustParsePrefix("ff00::/8"),       // multicast
}

// carriers are the IPv6 ranges that stand for an IPv4 address, and the byte that
// it starts at. The first holds :: and ::1 as well, which so become addresses
// in 0.0.0.0/8.
var carriers = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible, RFC 4291
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // translated, RFC 2765
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64, RFC 6052
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4, RFC 3056
}

// carried returns the IPv4 address that an IPv6 address stands for, or the
// address itself.
func carried(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	for _, c := range carriers {
		if c.prefix.Contains(addr) {
			b := addr.As16()
			return netip.AddrFrom4([4]byte(b[c.at:]))
		}
	}
	return addr
}

// private reports whether the host is an address in a private range or a name
// for the reader's own machine: localhost and all below it (RFC 6761), and
// localhost.localdomain, which common hosts files hold. Names are not looked up:
// what a name leads to may change after any look.
func (h host) private() bool {
	if h.addr.IsValid() {
		addr := carried(h.addr)
		for _, r := range privateRanges {
			if r.Contains(addr) {
				return true
			}
		}
		return false
	}
	name := strings.TrimRight(h.ascii, ".")
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || name == "localhost.localdomain"
}
