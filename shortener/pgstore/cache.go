package pgstore

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"snip/shortener"
)

const (
	// cacheBytes bounds the links that are kept, with what keeping one costs besides
	// its texts.
	cacheBytes = 64 << 20
	entryBytes = 256
	// unknownSlugs bounds the slugs that are known to name nothing.
	unknownSlugs = 1 << 14
	// life is how long what was read is served without a word from the database: half
	// of the second within which other programs' changes are to be seen.
	life = 500 * time.Millisecond
	// readPatience is how long a read may take before the database counts as gone.
	readPatience = 2 * time.Second
	// sharing is how long after its beginning a read is shared by those that come.
	sharing = life / 2

	cacheShards = 1 << 13
)

// cache keeps links that were visited lately, and slugs that were asked for in vain.
//
// Whoever changes a link here invalidates its shard, after the commit and before
// anybody is told: then the shard's generation changes, and what was read under an
// earlier one is not served, even if it comes late. Of changes elsewhere the listener
// tells. While it is heard, what was read since it began holds; else for the time of
// life. With the database gone, what is there is served on.
type cache struct {
	now func() time.Time

	known   *otter.Cache[shortener.Slug, read]
	unknown *otter.Cache[shortener.Slug, read]

	seed    maphash.Seed
	changed [cacheShards]atomic.Uint64 // generations of links
	made    [cacheShards]atomic.Uint64 // generations of unknown slugs

	heard  atomic.Pointer[heard]     // nil while nothing is heard
	failed atomic.Pointer[time.Time] // when a read failed last
	flight singleflight.Group
}

// read is what was read of a slug.
type read struct {
	target     shortener.Target
	generation uint64    // as it was before
	epoch      uint64    // of what was heard before; 0 is nothing
	at         time.Time // before
}

// heard is when the listener has last heard everything, without a gap since its
// epoch began.
type heard struct {
	epoch uint64
	at    time.Time
}

func newCache() (*cache, error) {
	known, err := otter.New(&otter.Options[shortener.Slug, read]{
		MaximumWeight: cacheBytes,
		Weigher: func(slug shortener.Slug, r read) uint32 {
			return uint32(entryBytes + len(slug) + len(r.target.Destination) + len(r.target.Host))
		},
	})
	if err != nil {
		return nil, err
	}
	unknown, err := otter.New(&otter.Options[shortener.Slug, read]{MaximumSize: unknownSlugs})
	return &cache{now: time.Now, known: known, unknown: unknown, seed: maphash.MakeSeed()}, err
}

func (c *cache) shard(slug shortener.Slug) uint64 {
	return maphash.String(c.seed, string(slug)) % cacheShards
}

// invalidate is to be called with links that have changed.
func (c *cache) invalidate(slugs ...shortener.Slug) {
	for _, slug := range slugs {
		c.changed[c.shard(slug)].Add(1)
	}
}

func (c *cache) invalidateAll() {
	for i := range c.changed {
		c.changed[i].Add(1)
	}
}

// born is to be called with links that were made.
func (c *cache) born(slugs ...shortener.Slug) {
	for _, slug := range slugs {
		c.made[c.shard(slug)].Add(1)
	}
}

// fresh reports whether what was read may be served without asking.
func (c *cache) fresh(r read, now time.Time) bool {
	h := c.heard.Load()
	return now.Sub(r.at) < life || h != nil && h.epoch == r.epoch && now.Sub(h.at) < life
}

// failing reports whether the database was gone a moment ago.
func (c *cache) failing(now time.Time) bool {
	failed := c.failed.Load()
	return failed != nil && now.Sub(*failed) < life
}

// follow returns what the load function returns, or what it returned before.
func (c *cache) follow(ctx context.Context, slug shortener.Slug, load func(context.Context, shortener.Slug) (shortener.Target, error)) (shortener.Target, error) {
	shard, now := c.shard(slug), c.now()
	changed, made := c.changed[shard].Load(), c.made[shard].Load()
	r, there := c.known.GetIfPresent(slug)
	there = there && r.generation == changed
	if there && (c.fresh(r, now) || c.failing(now)) {
		return r.target, nil
	}
	if u, ok := c.unknown.GetIfPresent(slug); ok && u.generation == made && now.Sub(u.at) < life {
		return shortener.Target{}, shortener.ErrNotFound
	}
	// Nobody is given what was read before a change that he knows of, or long ago.
	key := fmt.Sprint(slug, " ", changed, " ", made, " ", now.UnixNano()/int64(sharing))
	loaded := c.flight.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readPatience)
		defer cancel()
		fresh := read{generation: changed, at: c.now()}
		if h := c.heard.Load(); h != nil {
			fresh.epoch = h.epoch
		}
		var err error
		fresh.target, err = load(ctx, slug)
		switch {
		case err == nil:
			c.known.Set(slug, fresh)
		case errors.Is(err, shortener.ErrNotFound):
			fresh.generation = made
			c.unknown.Set(slug, fresh)
		default:
			failed := c.now()
			c.failed.Store(&failed)
		}
		return fresh.target, err
	})
	select {
	case result := <-loaded:
		if errors.Is(result.Err, shortener.ErrUnavailable) && there && c.changed[shard].Load() == changed {
			return r.target, nil
		}
		return result.Val.(shortener.Target), result.Err
	case <-ctx.Done():
		return shortener.Target{}, ctx.Err()
	}
}
