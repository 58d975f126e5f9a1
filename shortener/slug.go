package shortener

import (
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Slug names a link. It is one of A–Z a–z 0–9 - _, compared byte for byte, with
// a letter or a digit at either end.
type Slug string

// The bounds of a slug, in characters, and the length of a generated one.
const (
	MinSlug       = 3
	MaxSlug       = 64
	GeneratedSlug = 7
)

// SlugAlphabet is what generated slugs are made of, in the order of its bytes. It
// leaves out what is read or heard as something else: 0 and O, 1 and I and l.
const SlugAlphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// ParseSlug reports whether text could name a link.
func ParseSlug(text string) (Slug, bool) {
	if len(text) < MinSlug || len(text) > MaxSlug || hyphen(text[0]) || hyphen(text[len(text)-1]) {
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
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || hyphen(b)
}

func hyphen(b byte) bool { return b == '-' || b == '_' }

type slugRules struct {
	names map[string]bool // in lower case
	words map[string]bool // folded
}

// newSlugRules returns rules that keep the names, in any case, and words as
// [Config] has them.
func newSlugRules(names, words []string) slugRules {
	rules := slugRules{names: make(map[string]bool, len(names)), words: make(map[string]bool)}
	for _, name := range names {
		rules.names[strings.ToLower(name)] = true
	}
	for _, word := range slices.Concat(officialSlugs, words) {
		rules.words[foldSlug(word)] = true
	}
	return rules
}

// parse accepts a chosen slug as it is, or refuses it with the reason; it never
// changes one. Empty text asks for a generated slug.
func (r slugRules) parse(text string) (Slug, error) {
	if text == "" {
		return "", nil
	}
	slug, ok := ParseSlug(text)
	if !ok {
		return "", invalidSlug(whyNoSlug(text))
	}
	if r.isReserved(slug) {
		return "", invalidSlug(reservedSlug(slug))
	}
	return slug, nil
}

func reservedSlug(slug Slug) Reason {
	return because("must_not_be_reserved", "Slug", strconv.Quote(string(slug)))
}

func invalidSlug(reason Reason) error {
	return &InvalidError{Field: "slug", Kind: ErrInvalidSlug, Reason: reason}
}

// whyNoSlug says why ParseSlug refuses a text. Characters come before length,
// which is only then a number of characters.
func whyNoSlug(text string) Reason {
	switch strange, more := strangeCharacters(text); {
	case more:
		return because("must_not_contain_these_and_others", "Characters", strange)
	case strange != "":
		return because("must_not_contain", "Characters", strange)
	case len(text) < MinSlug:
		return because("has_too_few_characters", "Min", MinSlug, "Characters", len(text))
	case len(text) > MaxSlug:
		return because("has_too_many_characters", "Max", MaxSlug, "Characters", len(text))
	default:
		return because("must_begin_and_end_with_a_letter_or_a_digit")
	}
}

// strangeCharacters lists, each once and quoted, the first few characters that no
// slug may have, and reports whether there are more. Quoting spells out control
// and direction characters, and bytes that are no UTF-8.
func strangeCharacters(text string) (list string, more bool) {
	const most = 8 // of what may be thousands
	var strange []string
	for len(text) > 0 {
		_, size := utf8.DecodeRuneInString(text)
		quoted := strconv.Quote(text[:size])
		if !slugByte(text[0]) && !slices.Contains(strange, quoted) {
			if len(strange) == most {
				return strings.Join(strange, " "), true
			}
			strange = append(strange, quoted)
		}
		text = text[size:]
	}
	return strings.Join(strange, " "), false
}

// isReserved reports whether nobody may have a slug: it names something else, or
// could be taken for the operator's.
func (r slugRules) isReserved(slug Slug) bool {
	return r.namesOther(slug) || r.words[foldSlug(string(slug))]
}

// namesOther reports whether a slug names something else, in any case.
func (r slugRules) namesOther(slug Slug) bool { return r.names[strings.ToLower(string(slug))] }

// RandomSlug draws a slug, for stores that generate slugs in no order of their
// own. Bytes at or above the largest multiple of the alphabet's length are drawn
// again, so that every character is equally likely. So are slugs that spell a word.
func RandomSlug() Slug {
	for {
		if slug := drawSlug(); !SpellsWord(slug) {
			return slug
		}
	}
}

func drawSlug() Slug {
	const limit = 256 - 256%len(SlugAlphabet)
	slug := make([]byte, 0, GeneratedSlug)
	for {
		var draw [2 * GeneratedSlug]byte
		rand.Read(draw[:])
		for _, b := range draw {
			if int(b) >= limit {
				continue
			}
			slug = append(slug, SlugAlphabet[int(b)%len(SlugAlphabet)])
			if len(slug) == GeneratedSlug {
				return Slug(slug)
			}
		}
	}
}
