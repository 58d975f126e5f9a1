// Package blocklist keeps sets of hosts that no link may lead to, and reads them
// from the files in which such lists are published.
package blocklist

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
)

// List is a set of domains and IP addresses that never changes. A domain stands
// for itself and for everything below it, an address for itself.
//
// Of a name only a keyed hash of 63 bits is kept, 12 bytes with the room between
// them, so a host that is not listed can be taken for one that is. With a million
// names and four labels to look at, the chance is one in two million million for
// each host. Nobody can aim at it: the key is drawn anew by each process and
// never leaves it. The zero List is empty.
type List struct {
	tables  []table
	deepest int // labels of the longest name: a host has no use for more looks
}

// Blocks reports whether the host, or a domain that it belongs to, is listed. The
// host is written as shortener.CanonicalHost does it.
func (l *List) Blocks(host string) bool {
	end := len(host)
	for depth := 1; depth <= l.deepest && end >= 0; depth++ {
		end = strings.LastIndexByte(host[:end], '.')
		if depth == 1 && end >= 0 {
			continue // no list holds a top-level domain
		}
		if l.has(hash(host[end+1:])) {
			return true
		}
	}
	return false
}

func (l *List) has(h uint64) bool {
	for _, t := range l.tables {
		if t.has(h) {
			return true
		}
	}
	return false
}

// Union returns a list of what any of the lists holds. It shares their memory.
func Union(lists ...*List) *List {
	union := &List{}
	for _, l := range lists {
		union.tables = append(union.tables, l.tables...)
		union.deepest = max(union.deepest, l.deepest)
	}
	return union
}

// seed is the same for all lists, so that a union hashes a host once.
var seed = maphash.MakeSeed()

// hash is never zero, which marks what is empty.
func hash(name string) uint64 { return maphash.String(seed, name) | 1 }

// table holds hashes by open addressing: each lies where its share of the range
// of all hashes points to, or in the next empty place after that.
type table []uint64

// newTable also returns how many of the hashes are different. It reorders them.
func newTable(hashes []uint64) (t table, different int) {
	slices.Sort(hashes)
	hashes = slices.Compact(hashes)
	t = make(table, len(hashes)*3/2+1) // never full, so every search ends
	for _, h := range hashes {
		t[t.find(h)] = h
	}
	return t, len(hashes)
}

func (t table) has(h uint64) bool { return t[t.find(h)] == h }

// find returns the place of a hash, or the empty one where it belongs.
func (t table) find(h uint64) int {
	home, _ := bits.Mul64(h, uint64(len(t)))
	i := int(home)
	for t[i] != 0 && t[i] != h {
		if i++; i == len(t) {
			i = 0
		}
	}
	return i
}
