package web

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientFinder tells who a request comes from.
type clientFinder struct {
	trusted []netip.Prefix
	header  string // in canonical form
	entries func(line string) []string
}

// caller is who a request comes from.
type caller struct {
	addr     netip.Addr // who pays; zero where the socket has no address
	peer     netip.Addr // the other end of the socket
	listed   bool       // whether the peer is a trusted proxy
	resolved bool       // whether a listed peer's header could be read
}

func newClientFinder(trusted []netip.Prefix, header string) clientFinder {
	f := clientFinder{header: http.CanonicalHeaderKey(header), entries: commaEntries}
	if f.header == "Forwarded" {
		f.entries = forwardedEntries
	}
	for _, p := range trusted {
		if p.Addr().Is4In6() && p.Bits() >= 96 { // addresses are compared unmapped
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		f.trusted = append(f.trusted, p)
	}
	return f
}

// find returns the caller: the peer, or what the listed proxies say of it. The
// header of anyone else is text that a client can choose, and a second header is
// never tried: a client would send the one that its proxy does not set.
func (f clientFinder) find(r *http.Request) caller {
	c := caller{peer: peerOf(r.RemoteAddr)}
	c.addr = c.peer
	if !f.trusts(c.peer) {
		return c
	}
	c.listed = true
	if addr, ok := f.walk(r.Header[f.header]); ok {
		c.resolved = true
		if addr.IsValid() {
			c.addr = addr
		}
	}
	return c
}

// walk reads the lines as one list from its end, where the nearest proxy wrote,
// and returns the first address that is not a listed proxy's, or none when all
// are. An entry that cannot be read is a proxy set up wrongly: looking further
// left would be asking the client.
func (f clientFinder) walk(lines []string) (addr netip.Addr, ok bool) {
	for _, line := range slices.Backward(lines) {
		for _, entry := range slices.Backward(f.entries(line)) {
			addr, ok := parseNode(entry)
			if !ok {
				return netip.Addr{}, false
			}
			if !f.trusts(addr) {
				return addr, true
			}
		}
	}
	return netip.Addr{}, len(lines) > 0
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
// port, an IPv6 address in brackets or not, all of it in quotes or not.
func parseNode(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		text = strings.TrimSpace(text[1 : len(text)-1])
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		host, port, closed := strings.Cut(inner, "]")
		addr, err := netip.ParseAddr(host)
		if !closed || err != nil || !addr.Is6() || port != "" && port[0] != ':' {
			return netip.Addr{}, false
		}
		return addr.Unmap().WithZone(""), true
	}
	if host, _, ok := strings.Cut(text, ":"); ok && strings.Count(text, ":") == 1 {
		text = host
	}
	addr, err := netip.ParseAddr(text)
	return addr.Unmap().WithZone(""), err == nil
}

// commaEntries splits a line of X-Forwarded-For or the like, which knows no
// quoting.
func commaEntries(line string) []string { return strings.Split(line, ",") }

// forwardedEntries returns the for= of each element of a line of Forwarded
// (RFC 7239, section 4). Where the quoting does not come out even, nobody can
// tell what the proxy wrote from what it was sent: then the line is one entry
// that cannot be read.
func forwardedEntries(line string) []string {
	elements, ok := splitQuoted(line, ',')
	if !ok {
		return []string{""}
	}
	entries := make([]string, len(elements))
	for i, element := range elements {
		pairs, _ := splitQuoted(element, ';')
		for _, pair := range pairs {
			name, value, _ := strings.Cut(pair, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "for") {
				continue
			}
			if entries[i] != "" { // given twice, which the RFC forbids
				entries[i] = ""
				break
			}
			entries[i] = value
		}
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
