package shortener

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxDestination is the longest destination, in bytes, a scheme that was added
// included.
const MaxDestination = 8192

// Destinations are the rules that a destination must pass. The zero value knows
// no host of its own and refuses private addresses.
type Destinations struct {
	own          site
	allowPrivate bool
}

// NewDestinations returns the rules of the service whose short links start with
// public. Whatever leads back below public is refused, and so are private and other
// special addresses and local names unless allowPrivate is set. The error says what
// is wrong with public: its scheme, its host or its port.
func NewDestinations(public *url.URL, allowPrivate bool) (Destinations, error) {
	own, err := newSite(public)
	if err != nil {
		return Destinations{}, fmt.Errorf("public URL %q: it %w", public.Redacted(), err)
	}
	return Destinations{own: own, allowPrivate: allowPrivate}, nil
}

// Parse returns the destination to store: the text without outer white space, and
// otherwise byte for byte as it was typed, except that text shaped like a host
// gets "https://" in front. The error is an [*InvalidError] of the kind
// [ErrInvalidURL] or [ErrBlockedDestination].
//
// Other invisible characters at either end are refused, and not cut off: some belong
// to the character before them, as in an emoji.
//
// It is deliberately no URL parser: net/url refuses and rewrites what people
// shorten every day, such as a stray % or a raw blank, and what a browser makes
// of a path is the browser's own business. Only what decides where a link leads
// is read, the way the URL Standard (https://url.spec.whatwg.org/) reads it, and
// where that standard repairs what it is given, Parse refuses: a missing slash,
// a backslash or a percent sign in the host, a user name.
func (d Destinations) Parse(text string) (string, error) {
	text = strings.TrimSpace(text)
	if err := checkEnds(text); err != nil {
		return "", invalidURL(err)
	}
	if holdsAnother(text) { // before checkText, which has another reason for a line break
		return "", invalidURL(because("must_be_one_address"))
	}
	if err := checkText(text); err != nil {
		return "", invalidURL(err)
	}
	if !hasScheme(text) {
		if !shapedLikeHost(text) {
			return "", invalidURL(because("must_start_with_http_or_https"))
		}
		text = "https://" + text
		if err := checkText(text); err != nil {
			return "", invalidURL(err)
		}
	}
	p, err := split(text)
	if err != nil {
		return "", invalidURL(err)
	}
	h, err := parseHost(p.host)
	if err != nil {
		return "", invalidURL(err)
	}
	port, err := p.portNumber()
	if err != nil {
		return "", invalidURL(err)
	}
	switch {
	case d.own.has(h, port, p.path()):
		return "", blocked(because("leads_back_to_this_service"))
	case !d.allowPrivate && h.private():
		return "", blocked(because("leads_to_a_private_address"))
	}
	return text, nil
}

// Location returns a destination that Parse accepted as the Location header
// carries it, which is a URI of RFC 3986: an international host becomes punycode,
// and each byte that the RFC does not allow where it stands becomes a percent sign
// and two digits. Everything else stays as it was typed. That holds for every % as
// well, also for one that begins no escape: what it was meant for is unknown.
// Whatever Location is given, the result is printable ASCII.
func Location(destination string) string {
	if isURI(destination) {
		return destination
	}
	p, err := split(destination)
	if err != nil {
		return escape(destination)
	}
	// A host that newer tables refuse is escaped like the rest: it leads nowhere, but
	// it breaks no header either.
	host := escape(p.host)
	switch h, err := parseHost(p.host); {
	case err != nil:
	case strings.HasPrefix(p.host, "["):
		host = p.host
	case !isASCII(p.host):
		host = escape(h.ascii)
	}
	return p.scheme + host + escape(p.port) + escape(p.rest)
}

func invalidURL(err error) error {
	reason, _ := errors.AsType[Reason](err)
	return &InvalidError{Field: "url", Kind: ErrInvalidURL, Reason: reason}
}

func blocked(reason Reason) error {
	return &InvalidError{Field: "url", Kind: ErrBlockedDestination, Reason: reason}
}

// checkText refuses what no part of a destination may hold.
func checkText(text string) error {
	switch {
	case text == "":
		return because("must_not_be_empty")
	case len(text) > MaxDestination:
		return because("has_too_many_bytes", "Bytes", len(text), "Max", MaxDestination)
	case !utf8.ValidString(text):
		return because("must_be_utf8")
	}
	if i := strings.IndexFunc(text, unicode.IsControl); i >= 0 {
		c, _ := utf8.DecodeRuneInString(text[i:])
		return because("must_not_contain_the_control_character", "Character", fmt.Sprintf("%U", c))
	}
	return nil
}

// checkEnds refuses characters at either end that nobody sees, and names them.
func checkEnds(text string) error {
	if c, _ := utf8.DecodeRuneInString(text); Invisible(c) {
		return because("must_not_begin_with_the_invisible_character", "Character", fmt.Sprintf("%U", c))
	}
	if c, _ := utf8.DecodeLastRuneInString(text); Invisible(c) {
		return because("must_not_end_with_the_invisible_character", "Character", fmt.Sprintf("%U", c))
	}
	return nil
}

// shownBlank are characters that Unicode calls visible and fonts show as a blank.
const shownBlank = "\u2800\ufffc\U00013441\U00013442\U00016fe4\U0001d159"

