package shortener

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
)

// Slug names a link. It is one of A–Z a–z 0–9 - _, compared byte for byte.
type Slug string

// The bounds of a chosen slug, in characters, and the length of a random one.
const (
	MinSlug    = 3
	MaxSlug    = 64
	randomSlug = 7
)

// slugAlphabet leaves out what is read or heard as something else: 0 and O, 1
// and I and l.
const slugAlphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// ParseSlug reports whether text could name a link, whoever made it.
func ParseSlug(text string) (Slug, bool) {
	if len(text) < MinSlug || len(text) > MaxSlug {
		return "", false
	}
	for i := range len(text) {
		if !slugByte(text[i]) {
			return "", false
		}
	}
	return Slug(text), true
}

func slugByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_'
}

type slugRules struct {
	reserved map[string]bool // in lower case
}

func newSlugRules(reserved []string) slugRules {
	rules := slugRules{reserved: make(map[string]bool, len(reserved))}
	for _, name := range reserved {
		rules.reserved[strings.ToLower(name)] = true
	}
	return rules
}

// parse accepts a chosen slug as it is, or refuses it with the reason; it never
// changes one. Empty text asks for a random slug.
func (r slugRules) parse(text string) (Slug, error) {
	invalid := func(format string, args ...any) (Slug, error) {
		return "", &InvalidError{Field: "slug", Kind: ErrInvalidSlug, Reason: fmt.Sprintf(format, args...)}
	}
	if text == "" {
		return "", nil
	}
	var strange []string
	for _, c := range text {
		if quoted := fmt.Sprintf("%q", c); (c > 0x7f || !slugByte(byte(c))) && !slices.Contains(strange, quoted) {
			strange = append(strange, quoted)
		}
	}
	switch {
	case len(text) > MaxSlug:
		return invalid("has %d bytes; at most %d are allowed", len(text), MaxSlug)
	case len(strange) > 0:
		return invalid("must not contain %s; A–Z, a–z, 0–9, - and _ are allowed", strings.Join(strange, " "))
	case len(text) < MinSlug:
		return invalid("has %d characters; at least %d are needed", len(text), MinSlug)
	case strings.ContainsRune("-_", rune(text[0])), strings.ContainsRune("-_", rune(text[len(text)-1])):
		return invalid("must begin and end with a letter or a digit")
	case r.reserved[strings.ToLower(text)]:
		return invalid("%q is reserved", text)
	}
	return Slug(text), nil
}

// random draws a slug. Bytes at or above the largest multiple of the alphabet's
// length are drawn again, so that every character is equally likely.
func (r slugRules) random() Slug {
	const limit = 256 - 256%len(slugAlphabet)
	for {
		slug := make([]byte, 0, randomSlug)
		for len(slug) < randomSlug {
			var draw [2 * randomSlug]byte
			rand.Read(draw[:])
			for _, b := range draw {
				if int(b) < limit && len(slug) < randomSlug {
					slug = append(slug, slugAlphabet[int(b)%len(slugAlphabet)])
				}
			}
		}
		if !r.reserved[strings.ToLower(string(slug))] {
			return Slug(slug)
		}
	}
}
