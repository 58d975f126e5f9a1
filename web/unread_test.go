package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// wire is one connection to a real server, whose only client has no token left.
type wire struct {
	net.Conn
	in     *bufio.Reader
	served *atomic.Int64 // requests that reached the handler
}

// patience bounds every wait, so that a test fails instead of hanging.
const patience = 5 * time.Second

func dial(t *testing.T, tokens int) wire {
	t.Helper()
	s := newSite(t, siteSetup{every: time.Hour, burst: max(tokens, 1)})
	if tokens == 0 {
		wantAnswer(t, s.do(call{from: "127.0.0.1:1", body: goodJSON, header: asJSON}), http.StatusCreated, "")
	}
	served := new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return wire{Conn: conn, in: bufio.NewReader(conn), served: served}
}

func (c wire) send(t *testing.T, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(c, format, args...); err != nil {
		t.Fatal(err)
	}
}

func (c wire) answer(t *testing.T, status int) *http.Response {
	t.Helper()
	w, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, w.Body); err != nil {
		t.Fatal(err)
	}
	if w.StatusCode != status {
		t.Fatalf("status %d, want %d", w.StatusCode, status)
	}
	return w
}

// closed waits until the server has closed the connection.
func (c wire) closed(t *testing.T) {
	t.Helper()
	if rest, err := io.ReadAll(c.in); len(rest) > 0 || isTimeout(err) {
		t.Fatalf("not closed: %q, %v", rest, err)
	}
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}

const head = "POST /api/links HTTP/1.1\r\nHost: s\r\nContent-Type: application/json\r\n"

// A refusal does not wait for the body, whatever was announced of it, and the
// connection does not wait for it for long.
func TestRefusalDoesNotWaitForTheBody(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, head, sent string
		close            bool // announced
	}{
		{"nothing comes", "Content-Length: 30\r\n\r\n", "", false},
		{"a part comes", "Content-Length: 30\r\n\r\n", `{"url":`, false},
		{"chunks", "Transfer-Encoding: chunked\r\n\r\n", "5\r\n{\"url", true},
		{"a huge body", "Content-Length: 1073741824\r\n\r\n", `{"url":`, true},
		{"a large body", "Content-Length: 65537\r\n\r\n", "", true},
		{"a client that waits to be asked", "Content-Length: 30\r\nExpect: 100-continue\r\n\r\n", "", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, 0)
			start := time.Now()
			c.send(t, "%s%s%s", head, row.head, row.sent)
			w := c.answer(t, http.StatusTooManyRequests)
			if took := time.Since(start); took > time.Second {
				t.Errorf("the answer took %s", took)
			}
			if w.Close != row.close || w.ContentLength <= 0 {
				t.Errorf("Connection: close %t, want %t; Content-Length %d", w.Close, row.close, w.ContentLength)
			}
			c.closed(t)
		})
	}
}

func TestConnectionIsKeptWhenTheBodyHasCome(t *testing.T) {
	t.Parallel()
	request := fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(goodJSON), goodJSON)
	t.Run("one after the other", func(t *testing.T) {
		t.Parallel()
		c := dial(t, 0)
		for range 3 {
			c.send(t, "%s", request)
			c.answer(t, http.StatusTooManyRequests)
		}
	})
	t.Run("pipelined", func(t *testing.T) {
		t.Parallel()
		c := dial(t, 0)
		c.send(t, "%s", strings.Repeat(request, 20)+"GET /healthz HTTP/1.1\r\nHost: s\r\n\r\n")
		for range 20 {
			c.answer(t, http.StatusTooManyRequests)
		}
		c.answer(t, http.StatusOK)
	})
	t.Run("after the answer", func(t *testing.T) {
		t.Parallel()
		c := dial(t, 0)
		c.send(t, "%sContent-Length: %d\r\n\r\n", head, len(goodJSON))
		c.answer(t, http.StatusTooManyRequests)
		c.send(t, "%sGET /healthz HTTP/1.1\r\nHost: s\r\n\r\n", goodJSON)
		c.answer(t, http.StatusOK)
	})
	t.Run("read to its end", func(t *testing.T) {
		t.Parallel()
		c := dial(t, 3)
		c.send(t, "%sContent-Length: %d\r\nExpect: 100-continue\r\n\r\n%s", head, len(goodJSON), goodJSON)
		if w, err := http.ReadResponse(c.in, nil); err != nil || w.StatusCode != http.StatusContinue {
			t.Fatalf("%v, %v; want 100", w, err)
		}
		c.answer(t, http.StatusCreated)
		c.send(t, "%s", request)
		c.answer(t, http.StatusCreated)
	})
	t.Run("a list read to its end", func(t *testing.T) {
		t.Parallel()
		c := dial(t, 3)
		list := "[" + goodJSON + "]" + strings.Repeat(" ", 2*maxBody)
		for range 2 {
			c.send(t, "%sContent-Length: %d\r\n\r\n%s", head, len(list), list)
			c.answer(t, http.StatusCreated)
		}
	})
	t.Run("another method", func(t *testing.T) {
		t.Parallel()
		c := dial(t, 0)
		c.send(t, "DELETE /api/links HTTP/1.1\r\nHost: s\r\nContent-Length: 4\r\n\r\nbody")
		c.answer(t, http.StatusMethodNotAllowed)
		c.send(t, "GET /healthz HTTP/1.1\r\nHost: s\r\n\r\n")
		c.answer(t, http.StatusOK)
	})
}

