package web

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

// proxyWatch warns, once each, of the ways to set the trusted proxies up wrongly. All
// are safe and painful: visitors share one allowance, or are refused.
type proxyWatch struct {
	log     *slog.Logger
	headers []string

	mu         sync.Mutex
	unlisted   bool // warned of a proxy that is not listed
	unsent     bool // warned of a listed proxy that sends no header
	unreadable bool // warned of a listed proxy without a readable header
	suspect    netip.Addr
	seen       int // creation requests in this round
	suspected  int // those of them that the suspect handed on
}

// Creation requests are judged in rounds of watchRound, and a peer that handed on
// watchShare of one is a proxy in front of everybody. Rounds keep the books to
// one address however many there are.
const (
	watchRound = 20
	watchShare = 18
)

func newProxyWatch(log *slog.Logger, header string) *proxyWatch {
	return &proxyWatch{log: log, headers: []string{
		http.CanonicalHeaderKey(header),
		"X-Forwarded-For", "Forwarded", "X-Real-Ip", "Cf-Connecting-Ip", "True-Client-Ip", "X-Client-Ip",
	}}
}

// observe looks at a creation request. Only addresses of proxies are logged.
func (p *proxyWatch) observe(c caller, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case c.listed && !c.sent && !p.unsent:
		p.unsent = true
		p.log.Warn("a trusted proxy sent no header with its client's address, so its clients share one allowance: "+
			"set --client-ip-header to the header that it sends",
			"proxy", c.peer, "header", p.headers[0])
	case c.sent && c.fault != nil && !p.unreadable:
		p.unreadable = true
		p.log.Warn("a trusted proxy sent a header that names no client, so its client was refused: "+
			"set --client-ip-header to the header that it sends",
			"proxy", c.peer, "header", p.headers[0])
	}
	if p.unlisted {
		return
	}
	p.seen++
	if p.forwards(c, r) {
		if !p.suspect.IsValid() {
			p.suspect = c.peer
		}
		if p.suspect == c.peer {
			p.suspected++
		}
	}
	if p.seen < watchRound {
		return
	}
	if p.suspected >= watchShare {
		p.unlisted = true
		p.log.Warn("nearly all creations come from one private address that forwards them, so all visitors share one allowance: if it is your proxy, list it with --trusted-proxies",
			"peer", p.suspect)
	}
	p.seen, p.suspected, p.suspect = 0, 0, netip.Addr{}
}

// forwards reports whether the request looks like one of an unlisted proxy. A
// public address is not suspected: anyone can send the headers.
func (p *proxyWatch) forwards(c caller, r *http.Request) bool {
	if c.listed || !(c.peer.IsPrivate() || c.peer.IsLoopback() || c.peer.IsLinkLocalUnicast()) {
		return false
	}
	return slices.ContainsFunc(p.headers, func(name string) bool { return r.Header[name] != nil })
}
