package shortener

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
)

// Token manages one link: whoever has it may read, change and delete that link.
// It is shown once, when the link is made.
type Token string

// NewToken returns a random token of at least 128 bits, as letters and digits.
func NewToken() Token { return Token(rand.Text()) }

// TokenHash is what is kept of a token: 128 bits of its SHA-256. A token is
// random and long, so nothing slower is needed.
type TokenHash [16]byte

// Hash returns what is kept of the token.
func (t Token) Hash() TokenHash {
	sum := sha256.Sum256([]byte(t))
	return TokenHash(sum[:16])
}

// matches compares in constant time. The zero hash matches no token.
func (h TokenHash) matches(t Token) bool {
	given := t.Hash()
	return subtle.ConstantTimeCompare(h[:], given[:])&^subtle.ConstantTimeCompare(h[:], make([]byte, len(h))) == 1
}
