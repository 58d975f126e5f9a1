package web

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"snip/quota"
)

// clientFinder tells who a request comes from.
type clientFinder struct {
	trusted []netip.Prefix
	nat64   quota.NAT64
	header  string // in canonical form
	entries func(line string) []string
}

// caller is who a request comes from.
type caller struct {
	client quota.Client // who pays; zero where the socket has no address
	fault  *problem     // why there is no client that could pay; nil where there is one
	peer   netip.Addr   // the other end of the socket
	listed bool         // whether the peer is a trusted proxy
	sent   bool         // whether a listed peer sent the header
}

func newClientFinder(c Config) clientFinder {
	f := clientFinder{nat64: c.NAT64, header: http.CanonicalHeaderKey(c.ClientIPHeader), entries: commaEntries}
	if f.header == "Forwarded" {
		f.entries = forwardedEntries
	}
	for _, p := range c.TrustedProxies {
		if p.Addr().Is4In6() && p.Bits() >= 96 { // addresses are compared unmapped
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		f.trusted = append(f.trusted, p)
	}
	return f
}

// find returns the caller: the peer, or what the listed proxies say of it. The
// header of anyone else is text that a client can choose, and a second header is
// never tried: a client would send the one that its proxy does not set. Where a
// listed proxy sent a header that names no client, nobody pays: the proxy's own
// allowance is not a stranger's.
func (f clientFinder) find(r *http.Request) caller {
	c := caller{peer: peerOf(r.RemoteAddr)}
	addr, lines := c.peer, r.Header[f.header]
	c.listed = f.trusts(c.peer)
	if c.sent = c.listed && len(lines) > 0; c.sent {
		named, ok := f.walk(lines)
		if !ok {
			c.fault = f.unreadable()
			return c
		}
		if named.IsValid() {
			addr = named
		}
	}
	switch c.client = f.nat64.ClientOf(addr); {
	case !c.client.Nobody():
	case c.sent:
		c.fault = f.unreadable()
	default:
		c.fault = invalidRequest(say("problem.no_client"))
	}
	return c
}

// unreadable is a header that names no client. It stands in the message and not as a
// field, because settings may name any header.
func (f clientFinder) unreadable() *problem {
	return invalidRequest(say("problem.client_header", "Header", f.header))
}

// walk reads the lines as one list from its end, where the nearest proxy wrote,
// and returns the first address that is not a listed proxy's, or none when all
// are. An entry that cannot be read is a proxy set up wrongly: looking further
// left would be asking the client. So is a list without an entry.
func (f clientFinder) walk(lines []string) (addr netip.Addr, ok bool) {
	read := false
	for _, line := range slices.Backward(lines) {
		for _, entry := range slices.Backward(f.entries(line)) {
			addr, ok := parseNode(entry)
			if !ok {
				return netip.Addr{}, false
			}
			if !f.trusts(addr) {
				return addr, true
			}
			read = true
		}
	}
	return netip.Addr{}, read
}

func (f clientFinder) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(f.trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}

func peerOf(remote string) netip.Addr {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return peer.Addr().Unmap().WithZone("")
}

// parseNode reads an address in the forms that proxies write: with or without a
// port, an IPv6 address in brackets or not, all of it in quotes or not. What RFC 7239
// has in its place, "unknown" and identifiers such as _hidden, names nobody that could
// be told from others, so it cannot be read.
func parseNode(text string) (netip.Addr, bool) {
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		text = trimBlanks(text[1 : len(text)-1])
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		host, port, closed := strings.Cut(inner, "]")
		addr, err := netip.ParseAddr(host)
		if !closed || err != nil || !addr.Is6() || port != "" && !isPort(port) {
			return netip.Addr{}, false
		}
		return addr.Unmap().WithZone(""), true
	}
	if i := strings.IndexByte(text, ':'); i >= 0 && strings.Count(text, ":") == 1 {
		if !isPort(text[i:]) {
			return netip.Addr{}, false
		}
		text = text[:i]
	}
	addr, err := netip.ParseAddr(text)
	return addr.Unmap().WithZone(""), err == nil
}

// isPort reports whether the text is a colon and a port, or what RFC 7239, section 6,
// lets a proxy write in place of one.
func isPort(text string) bool {
	port, colon := strings.CutPrefix(text, ":")
	if name, hidden := strings.CutPrefix(port, "_"); hidden {
		return colon && name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789._-") == ""
	}
	return colon && port != "" && len(port) <= 5 && strings.Trim(port, "0123456789") == ""
}

// trimBlanks removes the white space that lists may have around their elements.
func trimBlanks(text string) string { return strings.Trim(text, " \t") }

// commaEntries splits a line of X-Forwarded-For or the like, which knows no
// quoting. Empty elements are none (RFC 9110, section 5.6.1.2).
func commaEntries(line string) []string {
	var entries []string
	for entry := range strings.SplitSeq(line, ",") {
		if entry = trimBlanks(entry); entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries
}

// forwardedEntries returns the for= of each element of a line of Forwarded
// (RFC 7239, section 4), or "" where an element has none. Empty elements are none.
// Where the quoting does not come out even, nobody can tell what the proxy wrote from
// what it was sent: then the line is one entry that cannot be read.
func forwardedEntries(line string) []string {
	elements, ok := splitQuoted(line, ',')
	if !ok {
		return []string{""}
	}
	var entries []string
	for _, element := range elements {
		if trimBlanks(element) == "" {
			continue
		}
		entry, given := "", false
		pairs, _ := splitQuoted(element, ';')
		for _, pair := range pairs {
			name, value, _ := strings.Cut(pair, "=")
			if !strings.EqualFold(trimBlanks(name), "for") {
				continue
			}
			if entry = trimBlanks(value); given { // twice, which the RFC forbids
				entry = ""
				break
			}
			given = true
		}
		entries = append(entries, entry)
	}
	return entries
}

// splitQuoted splits at separators outside quoted strings, and reports whether
// every quoted string is closed.
func splitQuoted(text string, separator byte) (parts []string, ok bool) {
	start, inQuotes := 0, false
	for i := 0; i < len(text); i++ {
		switch {
		case inQuotes && text[i] == '\\':
			i++
		case text[i] == '"':
			inQuotes = !inQuotes
		case text[i] == separator && !inQuotes:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:]), !inQuotes
}
