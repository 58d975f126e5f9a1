package boltstore

import (
	"hash/maphash"
	"math/rand/v2"
	"sync/atomic"

	"snip/shortener"
)

const (
	// cacheSets of cacheWays links each bound how many are kept decoded.
	cacheSets = 1 << 13
	cacheWays = 4
	// cacheDestination bounds the destinations that are kept, in bytes. With the
	// sets it bounds the memory: 22 MiB at the very most, some 4 MiB as links
	// usually are.
	cacheDestination = 512
	// cacheChance is how many visits it takes on average to displace another link
	// from a full set. What is visited once seldom comes again soon, and each
	// change costs memory that has to be collected.
	cacheChance = 8
)

// visited is a link as the cache keeps it: in two pieces of memory, because the
// collector follows each and its pauses are the longest that a visitor waits.
type visited struct {
	text      string // the slug, then the destination
	slug      int    // bytes of it
	expiresAt int64  // as in a record
}

func (v *visited) destination() string { return v.text[v.slug:] }

// cache keeps links that were visited lately, decoded: a transaction and the
// decoding cost a fifth of a redirect. A slug belongs to one set, in which its
// latest visitors displace each other at random, so a look takes a few loads and
// no lock, and a flood of visits to many links costs no more than no cache.
//
// A link in the file never changes, so nothing is ever invalidated but as a
// whole, when the file is opened again. What changes a link must first teach the
// cache not to publish what was read before the change.
type cache struct {
	seed maphash.Seed
	sets [][cacheWays]atomic.Pointer[visited]
}

func newCache() *cache {
	return &cache{seed: maphash.MakeSeed(), sets: make([][cacheWays]atomic.Pointer[visited], cacheSets)}
}

func (c *cache) set(slug string) *[cacheWays]atomic.Pointer[visited] {
	return &c.sets[maphash.String(c.seed, slug)%cacheSets]
}

// get returns the link of the slug, or nil.
func (c *cache) get(slug shortener.Slug) *visited {
	set := c.set(string(slug))
	for i := range set {
		if v := set[i].Load(); v != nil && v.text[:v.slug] == string(slug) {
			return v
		}
	}
	return nil
}

// put keeps the link if there is room or chance wants it.
func (c *cache) put(t target) {
	if len(t.Destination) > cacheDestination {
		return
	}
	set := c.set(t.Slug)
	for i := range set {
		if set[i].Load() == nil && set[i].CompareAndSwap(nil, newVisited(t)) {
			return
		}
	}
	if way := rand.IntN(cacheWays * cacheChance); way < cacheWays {
		set[way].Store(newVisited(t))
	}
}

func newVisited(t target) *visited {
	return &visited{text: t.Slug + t.Destination, slug: len(t.Slug), expiresAt: t.ExpiresAt}
}

func (c *cache) clear() {
	for i := range c.sets {
		for j := range c.sets[i] {
			c.sets[i][j].Store(nil)
		}
	}
}
