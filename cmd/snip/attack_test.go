package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// soon bounds how long the server may hold a connection that does nothing
	// right: 10 seconds for its request, 10 more for its body, and a margin for a
	// busy machine.
	soon = 25 * time.Second
	// mostMemory is what all of the attack may cost in anonymous memory, in KiB.
	mostMemory = 192 << 10
)

// TestUnderAttack holds 4,000 idle connections, has a hundred clients dribble and
// floods the server with what never ends. Meanwhile strangers visit a link and
// make some, and nobody waits for long. Every attacker is cut off, memory stays
// within bounds, and no attacker's link exists.
func TestUnderAttack(t *testing.T) {
	t.Parallel()
	const silent, kept = 2000, 2000
	enoughFiles(t, silent+kept)
	dir := t.TempDir()
	p := start(t, dir, "--trusted-proxies=127.0.0.1", "--quota-service=1000000")
	innocent := newInnocent(t, p)
	calm := innocent.visits(t, 25, nil)
	before := anonymousMemory(t, p)

	var attackers sync.WaitGroup
	t.Cleanup(attackers.Wait) // before the process is killed, also when a visit fails
	attack := func(what string, run func() error) {
		attackers.Go(func() {
			if err := run(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	attack("silent connections", func() error { return holdSilent(p.addr, silent) })
	over := make(chan struct{})
	idle := holdKept(t, p.addr, kept)
	for i := range 50 {
		attack("slow headers", func() error {
			answer, err := dribble(p.addr, "GET /healthz HTTP/1.1\r\nHost: s\r\nX-Slow: ")
			return wantStart(answer, "", err)
		})
		attack("a slow body", func() error {
			answer, err := dribble(p.addr, postHead(i)+"Content-Length: 1000\r\n\r\n")
			return wantStart(answer, "HTTP/1.1 408 ", err)
		})
	}
	for i := range 20 {
		attack("endless headers", func() error {
			answer, err := flood(p.addr, "GET /healthz HTTP/1.1\r\nHost: s\r\n", strings.Repeat("X-Huge: 0123456789\r\n", 500))
			return wantStart(answer, "HTTP/1.1 431 ", err)
		})
		attack("an endless request line", func() error {
			answer, err := flood(p.addr, "GET /", strings.Repeat("a", 8192))
			return wantStart(answer, "HTTP/1.1 431 ", err)
		})
		attack("an endless body", func() error {
			answer, err := flood(p.addr, postHead(100+i)+"Transfer-Encoding: chunked\r\n\r\n", "4000\r\n"+strings.Repeat(" ", 0x4000)+"\r\n")
			return wantStart(answer, "HTTP/1.1 413 ", err)
		})
	}
	for i := range 150 {
		attack("a list that stops coming", func() error {
			head := strings.Replace(postHead(150+i/2), "application/json", "text/plain", 1)
			answer, err := flood(p.addr, head+"Content-Length: 1048576\r\n\r\n"+strings.Repeat("\n", 1_040_000), "")
			if strings.HasPrefix(answer, "HTTP/1.1 503 ") { // few have a place
				return err
			}
			return wantStart(answer, "HTTP/1.1 408 ", err)
		})
	}
	go func() { attackers.Wait(); close(over) }()
	beset := innocent.visits(t, 0, over)
	if most := innocent.memory - before; most > mostMemory {
		t.Errorf("the attack takes %d KiB of memory, want at most %d", most, mostMemory)
	}
	for _, c := range idle { // still open: keeping them is what the client asked for
		if _, err := oneAnswer(c, "GET /healthz HTTP/1.1\r\nHost: s\r\n\r\n"); err != nil {
			t.Fatalf("a connection that was kept: %v", err)
		}
	}
	t.Logf("before: %v", calm)
	t.Logf("under attack: %v", beset)
	t.Logf("memory: %d KiB before, %d at most", before, innocent.memory)
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if links := len(audit(t, filepath.Join(dir, "snip.db")).slugs); links != innocent.made {
		t.Errorf("%d links, of which %d are innocent", links, innocent.made)
	}
}

// enoughFiles skips the test where the system does not allow so many connections.
func enoughFiles(t *testing.T, connections uint64) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if need := connections + 1000; limit.Cur < need { // Go has raised it to what is allowed
		t.Skipf("%d open files are allowed, but %d are needed: raise ulimit -Hn", limit.Cur, need)
	}
}

// holdSilent opens connections and says nothing, or not even a whole method. It
// returns when the server has closed all of them.
func holdSilent(addr string, n int) error {
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		defer c.Close()
		if i%2 == 1 {
			if _, err := io.WriteString(c, "GE"); err != nil {
				return err
			}
		}
		conns[i] = c
	}
	for _, c := range conns {
		answer, err := untilClosed(c)
		if err := wantStart(answer, "", err); err != nil {
			return err
		}
	}
	return nil
}

// holdKept opens connections that have each had an answer.
func holdKept(t *testing.T, addr string, n int) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := oneAnswer(c, "GET /healthz HTTP/1.1\r\nHost: s\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		conns[i] = c
	}
	return conns
}

// postHead is a creation up to its length, by a client that has made none.
func postHead(client int) string {
	return fmt.Sprintf("POST /api/links HTTP/1.1\r\nHost: s\r\nContent-Type: application/json\r\nX-Forwarded-For: 203.0.%d.1\r\n", client)
}

// oneAnswer sends a request over a connection and returns what came back at once.
func oneAnswer(c net.Conn, request string) (string, error) {
	if err := c.SetDeadline(time.Now().Add(soon)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, request); err != nil {
		return "", err
	}
	answer := make([]byte, 4096)
	n, err := c.Read(answer)
	return string(answer[:n]), err
}

// dribble sends the beginning of a request and then a byte a second. It returns
// what the server answered before it closed the connection.
func dribble(addr, beginning string) (string, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, beginning); err != nil {
		return "", err
	}
	first := make([]byte, 1)
	for start := time.Now(); time.Since(start) < soon; {
		if err := c.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return "", err
		}
		n, err := c.Read(first)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			_, _ = io.WriteString(c, "a") // that it is closed is for Read to find out
			continue
		}
		rest, err := untilClosed(c)
		return string(first[:n]) + rest, err
	}
	return "", fmt.Errorf("still served after %v", soon)
}

// flood sends the beginning, and more without end unless it is empty. It returns
// what the server answered before it closed the connection.
func flood(addr, beginning, more string) (string, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		for _, err := io.WriteString(c, beginning); err == nil && more != ""; {
			_, err = io.WriteString(c, more)
		}
	})
	answer, err := untilClosed(c)
	c.Close()
	writer.Wait()
	return answer, err
}

// untilClosed reads until the server has closed the connection. A reset is a
// close too: the server does not read what it has refused to the end.
func untilClosed(c net.Conn) (string, error) {
	if err := c.SetReadDeadline(time.Now().Add(soon)); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(c)
	if errors.Is(err, syscall.ECONNRESET) {
		err = nil
	}
	return string(answer), err
}

func wantStart(answer, want string, err error) error {
	if err == nil && (!strings.HasPrefix(answer, want) || want == "" && answer != "") {
		err = fmt.Errorf("answered %.60q, want %q", answer, want)
	}
	return err
}
