package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"snip/quota"
	"snip/shortener"
	"snip/web"
	"snip/web/admin"
)

// The functions here read one setting each. An error says what would be right,
// and leaves the flag and the value to the caller.

func whole(least, most int64) func(string) (int64, error) {
	return func(text string) (int64, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err == nil && least <= n && n <= most:
			return n, nil
		case most == math.MaxInt64:
			return 0, fmt.Errorf("a whole number of at least %d is needed", least)
		}
		return 0, fmt.Errorf("a whole number from %d to %d is needed", least, most)
	}
}

func parsePace(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxPace {
		return 0, fmt.Errorf("a time up to %v is needed, such as 10s or 1m30s, or 0 for no throttle", maxPace)
	}
	return d, nil
}

func parseSwitch(text string) (bool, error) {
	switch text {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, errors.New("true or false is needed")
}

func parseRedirectStatus(text string) (int, error) {
	allowed := []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}
	n, err := strconv.Atoi(text)
	if err != nil || !slices.Contains(allowed, n) {
		return 0, errors.New("301, 302, 307 or 308 is needed")
	}
	return n, nil
}

func parseListen(text string) (string, error) {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", errors.New("an address with a port from 0 to 65535 is needed, such as :8080, 127.0.0.1:8080 or [::1]:8080")
	}
	return text, nil
}

// parseAdminListen returns "" where there is to be no admin listener.
func parseAdminListen(text string) (string, error) {
	if text == "off" {
		return "", nil
	}
	if _, err := parseListen(text); err != nil {
		return "", fmt.Errorf("%w, or off", err)
	}
	return text, nil
}

// parseAdminURL returns the origin under which browsers open the operator's page.
func parseAdminURL(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	origin, err := web.ParseOrigin(strings.TrimSuffix(text, "/"))
	if err != nil {
		return "", fmt.Errorf("the URL %w", err)
	}
	return origin, nil
}

func parseAdminToken(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return text, checkAdminToken(text)
}

// checkAdminToken refuses what cannot be a token, or could be guessed.
func checkAdminToken(text string) error {
	visible := func(c rune) bool { return c > ' ' && c <= '~' }
	if len(text) < admin.MinToken || strings.ContainsFunc(text, func(c rune) bool { return !visible(c) }) {
		return fmt.Errorf("at least %d visible ASCII characters without blanks are needed", admin.MinToken)
	}
	return nil
}

// parseCreation returns whether links are made with keys only.
func parseCreation(text string) (keysOnly bool, err error) {
	switch text {
	case "open":
		return false, nil
	case "keys":
		return true, nil
	}
	return false, errors.New("open or keys is needed")
}

func parsePaths(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	paths := strings.Split(text, ",")
	for i, path := range paths {
		if paths[i] = strings.TrimSpace(path); paths[i] == "" {
			return nil, errors.New("paths of files are needed, separated by commas")
		}
	}
	return paths, nil
}

// parseSlugs reads slugs that are kept from all who choose one.
func parseSlugs(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	slugs := strings.Split(text, ",")
	for i, slug := range slugs {
		slugs[i] = strings.TrimSpace(slug)
		if _, ok := shortener.ParseSlug(slugs[i]); !ok {
			return nil, fmt.Errorf("slugs are needed, separated by commas, such as pricing,jobs; %q could be none", slugs[i])
		}
	}
	return slugs, nil
}

func parsePublicURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("an http or https URL with a host is needed, such as https://s.example")
	case schemeTwice(u):
		return nil, errSchemeTwice
	case u.User != nil:
		return nil, errors.New("a user name or password does not belong here")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return nil, errors.New("a query or fragment cannot stand before a slug; leave it out")
	case u.Port() != "" && !validPort(u.Port()) || strings.HasSuffix(u.Host, ":"):
		return nil, errors.New("the port must be from 1 to 65535")
	case !plainPath(u):
		return nil, errors.New("a path prefix must be plain, such as /s: no escapes, empty parts or dots")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

var errSchemeTwice = errors.New("the scheme is there twice; write it once, as in https://s.example")

// schemeTwice reports whether what should be the host is another scheme, as in
// https://https://s.example: to net/url that is a host with an empty port.
func schemeTwice(u *url.URL) bool {
	name, colon := strings.CutSuffix(strings.ToLower(u.Host), ":")
	return strings.HasPrefix(u.Path, "//") && (colon || name == "http" || name == "https")
}

func validPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// plainPath reports whether proxies and browsers agree on the path: none of them
// would clean or decode it.
func plainPath(u *url.URL) bool {
	prefix := strings.TrimSuffix(u.EscapedPath(), "/")
	if prefix == "" {
		return true
	}
	for _, part := range strings.Split(prefix, "/")[1:] {
		if part == "" || part == "." || part == ".." || strings.Contains(part, "%") {
			return false
		}
	}
	return true
}

func parseContact(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if a, err := mail.ParseAddress(text); err == nil && a.Address == text {
		return text, nil
	}
	u, err := url.Parse(text)
	if err == nil && schemeTwice(u) {
		return "", errSchemeTwice
	}
	if err == nil && ((u.Scheme == "http" || u.Scheme == "https") && u.Host != "" || u.Scheme == "mailto" && u.Opaque != "") {
		return text, nil
	}
	return "", errors.New("a mail address or an http, https or mailto URL is needed")
}

func parseHeaderName(text string) (string, error) {
	if !httpguts.ValidHeaderFieldName(text) {
		return "", errors.New("the name of a header is needed, such as X-Forwarded-For")
	}
	return http.CanonicalHeaderKey(text), nil
}

func parsePrefixes(text string) ([]netip.Prefix, error) {
	if text == "" {
		return nil, nil
	}
	var prefixes []netip.Prefix
	for item := range strings.SplitSeq(text, ",") {
		p, err := parsePrefix(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		prefixes = append(prefixes, p)
	}
	return prefixes, nil
}

// parseNAT64 reads the prefixes of translators (RFC 6052).
func parseNAT64(text string) (quota.NAT64, error) {
	if text == "" {
		return nil, nil
	}
	var prefixes quota.NAT64
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		p, err := netip.ParsePrefix(item)
		if err != nil {
			return nil, fmt.Errorf("%q is no prefix such as 2001:db8:64::/96", item)
		}
		prefixes = append(prefixes, p)
	}
	return prefixes, prefixes.Validate()
}

func parsePrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil || p.Addr().Is4In6():
		return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a network such as 172.16.0.0/12", text)
	case p.Bits() == 0:
		return netip.Prefix{}, fmt.Errorf("%q would let every caller name any address as its own", text)
	case p != p.Masked():
		return netip.Prefix{}, fmt.Errorf("%q has bits beyond its length; %s or %s is meant", text, p.Masked(), p.Addr())
	}
	return p, nil
}

// parseOrigins reads every item, to tell all that is wrong with the list at once.
func parseOrigins(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var origins, wrong []string
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		origin, err := web.ParseOrigin(item)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%q %v", withoutPassword(item), err))
			continue
		}
		origins = append(origins, origin)
	}
	if len(wrong) > 0 {
		return nil, errors.New(strings.Join(wrong, "; "))
	}
	return origins, nil
}
