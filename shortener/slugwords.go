package shortener

import "strings"

// slugWords are what no generated slug spells, however its letters are disguised. The
// list is short and written by hand: it holds what nobody would put on a poster, not all
// that could offend somebody. Each word costs holes in the numbers
// of slugs, and short ones cost most.
var slugWords = undisguiseAll(
	"anal", "anus", "arse", "ass", "bitch", "boob", "cock", "coon", "cum", "cunt", "dick", "dildo", "dyke", "fag",
	"fick", "fuck", "fuk", "gook", "hitler", "hure", "isis", "jizz", "kike", "kkk", "merde", "nazi", "negro", "nig",
	"nutte", "paki", "penis", "piss", "porn", "pussy", "puta", "rape", "sex", "shit", "slut", "spic", "tits", "twat",
	"wank", "whore",
)

// disguises are characters that are read as others. In lower case an l is one of them.
var disguises = strings.NewReplacer(
	"0", "o", "1", "i", "l", "i", "3", "e", "4", "a", "5", "s", "7", "t", "8", "b", "9", "g", "v", "u",
)

func undisguise(text string) string { return disguises.Replace(strings.ToLower(text)) }

func undisguiseAll(words ...string) []string {
	for i, word := range words {
		words[i] = undisguise(word)
	}
	return words
}

// SpellsWord reports whether a slug contains a word that no generated slug is to spell.
func SpellsWord(slug Slug) bool {
	text := undisguise(string(slug))
	for _, word := range slugWords {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
