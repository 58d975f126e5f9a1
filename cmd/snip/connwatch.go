package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"snip/quota"
	"snip/web/admin"
)

// How long a connection may take for each step, in whole seconds. The time to
// read headers begins with their first byte; whoever reads a body sets a deadline
// of its own. No answer takes long to make, since the store and checks of
// destinations have deadlines of their own.
const (
	headerTime = 10
	answerTime = 30
	idleTime   = 120
)

// phase is what a connection does.
type phase int64

const (
	waiting   phase = iota // for a header, of which a part may be there
	idle                   // kept after an answer; nothing of the next request is there
	working                // at a request that has come, or whose body nobody reads yet
	receiving              // a body that has not come to its end
	sending                // an answer that the client has not taken
	phases
)

// phaseNames are those of the metrics.
var phaseNames = [phases]string{"waiting", "idle", "working", "receiving", "sending"}

// phaseTimes are how long each may take. A request has one time, whatever its phase.
var phaseTimes = [phases]int64{headerTime, idleTime, answerTime, answerTime, answerTime}

// step is a phase and the second at which it began, or its request did.
type step int64

const phaseBits = 3

func stepOf(second int64, p phase) step { return step(second<<phaseBits | int64(p)) }
func (s step) phase() phase             { return phase(s & (1<<phaseBits - 1)) }
func (s step) began() int64             { return int64(s >> phaseBits) }
func (s step) in(p phase) step          { return stepOf(s.began(), p) }

// connWatch is a listener whose connections are ended when they take longer than
// they may, at most a second later. At most as many are open as its bounds allow.
//
// http.Server's own timeouts promise the first, but set the deadlines of the socket
// anew at each step of each request, which was measured to take 6 % of a
// redirect. Here a step stores a number, and one goroutine looks at all
// connections each second.
type connWatch struct {
	net.Listener
	seconds atomic.Int64 // since the start

	mu      sync.Mutex
	conns   map[*watchedConn]struct{}
	bounds  connBounds
	exempt  []netip.Prefix
	nat64   quota.NAT64
	service *connGroup // all connections
	groups  map[groupKey]*connGroup
	opened  int64
	closed  map[string]int64 // by reason
	refused map[string]int64 // by bound
}

// run ends what is overdue until ctx ends.
func (w *connWatch) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.endOverdue(w.seconds.Add(1))
		case <-ctx.Done():
			return
		}
	}
}

func (w *connWatch) endOverdue(now int64) {
	var overdue []*watchedConn
	w.mu.Lock()
	for c := range w.conns {
		if s := c.now(); now > s.began()+phaseTimes[s.phase()] {
			overdue = append(overdue, c)
		}
	}
	w.closed["overdue"] += int64(len(overdue))
	w.mu.Unlock()
	for _, c := range overdue { // outside the lock, which closing takes
		c.Close()
	}
}

// Accept implements [net.Listener].
func (w *connWatch) Accept() (net.Conn, error) {
	for {
		conn, err := w.Listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			// Something else has taken the reserve. net/http tries again after a pause.
			w.makeRoom("descriptors")
		}
		if err != nil {
			return nil, err
		}
		if c := w.admit(conn); c != nil {
			return c, nil
		}
		_ = conn.Close() // the client sees the end of it in any case
	}
}

// stats returns what has become of the connections.
func (w *connWatch) stats() admin.Connections {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := admin.Connections{
		Limit:   int64(w.bounds.service),
		Open:    map[string]int64{},
		Closed:  map[string]int64{},
		Refused: map[string]int64{},
	}
	for _, name := range phaseNames {
		s.Open[name] = 0
	}
	for c := range w.conns {
		s.Open[phaseNames[c.now().phase()]]++
	}
	for _, reason := range []string{"overdue", "descriptors", "client", "network", "service"} {
		s.Closed[reason] = w.closed[reason]
	}
	for _, bound := range []string{"client", "network", "service"} {
		s.Refused[bound] = w.refused[bound]
	}
	return s
}

// watchedConn is a connection that knows its present step.
type watchedConn struct {
	net.Conn
	watch  *connWatch
	number int64 // in the order of acceptance
	groups []*connGroup
	buffer int // of net/http, in bytes; 0 until the first read
	resets int // of the read deadline, while idle
	step   atomic.Int64
}

func (c *watchedConn) now() step     { return step(c.step.Load()) }
func (c *watchedConn) enter(p phase) { c.step.Store(int64(stepOf(c.watch.seconds.Load(), p))) }

// observe is the server's ConnState hook.
func observe(conn net.Conn, state http.ConnState) {
	c := conn.(*watchedConn)
	switch state {
	case http.StateActive: // the headers are there
		c.enter(working)
	case http.StateIdle:
		c.enter(idle)
		c.resets = 0
	}
}

// Read implements [net.Conn]. The first byte of a request ends the idle time. It may
// have come together with the request before: then net/http holds it, and offers
// less than all of its buffer for what follows. From the fourth byte on, see
// SetReadDeadline.
func (c *watchedConn) Read(p []byte) (int, error) {
	if c.buffer == 0 {
		c.buffer = len(p)
	}
	if len(p) < c.buffer && c.now().phase() == idle {
		c.enter(waiting)
	}
	n, err := c.Conn.Read(p)
	if n > 0 && c.now().phase() == idle {
		c.enter(waiting)
	}
	return n, err
}

// Write implements [net.Conn].
func (c *watchedConn) Write(p []byte) (int, error) {
	before := c.now()
	c.step.Store(int64(before.in(sending)))
	n, err := c.Conn.Write(p)
	c.step.Store(int64(before))
	return n, err
}

// SetReadDeadline implements [net.Conn]. Handlers set one while they read a body,
// and net/http takes it away at the body's end. Of an idle connection, net/http takes
// it away once before it waits for the next request, and once when it has four bytes
// of that.
func (c *watchedConn) SetReadDeadline(t time.Time) error {
	switch s := c.now(); {
	case s.phase() == idle:
		if c.resets++; c.resets == 2 {
			c.enter(waiting)
		}
	case s.phase() == receiving && t.IsZero():
		c.step.Store(int64(s.in(working)))
	case s.phase() == working && !t.IsZero():
		c.step.Store(int64(s.in(receiving)))
	}
	return c.Conn.SetReadDeadline(t)
}

// Close implements [net.Conn].
func (c *watchedConn) Close() error {
	c.watch.mu.Lock()
	c.watch.forget(c)
	c.watch.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite lets net/http end a connection in the order in which the client can
// still read its answer.
func (c *watchedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
