package boltstore

import (
	"sync/atomic"

	"snip/quota"
)

// todayCache keeps the secret of the day for which it was last asked, with the
// finding that the clock may show that day. Both hold until the newest day
// changes, or the file is opened again: then the generation changes, before
// anybody is told, and what was read before is not served after.
type todayCache struct {
	generation atomic.Int64
	kept       atomic.Pointer[today]
}

type today struct {
	generation int64 // as it was before the file was read
	day        string
	secret     quota.Secret
}

func (c *todayCache) get(day string) (quota.Secret, bool) {
	t := c.kept.Load()
	if t == nil || t.day != day || t.generation != c.generation.Load() {
		return quota.Secret{}, false
	}
	return t.secret, true
}

func (c *todayCache) put(generation int64, day string, secret quota.Secret) {
	c.kept.Store(&today{generation, day, secret})
}

func (c *todayCache) invalidate() { c.generation.Add(1) }
