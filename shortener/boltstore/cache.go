package boltstore

import (
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"snip/shortener"
)

const (
	// cacheSets of cacheWays links each bound how many are kept decoded.
	cacheSets = 1 << 13
	cacheWays = 4
	// cacheDestination bounds the locations that are kept, in bytes. With the
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
	text      string // the slug, then the location, then its host where that is not a part of it
	slug      int    // bytes of it
	host      [2]int // where the host stands in the text
	end       int    // of the location
	expiresAt int64  // as in a record

	forwardQuery, limited, directRedirect, takenDown, deleted bool

	generation uint64 // of its set, before the file was read
}

func (v *visited) target() shortener.Target {
	return shortener.Target{
		Destination:    v.text[v.slug:v.end],
		Host:           v.text[v.host[0]:v.host[1]],
		ExpiresAt:      instant(v.expiresAt),
		ForwardQuery:   v.forwardQuery,
		Limited:        v.limited,
		DirectRedirect: v.directRedirect,
		TakenDown:      v.takenDown,
		Deleted:        v.deleted,
	}
}

// cache keeps links that were visited lately, decoded: a transaction and the
// decoding cost a fifth of a redirect. A slug belongs to one set, in which its
// latest visitors displace each other at random, so a look takes a few loads and
// no lock, and a flood of visits to many links costs no more than no cache.
//
// Whoever changes a link invalidates its set, after the commit and before anybody
// is told: then the set's generation changes, and what was read under an earlier
// one is not served, even if it is put there later.
type cache struct {
	seed maphash.Seed
	sets []cacheSet
}

type cacheSet struct {
	generation atomic.Uint64
	ways       [cacheWays]atomic.Pointer[visited]
}

func newCache() *cache {
	return &cache{seed: maphash.MakeSeed(), sets: make([]cacheSet, cacheSets)}
}

func (c *cache) set(slug string) *cacheSet {
	return &c.sets[maphash.String(c.seed, slug)%cacheSets]
}

// generation is to be read before the file is.
func (c *cache) generation(slug shortener.Slug) uint64 { return c.set(string(slug)).generation.Load() }

func (c *cache) invalidate(slug shortener.Slug) { c.set(string(slug)).generation.Add(1) }

// get returns the link of the slug, or nil.
func (c *cache) get(slug shortener.Slug) *visited {
	set := c.set(string(slug))
	generation := set.generation.Load()
	for i := range set.ways {
		if v := set.ways[i].Load(); v != nil && v.text[:v.slug] == string(slug) && v.generation == generation {
			return v
		}
	}
	return nil
}

// put keeps the link if there is room or chance wants it.
func (c *cache) put(t target, generation uint64) {
	location := shortener.Location(t.Destination)
	if len(location) > cacheDestination {
		return
	}
	set := c.set(t.Slug)
	if set.generation.Load() != generation {
		return // it may be outdated, and would displace what is not
	}
	for i := range set.ways {
		old := set.ways[i].Load()
		if (old == nil || old.generation != generation) && set.ways[i].CompareAndSwap(old, newVisited(t, location, generation)) {
			return
		}
	}
	if i := rand.IntN(cacheWays * cacheChance); i < cacheWays {
		set.ways[i].Store(newVisited(t, location, generation))
	}
}

func newVisited(t target, location string, generation uint64) *visited {
	text := t.Slug + location
	end, host := len(text), shortener.HostOf(t.Destination)
	at := strings.Index(location, host)
	if at < 0 { // it is written in another way there
		at = len(location)
		text += host
	}
	at += len(t.Slug)
	return &visited{
		text:           text,
		slug:           len(t.Slug),
		host:           [2]int{at, at + len(host)},
		end:            end,
		expiresAt:      t.ExpiresAt,
		forwardQuery:   t.ForwardQuery,
		limited:        t.MaxVisits > 0,
		directRedirect: t.DirectRedirect,
		takenDown:      t.TakenDown != "",
		deleted:        t.Deleted,
		generation:     generation,
	}
}

func (c *cache) clear() {
	for i := range c.sets {
		for j := range c.sets[i].ways {
			c.sets[i].ways[j].Store(nil)
		}
	}
}
