package shortener

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PlainHost is a destination's host as a person can judge it.
type PlainHost struct {
	Name     string // in lower case and in its own letters; an IPv4 address as four decimal numbers
	Punycode string // what a browser asks for where Name is international, else empty
	Mixed    bool   // whether a label mixes scripts that no language is written in together
}

// PlainHostOf returns the host of a destination that Parse accepted, or the zero
// PlainHost where it can read none: the tables of international names may have
// changed since.
func PlainHostOf(destination string) PlainHost {
	h, err := hostOf(destination)
	switch {
	case err != nil:
		return PlainHost{}
	case h.addr.Is4():
		return PlainHost{Name: h.addr.String()}
	case h.addr.IsValid():
		return PlainHost{Name: "[" + h.addr.String() + "]"}
	}
	name, err := browserIDNA.ToUnicode(h.ascii)
	if err != nil || isASCII(name) {
		return PlainHost{Name: h.ascii}
	}
	return PlainHost{Name: name, Punycode: h.ascii, Mixed: mixesScripts(name)}
}

// writings are the scripts that languages are written in together: a label of
// these is "highly restrictive" in UTS #39, section 5.2.
var writings = [][]*unicode.RangeTable{
	{unicode.Latin, unicode.Han, unicode.Hiragana, unicode.Katakana},
	{unicode.Latin, unicode.Han, unicode.Bopomofo},
	{unicode.Latin, unicode.Han, unicode.Hangul},
}

// mixesScripts looks at each label for itself: a name of one script under a
// top-level domain of another is common.
func mixesScripts(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if !oneWriting(label) {
			return true
		}
	}
	return false
}

func oneWriting(label string) bool {
	label = strings.Map(func(c rune) rune {
		if unicode.In(c, unicode.Common, unicode.Inherited) { // digits, hyphens, accents
			return -1
		}
		return c
	}, label)
	first, _ := utf8.DecodeRuneInString(label)
	if within(label, scriptOf(first)) { // which nothing at all is too
		return true
	}
	return slices.ContainsFunc(writings, func(writing []*unicode.RangeTable) bool { return within(label, writing...) })
}

func within(label string, scripts ...*unicode.RangeTable) bool {
	return !strings.ContainsFunc(label, func(c rune) bool { return !unicode.In(c, scripts...) })
}

// scriptOf returns an empty table for a character that has no script yet.
func scriptOf(c rune) *unicode.RangeTable {
	for _, script := range unicode.Scripts {
		if unicode.Is(script, c) {
			return script
		}
	}
	return &unicode.RangeTable{}
}
