package boltstore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"snip/shortener"
)

// Random keys in a B+tree change a page each. So generated slugs are numbered:
// links lie in the file in the order in which they were made, and a slug is its
// number under a secret permutation, which looks random to whoever lacks the file.
// With 64 connections this was measured to make creations 1.5 times as fast in a
// file of 10 thousand links, and 2.2 times in one of 10 million.
//
// A slug that somebody chose and that could have been generated is numbered as
// well, so each slug has one key and each key one slug, and one look tells whether
// it is taken.

var (
	slugKeyKey  = []byte("slug key")      // in meta: the permutation's key
	reservedKey = []byte("slug reserved") // in meta: above every number that was given out
)

const (
	highLength = 3 // characters of a slug that come from the number's upper part
	lowLength  = shortener.GeneratedSlug - highLength
	rounds     = 10

	// numbersPerSecond is how fast numbers pass by themselves: after a start they
	// go on where they would be if so many had been given out ever since numberEpoch.
	// A file restored from an old backup thus does not give out the slugs of the
	// links that were lost with the new one. They last for 120 years.
	numbersPerSecond = 500
)

var numberEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// numbering is the permutation between numbers and generated slugs. It is a
// Feistel network whose halves are the slug's first three and last four
// characters and whose rounds add modulo their sizes, as in FF1 (NIST SP 800-38G),
// with AES as the function of the rounds.
type numbering struct{ block cipher.Block }

func newNumbering(key []byte) (numbering, error) {
	block, err := aes.NewCipher(key)
	return numbering{block}, err
}

func newSlugKey() []byte {
	key := make([]byte, 16)
	rand.Read(key) // never fails: it ends the program instead
	return key
}

var (
	highSize = power(uint64(len(shortener.SlugAlphabet)), highLength)
	lowSize  = power(uint64(len(shortener.SlugAlphabet)), lowLength)
)

func power(base uint64, exponent int) uint64 {
	result := uint64(1)
	for range exponent {
		result *= base
	}
	return result
}

// slug returns the slug of a number; numbers beyond all slugs start over.
func (n numbering) slug(number uint64) shortener.Slug {
	number %= highSize * lowSize
	high, low := number/lowSize, number%lowSize
	for round := byte(0); round < rounds; round += 2 {
		high = (high + n.mix(round, low, highSize)) % highSize
		low = (low + n.mix(round+1, high, lowSize)) % lowSize
	}
	return shortener.Slug(append(spell(high, highLength), spell(low, lowLength)...))
}

// number is the inverse of slug. It reports whether the slug is one of a number.
func (n numbering) number(slug shortener.Slug) (uint64, bool) {
	if len(slug) != shortener.GeneratedSlug {
		return 0, false
	}
	high, ok := read(slug[:highLength])
	low, okLow := read(slug[highLength:])
	if !ok || !okLow {
		return 0, false
	}
	for round := rounds - 2; round >= 0; round -= 2 {
		low = (low + lowSize - n.mix(byte(round+1), high, lowSize)) % lowSize
		high = (high + highSize - n.mix(byte(round), low, highSize)) % highSize
	}
	return high*lowSize + low, true
}

// mix is the function of a round: a number below size.
func (n numbering) mix(round byte, half, size uint64) uint64 {
	var block [aes.BlockSize]byte
	block[0] = round
	binary.BigEndian.PutUint64(block[8:], half)
	n.block.Encrypt(block[:], block[:])
	high, _ := bits.Mul64(binary.BigEndian.Uint64(block[:]), size)
	return high
}

// key is where the slug's link is kept: six bytes of a number, or the slug itself.
// They never meet, since a number's first byte is 0 or 1 and a slug's is a letter
// or a digit.
func (n numbering) key(slug shortener.Slug) []byte {
	number, ok := n.number(slug)
	if !ok {
		return []byte(slug)
	}
	return binary.BigEndian.AppendUint64(nil, number)[2:]
}

func spell(value uint64, length int) []byte {
	text := make([]byte, length)
	for i := range text {
		text[length-1-i] = shortener.SlugAlphabet[value%uint64(len(shortener.SlugAlphabet))]
		value /= uint64(len(shortener.SlugAlphabet))
	}
	return text
}

func read(text shortener.Slug) (value uint64, ok bool) {
	for i := range len(text) {
		digit := strings.IndexByte(shortener.SlugAlphabet, text[i])
		if digit < 0 {
			return 0, false
		}
		value = value*uint64(len(shortener.SlugAlphabet)) + uint64(digit)
	}
	return value, true
}

// NewSlug implements [shortener.Store]. Numbers whose slugs spell a word are given to
// nobody: the numbers of all other links stay what they are.
func (s *Store) NewSlug() shortener.Slug {
	for {
		if slug := s.numbers.slug(s.next.Add(1) - 1); !shortener.SpellsWord(slug) {
			return slug
		}
	}
}

// loadNumbers reads what numbers slugs, and where to go on.
func (s *Store) loadNumbers(now time.Time) error {
	return s.db.View(func(tx *bbolt.Tx) error {
		meta, err := bucket(tx, metaName)
		if err != nil {
			return err
		}
		if s.numbers, err = newNumbering(meta.Get(slugKeyKey)); err != nil {
			return fmt.Errorf("the key of its slugs: %w", err)
		}
		reserved, err := reservedNumbers(meta)
		passed := int64(now.Sub(numberEpoch) / (time.Second / numbersPerSecond))
		s.next.Store(max(reserved, uint64(max(passed, 0))))
		return err
	})
}

// reserve keeps the reserved numbers above every number that was given out.
func (s *Store) reserve(meta *bbolt.Bucket) error {
	reserved, err := reservedNumbers(meta)
	if err != nil {
		return err
	}
	next := s.next.Load()
	if next <= reserved {
		return nil
	}
	return meta.Put(reservedKey, binary.BigEndian.AppendUint64(nil, next))
}

func reservedNumbers(meta *bbolt.Bucket) (uint64, error) {
	switch raw := meta.Get(reservedKey); len(raw) {
	case 0:
		return 0, nil
	case 8:
		return binary.BigEndian.Uint64(raw), nil
	default:
		return 0, fmt.Errorf("its reserved slugs: %d bytes, want 8", len(raw))
	}
}