// A client that closes the connection itself, as some proxies do each time, still
// finishes writing and reads its answer: cut off at once, it would see neither.
func TestRefusedClientThatClosesIsNotCutOff(t *testing.T) {
	t.Parallel()
	const size = 4 << 20 // more than the system keeps for a connection
	for name, request := range map[string]string{
		"too large":   fmt.Sprintf("%sConnection: close\r\nContent-Length: %d\r\n\r\n", head, size),
		"in chunks":   fmt.Sprintf("%sConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", head, size),
		"to HTTP/1.0": fmt.Sprintf("%sContent-Length: %d\r\n\r\n", strings.Replace(head, "HTTP/1.1", "HTTP/1.0", 1), size),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, 0)
			c.send(t, "%s", request)
			c.answer(t, http.StatusTooManyRequests)
			c.send(t, "%s", strings.Repeat("x", size))
		})
	}
}

// Where a proxy may have seen another end of the request, what follows it on the
// connection is not taken for the next one.
func TestAmbiguousEndClosesTheConnection(t *testing.T) {
	t.Parallel()
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(goodJSON), goodJSON)
	length := fmt.Sprintf("Content-Length: %d\r\n", len(goodJSON))
	old := strings.Replace(head, "HTTP/1.1", "HTTP/1.0", 1) + "Connection: keep-alive\r\n"
	for _, row := range []struct {
		name, request string
		status        int
	}{
		{"chunks", head + "Transfer-Encoding: chunked\r\n\r\n" + chunks, 201},
		{"chunks and a length", head + length + "Transfer-Encoding: chunked\r\n\r\n" + chunks, 201},
		{"chunks to HTTP/1.0", old + "Transfer-Encoding: chunked\r\n\r\n" + chunks, 400},
		{"chunks and a length to HTTP/1.0", old + length + "Transfer-Encoding: chunked\r\n\r\n" + goodJSON, 201},
		{"no body to HTTP/1.0", "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, 2)
			c.send(t, "%s%s%s\r\n%s", row.request, head, length, goodJSON)
			if w := c.answer(t, row.status); !w.Close {
				t.Error("the close is not announced")
			}
			c.closed(t)
			if n := c.served.Load(); n != 1 {
				t.Errorf("%d requests were served", n)
			}
		})
	}
}

// Whoever dribbles is cut off, and what comes too late of a body is never taken
// for a request, wherever in it the server stops waiting.
func TestLateBodyIsNoRequest(t *testing.T) {
	t.Parallel()
	smuggled := fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(goodJSON), goodJSON)
	dribble := strings.Repeat(smuggled, 5)
	for name, announced := range map[string]string{
		"small":   fmt.Sprintf("Content-Length: %d\r\n\r\n", len(dribble)),
		"partly":  fmt.Sprintf("Content-Length: %d\r\n\r\n12345", len(dribble)+5),
		"large":   "Content-Length: 100000\r\n\r\n",
		"chunked": "Transfer-Encoding: chunked\r\n\r\n",
		"asked":   fmt.Sprintf("Content-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(dribble)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, 0)
			c.send(t, "%s%s", head, announced)
			c.answer(t, http.StatusTooManyRequests)
			tick := time.NewTicker(bodyGrace / 200)
			defer tick.Stop()
			for i := range dribble {
				if _, err := io.WriteString(c, dribble[i:i+1]); err != nil {
					break // cut off
				}
				<-tick.C
			}
			c.closed(t)
			if n := c.served.Load(); n != 1 {
				t.Errorf("%d requests were served", n)
			}
		})
	}
}

// A body that the handler gives up on, or that breaks off, closes the connection.
func TestBrokenBodies(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, request string
		status        int
	}{
		{"endless chunks", "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("8000\r\n"+strings.Repeat(" ", 0x8000)+"\r\n", 3), 413},
		{"an endless list", "Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n" + strings.Repeat("8000\r\n"+strings.Repeat(" ", 0x8000)+"\r\n", 33), 413},
		{"declared too large", "Content-Length: 1073741824\r\n\r\n", 413},
		{"not in chunks", "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400},
		{"another media type", "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", 415},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, 1)
			c.send(t, "%s%s", head, row.request)
			if w := c.answer(t, row.status); !w.Close {
				t.Error("the close is not announced")
			}
			c.closed(t)
		})
	}
	for name, sent := range map[string]string{
		"the client stops sending":        "{",
		"the client stops sending a list": "[" + goodJSON + "]" + strings.Repeat(" ", maxBody),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, 1)
			c.send(t, "%sContent-Length: %d\r\n\r\n%s", head, len(sent)+99, sent)
			if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if w := c.answer(t, http.StatusBadRequest); !w.Close {
				t.Error("the close is not announced")
			}
			c.closed(t)
		})
	}
}

// The time that an admitted client has for its body ends, however it dribbles.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		line := &oneConn{conn: far, closed: make(chan struct{})}
		server := &http.Server{Handler: newSite(t, siteSetup{})}
		go server.Serve(line)
		defer server.Close()

		start := time.Now()
		var dribbler sync.WaitGroup
		dribbler.Go(func() {
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			_, err := fmt.Fprintf(near, "%sContent-Length: 100\r\n\r\n", head)
			for ; err == nil; _, err = near.Write([]byte(" ")) {
				<-tick.C
			}
		})
		c := wire{Conn: near, in: bufio.NewReader(near)}
		if w := c.answer(t, http.StatusRequestTimeout); !w.Close {
			t.Error("the close is not announced")
		}
		if took := time.Since(start); took != bodyTimeout {
			t.Errorf("the answer took %s", took)
		}
		c.closed(t)
		near.Close()
		dribbler.Wait()
	})
}

// oneConn is a listener whose only client is there already.
type oneConn struct {
	conn   net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "@", Net: "unix"} }
