package web

import (
	"fmt"
	"net/http"
	"strings"

	"snip/shortener"
)

const (
	idempotencyHeader = "Idempotency-Key"

	// What is short can be guessed, and whoever guesses a key is given the answer to
	// another's request.
	minIdempotencyKey = 16
	maxIdempotencyKey = 255
)

// idempotencyKey returns the key that the request shows, or none. It is a string of
// RFC 8941, section 3.3.3, without parameters; most programs leave the quotes out, and
// mean the same key.
func idempotencyKey(h http.Header) (shortener.IdempotencyKey, error) {
	lines, shown := h[idempotencyHeader]
	if !shown {
		return "", nil
	}
	key, ok := lines[0], len(lines) == 1
	quoted, isQuoted := strings.CutPrefix(key, `"`)
	if isQuoted {
		unquoted, closed := unescape(quoted)
		key, ok = unquoted, ok && closed
	}
	printable := func(c rune) bool { return ' ' <= c && c <= '~' }
	if !ok || len(key) < minIdempotencyKey || len(key) > maxIdempotencyKey || strings.ContainsFunc(key, func(c rune) bool { return !printable(c) }) {
		return "", invalidField(idempotencyHeader, say("reason.must_be_an_idempotency_key", "Min", minIdempotencyKey, "Max", maxIdempotencyKey))
	}
	if at := strings.IndexFunc(key, func(c rune) bool { return !bareCharacter(c) }); !isQuoted && at >= 0 {
		return "", invalidField(idempotencyHeader, say("reason.must_be_quoted", "Character", fmt.Sprintf("%q", key[at:at+1])))
	}
	return shortener.IdempotencyKey(key), nil
}

// bareCharacter reports whether a key without quotes may have the character: what a
// token of RFC 8941 has, and the = of base64. A comma must not be there, or two lines
// that a proxy has joined would be a key of their own.
func bareCharacter(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("!#$%&'*+-./:=^_`|~", c)
}

// unescape reads what follows the quote that opens a string, and reports whether the
// one that closes it is the last character.
func unescape(text string) (string, bool) {
	var value strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return value.String(), i == len(text)-1
		case '\\':
			if i++; i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", false
			}
		}
		value.WriteByte(text[i])
	}
	return "", false
}
