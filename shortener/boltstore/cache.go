package boltstore

import (
	"hash/maphash"
	"sync/atomic"

	"snip/shortener"
)

const (
	// cacheSlots bounds how many links are kept decoded.
	cacheSlots = 1 << 14
	// cacheDestination bounds the destinations that are kept, in bytes. With the
	// slots it bounds the memory: 11 MiB at the very most, some 4 MiB as links
	// usually are.
	cacheDestination = 512
)

// cache keeps links that were visited lately, decoded: a transaction and the
// decoding cost a fifth of a redirect. Each slug has one slot, which its latest
// visitor takes, so a look costs one load and no lock, and a flood of visits to
// many links costs no more than having no cache.
//
// A link in the file never changes, so nothing is ever invalidated but as a
// whole, when the file is opened again. What changes a link must first teach the
// cache not to publish what was read before the change.
type cache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[shortener.Link]
}

func newCache() *cache {
	return &cache{seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[shortener.Link], cacheSlots)}
}

func (c *cache) slot(slug shortener.Slug) *atomic.Pointer[shortener.Link] {
	return &c.slots[maphash.String(c.seed, string(slug))%cacheSlots]
}

func (c *cache) get(slug shortener.Slug) (shortener.Link, bool) {
	link := c.slot(slug).Load()
	if link == nil || link.Slug != slug {
		return shortener.Link{}, false
	}
	return *link, true
}

func (c *cache) put(link shortener.Link) {
	if len(link.Destination) <= cacheDestination {
		c.slot(link.Slug).Store(&link)
	}
}

func (c *cache) clear() {
	for i := range c.slots {
		c.slots[i].Store(nil)
	}
}