// Invisible reports whether a character outside ASCII is invisible, looks like a
// blank, or turns the direction of what follows.
func Invisible(c rune) bool {
	return c >= utf8.RuneSelf && (strings.ContainsRune(shownBlank, c) ||
		unicode.In(c, unicode.Z, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point))
}

// holdsAnother reports whether an address with a scheme follows other text, behind
// white space or a comma. Both are allowed within a destination, and so is another
// address, as in https://web.archive.org/web/2020/https://example.org/.
func holdsAnother(text string) bool {
	for {
		before, after, found := strings.Cut(text, "://")
		if !found {
			return false
		}
		lead := strings.TrimRightFunc(before, inScheme)
		scheme := before[len(lead):]
		c, _ := utf8.DecodeLastRuneInString(strings.TrimRight(lead, "\"'`<([{"))
		if scheme != "" && (unicode.IsSpace(c) || Invisible(c) || strings.ContainsRune(",，、،", c)) {
			return true
		}
		text = after
	}
}

func inScheme(c rune) bool {
	return c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("+-.", c))
}

// hasScheme reports whether the text starts with a scheme that is allowed. Case
// is not folded as Unicode does it: that would take "httpſ" for "https".
func hasScheme(text string) bool {
	scheme, _, found := strings.Cut(text, ":")
	return found && (strings.ToLower(scheme) == "http" || strings.ToLower(scheme) == "https")
}

// shapedLikeHost reports whether a person would take the text without a scheme
// for a web address: a name with a dot whose last label could be a top-level
// domain, or an IP address as it is usually written. A port needs its digits,
// because the "com.example.app:" of an app's own links is a scheme.
func shapedLikeHost(text string) bool {
	p, err := split("https://" + text)
	if err != nil || p.port == ":" || strings.Trim(p.port, ":0123456789") != "" {
		return false
	}
	h, err := parseHost(p.host)
	return err == nil && h.plausible(p.host)
}

// parts are a destination taken apart; joined again they are the same bytes.
type parts struct {
	scheme string // with the "://"
	host   string // as typed, an IPv6 address with its brackets
	port   string // with the ":", or empty
	rest   string // from the first of / ? # on
}

// split takes a destination apart. Its text must have passed checkText.
func split(text string) (parts, error) {
	if !hasScheme(text) {
		return parts{}, because("must_start_with_http_or_https")
	}
	start := strings.IndexByte(text, ':') + len("://")
	if !strings.HasPrefix(text[start-len("//"):], "//") {
		return parts{}, because("must_have_slashes_after_the_scheme")
	}
	p := parts{scheme: text[:start], host: text[start:]}
	if i := strings.IndexAny(p.host, "/?#"); i >= 0 {
		p.host, p.rest = p.host[:i], p.host[i:]
	}
	switch {
	case strings.Contains(p.host, `\`):
		return parts{}, because("must_not_contain_a_backslash")
	case strings.Contains(p.host, "@"):
		return parts{}, because("must_not_contain_an_at_sign")
	}
	// The colons of an IPv6 address are inside its brackets.
	if i := strings.LastIndexByte(p.host, ':'); i > strings.LastIndexByte(p.host, ']') {
		p.host, p.port = p.host[:i], p.host[i:]
	}
	name := strings.ToLower(p.host)
	switch {
	case name == "":
		return parts{}, because("must_have_a_host")
	case name == "http", name == "https", p.port == ":" && strings.HasPrefix(p.rest, "//"):
		return parts{}, because("has_its_scheme_twice")
	}
	return p, nil
}

// portNumber returns the port, or 0 for the scheme's own, which an empty port is
// too, as RFC 3986 and browsers have it.
func (p parts) portNumber() (uint16, error) {
	digits := strings.TrimPrefix(p.port, ":")
	if digits == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return 0, because("has_no_valid_port")
	}
	return uint16(n), nil
}

// path returns the path as typed, without query and fragment.
func (p parts) path() string {
	if i := strings.IndexAny(p.rest, "?#"); i >= 0 {
		return p.rest[:i]
	}
	return p.rest
}

// inURI holds the bytes that stand in a URI as they are, wherever they are in it.
// RFC 3986 allows # once, and brackets around an IPv6 address only.
var inURI = func() (allowed [256]bool) {
	const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	for _, c := range []byte(unreserved + ":/?@" + "!$&'()*+,;=" + "%") {
		allowed[c] = true
	}
	return allowed
}()

// isURI reports whether escape would change nothing. It is a plain loop because most
// destinations need nothing else.
func isURI(text string) bool {
	fragment := false
	for i := range len(text) {
		c := text[i]
		if !inURI[c] && (c != '#' || fragment) {
			return false
		}
		fragment = fragment || c == '#'
	}
	return true
}

func escape(text string) string {
	const digits = "0123456789ABCDEF"
	escaped := make([]byte, 0, 2*len(text))
	fragment := false
	for i := range len(text) {
		c := text[i]
		if inURI[c] || c == '#' && !fragment {
			escaped = append(escaped, c)
		} else {
			escaped = append(escaped, '%', digits[c>>4], digits[c&0xf])
		}
		fragment = fragment || c == '#'
	}
	return string(escaped)
}
