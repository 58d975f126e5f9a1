package main

import (
	"cmp"
	"math"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"snip/quota"
)

const (
	// mostConnections bounds the connections where descriptors do not: each takes
	// memory, here and in the kernel.
	mostConnections = 16 << 10
	// reservedDescriptors are left to everything but visitors and the store's own
	// connections: files, the admin listener and its connections, alerts.
	reservedDescriptors = 64
	// A client and a network may have one of so many connections. People behind one
	// address share what a client has, so it is much more than a browser's six.
	clientShare  = 8
	networkShare = 4
)

// connBounds are how many connections may be open.
type connBounds struct{ service, network, client int }

// connBoundsFor returns the bounds that leave enough of so many descriptors for the
// store's connections and the rest. Where each creation may call another service,
// it takes two. With very few descriptors, half of them are reserved.
func connBoundsFor(descriptors uint64, store int, calls bool) connBounds {
	all := int(min(descriptors, math.MaxInt32))
	all -= min(reservedDescriptors+store, all/2)
	if calls {
		all /= 2
	}
	all = max(min(all, mostConnections), 1)
	return connBounds{service: all, network: max(all/networkShare, 1), client: max(all/clientShare, 1)}
}

// descriptors returns how many the process may have open. Go has raised that to what
// the system allows.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024 // what systems allow commonly
	}
	return uint64(limit.Cur) // signed on some systems
}

// connGroup is the connections that one bound is about.
type connGroup struct {
	key   groupKey
	bound string // its name
	most  int
	open  int
	// queue holds connections that may be closed, the first to go first. What is
	// not in it has come later, so one look at all connections serves as many times
	// as there are in it.
	queue []closable
	vain  int64 // the second of the latest look that found none
}

// groupKey is a client's or a network's.
type groupKey struct {
	client  quota.Client
	network netip.Prefix
}

// closable is a connection that may be closed as long as it stays in a step.
type closable struct {
	conn *watchedConn
	step step
}

// newConnWatch returns a watch whose bounds for clients and networks do not hold for
// peers that are exempt.
func newConnWatch(l net.Listener, bounds connBounds, exempt []netip.Prefix, nat64 quota.NAT64) *connWatch {
	return &connWatch{
		Listener: l,
		conns:    make(map[*watchedConn]struct{}),
		bounds:   bounds,
		exempt:   exempt,
		nat64:    nat64,
		service:  &connGroup{bound: "service", most: bounds.service, vain: -1},
		groups:   make(map[groupKey]*connGroup),
		closed:   make(map[string]int64),
		refused:  make(map[string]int64),
	}
}

// admit returns the connection under watch, or nil where there is no room for it.
// Where a bound is reached, the connection that has waited longest under that bound
// is closed for it.
func (w *connWatch) admit(conn net.Conn) *watchedConn {
	c := &watchedConn{Conn: conn, watch: w}
	c.enter(waiting)
	var closing []*watchedConn
	defer func() {
		for _, old := range closing {
			_ = old.Conn.Close() // nobody is left to be told
		}
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	c.groups = w.groupsOf(conn.RemoteAddr())
	for _, g := range c.groups {
		if g.open < g.most {
			continue
		}
		old := w.longestWaiting(g)
		if old == nil {
			w.refused[g.bound]++
			return nil
		}
		w.closed[g.bound]++
		w.forget(old)
		closing = append(closing, old)
	}
	for _, g := range c.groups {
		if g.open++; g != w.service {
			w.groups[g.key] = g
		}
	}
	w.opened++
	c.number = w.opened
	w.conns[c] = struct{}{}
	return c
}

// makeRoom closes the connection that has waited longest.
func (w *connWatch) makeRoom(reason string) {
	w.mu.Lock()
	old := w.longestWaiting(w.service)
	if old != nil {
		w.closed[reason]++
		w.forget(old)
	}
	w.mu.Unlock()
	if old != nil {
		_ = old.Conn.Close() // nobody is left to be told
	}
}

// groupsOf returns the groups that a peer's connections belong to, the narrowest
// first. All visitors come through a trusted proxy, so it has no bound of its own.
func (w *connWatch) groupsOf(peer net.Addr) []*connGroup {
	tcp, ok := peer.(*net.TCPAddr)
	if !ok {
		return []*connGroup{w.service}
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	if slices.ContainsFunc(w.exempt, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return []*connGroup{w.service}
	}
	client := w.nat64.ClientOf(addr)
	group := func(key groupKey, bound string, most int) *connGroup {
		if g := w.groups[key]; g != nil {
			return g
		}
		return &connGroup{key: key, bound: bound, most: most, vain: -1}
	}
	return []*connGroup{
		group(groupKey{client: client}, "client", w.bounds.client),
		group(groupKey{network: client.Network()}, "network", w.bounds.network),
		w.service,
	}
}

// forget takes a connection out of the books, once.
func (w *connWatch) forget(c *watchedConn) {
	if _, ok := w.conns[c]; !ok {
		return
	}
	delete(w.conns, c)
	for _, g := range c.groups {
		if g.open--; g.open == 0 && g != w.service {
			delete(w.groups, g.key)
		}
	}
}

// longestWaiting returns the connection of the group that is to be closed first, or
// nil where each has a request under way that has come whole.
func (w *connWatch) longestWaiting(g *connGroup) *watchedConn {
	now := w.seconds.Load()
	if c := w.nextOf(g); c != nil || g.vain == now {
		return c
	}
	g.queue = nil
	for c := range w.conns {
		if s := c.now(); slices.Contains(c.groups, g) && rankOf(s, now) > 0 {
			g.queue = append(g.queue, closable{c, s})
		}
	}
	slices.SortFunc(g.queue, func(a, b closable) int {
		return cmp.Or(cmp.Compare(rankOf(a.step, now), rankOf(b.step, now)),
			cmp.Compare(a.step.began(), b.step.began()), cmp.Compare(a.conn.number, b.conn.number))
	})
	if len(g.queue) == 0 {
		g.vain = now
	}
	return w.nextOf(g)
}

// nextOf takes the first connection out of the group's queue that is still in the
// step in which it was found.
func (w *connWatch) nextOf(g *connGroup) *watchedConn {
	for len(g.queue) > 0 {
		next := g.queue[0]
		g.queue = g.queue[1:]
		if _, open := w.conns[next.conn]; open && next.conn.now() == next.step {
			return next.conn
		}
	}
	return nil
}

// fresh is how long a connection is spared, in seconds: its request is most likely on the
// way. Without it, a flood of half-sent bodies would have each new visitor closed first.
const fresh = 1

// rankOf orders connections by how early they are closed for want of room. Those that have
// waited between requests go first, then those whose client keeps a request from going on.
// Fresh ones go last, in the order in which they came. It is 0 for a request that the server
// is at, and while it cannot be told whether the client is slow.
func rankOf(s step, now int64) int {
	spared := s.began() >= now-fresh
	switch p := s.phase(); {
	case p == sending && s.began() < now:
		return 3
	case p == sending, p == working:
		return 0
	case spared:
		return 4
	case p == receiving:
		return 2
	}
	return 1
}
