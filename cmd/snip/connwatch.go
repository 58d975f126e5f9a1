package main

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
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

// connWatch is a listener whose connections are ended when they take longer than
// they may, at most a second later.
//
// http.Server's own timeouts promise the same, but set the deadlines of the socket
// anew at each step of each request, which was measured to take 6 % of a
// redirect. Here a step stores a number, and one goroutine looks at all
// connections each second.
type connWatch struct {
	net.Listener
	seconds atomic.Int64 // since the start

	mu    sync.Mutex
	conns map[*watchedConn]struct{}
}

func newConnWatch(l net.Listener) *connWatch {
	return &connWatch{Listener: l, conns: make(map[*watchedConn]struct{})}
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
		if now > c.until.Load() {
			overdue = append(overdue, c)
		}
	}
	w.mu.Unlock()
	for _, c := range overdue { // outside the lock, which closing takes
		c.Close()
	}
}

// Accept implements [net.Listener].
func (w *connWatch) Accept() (net.Conn, error) {
	conn, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &watchedConn{Conn: conn, watch: w}
	c.allow(headerTime)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[c] = struct{}{}
	return c, nil
}

// watchedConn is a connection that knows until when its present step may take.
type watchedConn struct {
	net.Conn
	watch *connWatch
	until atomic.Int64 // in seconds of the watch
	idle  atomic.Bool  // whether the next byte begins a request
}

// observe is the server's ConnState hook.
func observe(conn net.Conn, state http.ConnState) {
	c := conn.(*watchedConn)
	switch state {
	case http.StateActive: // the headers are there
		c.idle.Store(false)
		c.allow(answerTime)
	case http.StateIdle:
		c.allow(idleTime)
		c.idle.Store(true)
	}
}

func (c *watchedConn) allow(seconds int64) { c.until.Store(c.watch.seconds.Load() + seconds) }

// Read implements [net.Conn].
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.idle.Load() {
		c.idle.Store(false)
		c.allow(headerTime)
	}
	return n, err
}

// Close implements [net.Conn].
func (c *watchedConn) Close() error {
	c.watch.mu.Lock()
	delete(c.watch.conns, c)
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
