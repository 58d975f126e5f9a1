package web

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"snip/shortener"
)

// ParseOrigin returns the origin as browsers send it: in lower case, the scheme's
// own port left out, an international host in punycode. The error says what is
// wrong with text, as what follows its name in a sentence.
func ParseOrigin(text string) (string, error) {
	switch {
	case strings.Contains(text, "*"):
		return "", errors.New("has a *, so that pages of sites which nobody named could make links at their visitors' expense; name each origin, such as https://app.example")
	case strings.EqualFold(text, "null"):
		return "", errors.New("is sent by every sandboxed frame and local file, whoever wrote it; name an origin such as https://app.example")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", errors.New("is no origin: http or https and a host, such as https://app.example or http://localhost:3000, are needed")
	case u.User != nil:
		return "", errors.New("must not contain a user name or password")
	}
	// A host is good here when a link may lead there; a private one is good too.
	var wrong *shortener.InvalidError
	if _, err := (shortener.Destinations{}).Parse(text); errors.As(err, &wrong) && wrong.Kind == shortener.ErrInvalidURL {
		return "", InEnglish(wrong.Reason)
	}
	found := origin(u)
	switch {
	case !plainPort(u):
		return "", errors.New("must have a port from 1 to 65535, or none and no colon")
	case !plainAddress(u.Hostname()):
		return "", errors.New("must have its address as browsers write it, such as 192.0.2.1 or [2001:db8::1]")
	case text[len(u.Scheme)+len("://"):] != u.Host:
		return "", fmt.Errorf("is more than an origin; %s is meant", found)
	}
	return found, nil
}

// InEnglish returns an error that says a reason to the operator, who reads English. It
// has no full stop.
func InEnglish(reason shortener.Reason) error {
	languages, err := newCatalogue()
	if err != nil {
		return err
	}
	return errors.New(strings.TrimSuffix(languages.english().render(sentence(reason)), "."))
}

func plainPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0 && u.Port()[0] != '0'
}

// plainAddress reports whether the host is a name, or else an address in the one
// spelling that browsers put into an origin. Listed in another, it would never be
// found.
func plainAddress(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return !addr.Is4In6() && addr.String() == strings.ToLower(host)
	}
	host = strings.TrimRight(host, ".")
	_, err := strconv.ParseUint(host[strings.LastIndexByte(host, '.')+1:], 0, 64)
	return err != nil // browsers take a host that ends in a number for an address
}
