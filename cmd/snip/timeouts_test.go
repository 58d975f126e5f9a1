package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTimeouts: whatever a client leaves undone, its connection ends. The
// server is the real one, its clock is not.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	const whole = "GET / HTTP/1.1\r\nHost: s\r\n\r\n"
	for _, row := range []struct {
		name   string
		client func(net.Conn) error
		want   time.Duration // from the connection's beginning to its end
	}{
		{"says nothing", func(c net.Conn) error {
			_, err := io.Copy(io.Discard, c)
			return err
		}, 10 * time.Second},
		{"sends a byte of a header each second", func(c net.Conn) error {
			go io.Copy(io.Discard, c)
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for text := whole[:16]; ; text = "a" {
				if _, err := io.WriteString(c, text); err != nil {
					return nil // cut off
				}
				<-tick.C
			}
		}, 10 * time.Second},
		{"keeps a connection without a use for it", func(c net.Conn) error {
			if _, err := io.WriteString(c, whole); err != nil {
				return err
			}
			_, err := io.Copy(io.Discard, c)
			return err
		}, 2 * time.Minute},
		{"sends the next request's first byte with the one before", halfPipelined(whole, "G"), 10 * time.Second},
		{"sends half of the next header with the one before", halfPipelined(whole, whole[:16]), 10 * time.Second},
		{"sends half of the next header after its answer", func(c net.Conn) error {
			if _, err := io.WriteString(c, whole); err != nil {
				return err
			}
			if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
				return err
			}
			go io.WriteString(c, whole[:16])
			_, err := io.Copy(io.Discard, c)
			return err
		}, 10 * time.Second},
		{"sends half of a header after a list", halfPipelined("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("a", 100_000), whole[:16]), 10 * time.Second},
		{"sends a list and keeps the connection", halfPipelined("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("a", 100_000), ""), 2 * time.Minute},
		{"does not read its answer", func(c net.Conn) error {
			_, err := io.WriteString(c, whole)
			return err
		}, 30 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				ended := make(chan struct{})
				watch := newConnWatch(&oneLine{conn: &closingConn{Conn: far, closed: ended}, closed: make(chan struct{})}, connBoundsFor(1024, 0, false), nil, nil)
				page := bytes.Repeat([]byte("a"), 8<<10) // more than the server keeps back
				server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					w.Write(page)
				}), slog.New(slog.DiscardHandler))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				start := time.Now()
				go watch.run(ctx)
				go server.Serve(watch)
				defer server.Close()
				var client sync.WaitGroup
				client.Go(func() {
					if err := row.client(near); err != nil {
						t.Error(err)
					}
				})
				<-ended
				if took := time.Since(start); took < row.want || took > row.want+time.Second {
					t.Errorf("it ended after %v, want %v or up to a second more", took, row.want)
				}
				near.Close()
				client.Wait()
			})
		})
	}
}

// halfPipelined sends a request and the beginning of another in one piece, and reads
// what comes.
func halfPipelined(whole, half string) func(net.Conn) error {
	return func(c net.Conn) error {
		go io.WriteString(c, whole+half)
		_, err := io.Copy(io.Discard, c)
		return err
	}
}

// closingConn tells when it is closed.
type closingConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *closingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// oneLine is a listener whose only client is there already.
type oneLine struct {
	conn   net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *oneLine) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneLine) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneLine) Addr() net.Addr { return &net.UnixAddr{Name: "@", Net: "unix"} }
