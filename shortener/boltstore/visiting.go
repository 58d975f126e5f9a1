package boltstore

import (
	"sync"

	"snip/shortener"
)

// visitsAtOnce bounds the visits of one link that wait to be counted, so that a
// flood on one does not fill the queue that all links share.
const visitsAtOnce = 64

// visiting knows how many visits of each link wait.
type visiting struct {
	mu      sync.Mutex
	waiting map[shortener.Slug]int
}

// begin reports whether one more may wait; then end must follow.
func (v *visiting) begin(slug shortener.Slug) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.waiting[slug] >= visitsAtOnce {
		return false
	}
	if v.waiting == nil {
		v.waiting = make(map[shortener.Slug]int)
	}
	v.waiting[slug]++
	return true
}

func (v *visiting) end(slug shortener.Slug) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.waiting[slug]--; v.waiting[slug] == 0 {
		delete(v.waiting, slug)
	}
}
