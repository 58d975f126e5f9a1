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
	// sets it bounds the memory: 22 MiB at the very most, some 7 MiB as links
	// usually are.
	cacheDestination = 512
)

// cache keeps links that were visited lately, decoded: a transaction and the
// decoding cost a sixth of a redirect. A slug belongs to one set, in which its
// latest visitors displace each other at random, so a look takes a few loads and
// no lock, and a flood of visits to many links costs no more than no cache.
//
// A link in the file never changes, so nothing is ever invalidated but as a
// whole, when the file is opened again. What changes a link must first teach the
// cache not to publish what was read before the change.
type cache struct {
	seed maphash.Seed
	sets [][cacheWays]atomic.Pointer[shortener.Link]
}

func newCache() *cache {
	return &cache{seed: maphash.MakeSeed(), sets: make([][cacheWays]atomic.Pointer[shortener.Link], cacheSets)}
}

func (c *cache) set(slug shortener.Slug) *[cacheWays]atomic.Pointer[shortener.Link] {
	return &c.sets[maphash.String(c.seed, string(slug))%cacheSets]
}

func (c *cache) get(slug shortener.Slug) (shortener.Link, bool) {
	set := c.set(slug)
	for i := range set {
		if link := set[i].Load(); link != nil && link.Slug == slug {
			return *link, true
		}
	}
	return shortener.Link{}, false
}

func (c *cache) put(link shortener.Link) {
	if len(link.Destination) > cacheDestination {
		return
	}
	set := c.set(link.Slug)
	for i := range set {
		if set[i].CompareAndSwap(nil, &link) {
			return
		}
	}
	set[rand.IntN(cacheWays)].Store(&link)
}

func (c *cache) clear() {
	for i := range c.sets {
		for j := range c.sets[i] {
			c.sets[i][j].Store(nil)
		}
	}
}
