package shortener

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"snip/quota"
)

// host is where a destination leads, as a browser understands it.
type host struct {
	ascii string     // in lower case, international labels as punycode
	addr  netip.Addr // what the host is when it is an address, else invalid
}

// browserIDNA maps international names as the URL Standard's "domain to ASCII" does
// when it is not strict: UTS #46, nontransitional, hyphens and STD3 unchecked, so
// that names with _ or with -- in the middle pass.
var browserIDNA = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
	idna.BidiRule(),
)

// forbiddenInHost are the URL Standard's forbidden domain code points; control
// characters are refused before.
const forbiddenInHost = " #/:<>?@[\\]^|%"

// The longest host, in bytes: as a name of the DNS (RFC 1035 with its dots), and
// as typed, where four labels of 59 characters of four bytes still fit. Punycode
// takes quadratic time: without these bounds one host of 8 KiB was measured to
// cost every visit 150 ms.
const (
	maxName      = 253
	maxTypedHost = 1024
)

var errLongHost = because("has_too_long_a_host", "Max", maxName)

// parseHost reads a host without its port.
func parseHost(text string) (host, error) {
	if len(text) > maxTypedHost {
		return host{}, errLongHost
	}
	if strings.HasPrefix(text, "[") {
		return parseIPv6(text)
	}
	name, err := toASCII(text)
	if err != nil {
		return host{}, err
	}
	// Looked for after the mapping, which makes a / of ℀ and an @ of ＠.
	if i := strings.IndexAny(name, forbiddenInHost); i >= 0 {
		return host{}, because("must_not_contain_in_its_host", "Character", strconv.Quote(name[i:i+1]))
	}
	labels := strings.TrimRight(name, ".")
	switch {
	case labels == "":
		return host{}, because("must_have_a_host_that_is_more_than_dots")
	case len(labels) > maxName:
		return host{}, errLongHost
	case strings.HasPrefix(labels, "."), strings.Contains(labels, ".."):
		return host{}, because("must_not_have_a_host_with_empty_labels")
	case !endsInNumber(labels):
		return host{ascii: name}, nil
	}
	addr, ok := parseIPv4(labels)
	if !ok {
		return host{}, because("has_no_valid_ipv4_address")
	}
	return host{ascii: name, addr: addr}, nil
}

func toASCII(text string) (string, error) {
	lower := strings.ToLower(text)
	if isASCII(text) && !strings.HasPrefix(lower, "xn--") && !strings.Contains(lower, ".xn--") {
		return lower, nil // as the standard says, whatever UTS #46 thinks of it
	}
	name, err := browserIDNA.ToASCII(text)
	// ASCII goes out as it was typed, so it has to be what was checked.
	if err != nil || isASCII(text) && name != lower {
		return "", because("has_no_valid_international_name")
	}
	return name, nil
}

func parseIPv6(text string) (host, error) {
	inner, closed := strings.CutSuffix(text[1:], "]")
	addr, err := netip.ParseAddr(inner)
	if !closed || err != nil || !addr.Is6() || addr.Zone() != "" {
		return host{}, because("has_no_valid_ipv6_address")
	}
	return host{ascii: strings.ToLower(text), addr: addr}, nil
}

// plausible reports whether the host, typed without a scheme, can only have been
// meant as one.
func (h host) plausible(typed string) bool {
	if h.addr.IsValid() {
		_, err := netip.ParseAddr(strings.Trim(typed, "[]"))
		return err == nil
	}
	name := strings.TrimRight(h.ascii, ".")
	top := name[strings.LastIndexByte(name, '.')+1:]
	return len(top) < len(name) && len(top) > 1 && top[0] >= 'a' &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

// canonical returns the one spelling that stands for all of a host's.
func (h host) canonical() string {
	if h.addr.IsValid() {
		return quota.EmbeddedIPv4(h.addr).String()
	}
	return strings.TrimRight(h.ascii, ".")
}

// CanonicalHost reads a host without its port, as browsers do, and returns the one
// spelling that stands for all of its own: in lower case, international labels as
// punycode, without a dot or anything invisible at its ends. An IPv4 address, also one
// that is written as IPv6, is four decimal numbers; another IPv6 address has no brackets.
func CanonicalHost(text string) (string, error) {
	text = strings.TrimFunc(text, Invisible)
	if err := checkText(text); err != nil {
		return "", err
	}
	h, err := parseHost(text)
	if err != nil {
		return "", err
	}
	return h.canonical(), nil
}

// HostOf returns the host of a destination that Parse accepted as [CanonicalHost]
// does, or "" where it can read none: the tables of international names may have
// changed since.
func HostOf(destination string) string {
	h, err := hostOf(destination)
	if err != nil {
		return ""
	}
	return h.canonical()
}

func hostOf(destination string) (host, error) {
	p, err := split(destination)
	if err != nil {
		return host{}, err
	}
	return parseHost(p.host)
}

// isPrivate reports whether a destination that Parse accepted leads to a private or
// special address, or has a local name.
func isPrivate(destination string) bool {
	h, err := hostOf(destination)
	return err == nil && h.private()
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c >= utf8.RuneSelf })
}
