package blocklist

import (
	"errors"
	"strings"

	"snip/shortener"
)

// errBare is kept apart: whoever blocks "com" blocks every link to it, so it is
// no slip to be left out but a list that cannot be trusted.
var errBare = errors.New("has no dot, and would block a whole top-level domain")

var (
	errNoName   = errors.New("is no domain and no IP address")
	errNoNumber = errors.New("is a number, and no IPv4 address in full")
)

// nameBytes are what names in the DNS are made of, the _ of its records included.
// Hosts may hold more, but in a list that is a sign of another format.
const nameBytes = "abcdefghijklmnopqrstuvwxyz0123456789-_."

// Name reads an entry of a list: a domain, also with "*." or "." in front, which
// mean the same, or an IP address. It returns the spelling that a list holds.
func Name(text string) (string, error) {
	typed, wild := strings.CutPrefix(text, "*.")
	if !wild {
		typed = strings.TrimPrefix(text, ".")
	}
	if strings.Contains(typed, ":") && !strings.HasPrefix(typed, "[") {
		typed = "[" + typed + "]"
	}
	name, err := shortener.CanonicalHost(typed)
	switch {
	case err != nil:
		return "", errNoName // the reason is for those who make links
	case strings.Contains(name, ":"):
		return name, nil
	// Browsers take 1.5 for 1.0.0.5. In a list it is rather the version of something.
	case strings.Trim(typed, "0123456789.") == "" && typed != name:
		return "", errNoNumber
	case strings.Trim(name, nameBytes) != "":
		return "", errNoName
	case !strings.Contains(name, "."):
		return "", errBare
	}
	return name, nil
}
