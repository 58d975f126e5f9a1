package web

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Pages and pictures cost up to 250 redirects each, and anyone may request them. One is made
// at a time, and the next one waits: together they take at most an eighth of one processor, and
// what collecting their garbage takes. With a quarter, redirects kept 0.6 of their rate.
const (
	maxWaiting = 64
	// maxNetworkWaiting leaves room for others: one network cannot fill the queue.
	maxNetworkWaiting = 16
	// minRest and maxRest bound the pause after each, which is seven times what it took. The
	// upper bound is for a machine that stood still meanwhile.
	minRest = time.Millisecond
	maxRest = 50 * time.Millisecond
)

// busyPause is the Retry-After of an answer that found too many waiting.
const busyPause = time.Second

var errBusy = errors.New("too many pages and pictures are waiting to be made")

// pacer lets one piece of work run at a time, with a pause after it. It is safe for
// concurrent use.
type pacer struct {
	running chan struct{} // holds one

	mu      sync.Mutex
	waiting int                  // with the one that runs
	of      map[netip.Prefix]int // waiting, by network
}

func newPacer() *pacer {
	return &pacer{running: make(chan struct{}, 1), of: make(map[netip.Prefix]int)}
}

// do runs work, which must not wait for a store or a client. It returns [errBusy] where too
// many wait, in all or of the network, or the context's error where the client has left.
func (p *pacer) do(ctx context.Context, network netip.Prefix, work func() error) error {
	if !p.enter(network) {
		return errBusy
	}
	select {
	case p.running <- struct{}{}:
	case <-ctx.Done():
		p.leave(network)
		return ctx.Err()
	}
	start := time.Now() // real time: it is about the processor
	defer func() {
		time.AfterFunc(min(max(7*time.Since(start), minRest), maxRest), func() {
			<-p.running
			p.leave(network)
		})
	}()
	return work()
}

func (p *pacer) enter(network netip.Prefix) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting > maxWaiting || p.of[network] >= maxNetworkWaiting {
		return false
	}
	p.waiting++
	p.of[network]++
	return true
}

func (p *pacer) leave(network netip.Prefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
	if p.of[network]--; p.of[network] == 0 {
		delete(p.of, network)
	}
}

// paced runs work for a request, in its turn.
func (s *server) paced(r *http.Request, work func() error) error {
	return s.pacer.do(r.Context(), s.clients.find(r).client.Network(), work)
}
