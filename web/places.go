package web

import (
	"errors"
	"net/netip"
	"sync"

	"snip/quota"
)

// What of bodies larger than maxBody may be in memory at once. A token of the
// throttle buys each client several, and slow ones stay for [bodyTimeout]: without a
// bound, 600 of them were measured to hold 1 GiB.
const (
	maxPlaces        = 16
	maxClientPlaces  = 2 // so that it takes several clients to hold all,
	maxNetworkPlaces = 4 // and several networks: a subscriber may have 65,536 clients
)

// placePause is what who finds no place is told to wait: one is free again once its
// body has come, or its time is over.
const placePause = bodyTimeout

var errNoPlace = errors.New("all places for large bodies are taken")

// places are those that large bodies need. The zero value has all of them free, and
// its methods may be called at once.
type places struct {
	mu    sync.Mutex
	taken int
	by    map[quota.Client]int
	in    map[netip.Prefix]int // by network; keys are in none
}

func (p *places) take(who quota.Client) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	network := who.Network()
	if p.taken == maxPlaces || p.by[who] == maxClientPlaces || p.in[network] == maxNetworkPlaces {
		return false
	}
	if p.by == nil {
		p.by = make(map[quota.Client]int)
		p.in = make(map[netip.Prefix]int)
	}
	if network.IsValid() {
		p.in[network]++
	}
	p.taken++
	p.by[who]++
	return true
}

func (p *places) leave(who quota.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if network := who.Network(); network.IsValid() {
		if p.in[network]--; p.in[network] == 0 {
			delete(p.in, network)
		}
	}
	if p.by[who]--; p.by[who] == 0 {
		delete(p.by, who)
	}
}

// place is the one that a request has, or none yet.
type place struct {
	places *places
	who    quota.Client
	held   bool
}

// take returns [errNoPlace] where there is none. Once taken, it does nothing.
func (p *place) take() error {
	if !p.held && !p.places.take(p.who) {
		return errNoPlace
	}
	p.held = true
	return nil
}

func (p *place) leave() {
	if p.held {
		p.places.leave(p.who)
	}
}
