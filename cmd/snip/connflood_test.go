package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// from is a dialer that calls from a loopback address, each of which is a client.
func from(client string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: netip.MustParseAddr(client).AsSlice()}}
}

// visitor returns a client that calls from a loopback address, over a new connection
// for each request.
func visitor(client string) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DialContext: from(client).DialContext, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       10 * time.Second, // a visitor that waits longer was locked out
	}
}

// createdFrom makes a link from a loopback address and returns where it is.
func createdFrom(t *testing.T, p *process, client string) string {
	t.Helper()
	answer, err := visitor(client).Post(p.url+"/api/links", "application/json", strings.NewReader(`{"url":"https://example.org/"}`))
	if err != nil {
		t.Fatalf("a creation of %s: %v", client, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		body, _ := io.ReadAll(answer.Body)
		t.Fatalf("a creation of %s: %d %s", client, answer.StatusCode, body)
	}
	slug := strings.TrimPrefix(answer.Header.Get("Location"), "http://localhost:8080")
	return p.url + slug
}

// visitsFrom follows a link n times over as many connections. The flood, if any, may renew
// connections before each visit.
func visitsFrom(t *testing.T, f renewalPermits, link, client string, n int) time.Duration {
	t.Helper()
	c, began := visitor(client), time.Now()
	for range n {
		f.allow()
		answer, err := c.Get(link)
		if err != nil {
			t.Fatalf("a visit of %s: %v", client, err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusFound {
			t.Fatalf("a visit of %s: %d", client, answer.StatusCode)
		}
	}
	return time.Since(began)
}

// connectionsOfFlood are more than the program of the tests here may have open.
const connectionsOfFlood = 400

// renewalPermits holds the right to open one more connection for each that the server has closed.
type renewalPermits chan struct{}

// renewals are how many connections the flood may renew for each visit. It counts them, and
// not the time: a visitor is closed when more than the bound come before its request is read,
// which on a busy machine may take any time.
const renewals = 5

func (f renewalPermits) allow() {
	for range cap(f) {
		select {
		case f <- struct{}{}:
		default:
			return
		}
	}
}

// floodConnections keeps so many connections open, each from a client and a network
// of its own. It returns once all have been open.
func floodConnections(t *testing.T, p *process, hold func(net.Conn) error) renewalPermits {
	t.Helper()
	var held, begun sync.WaitGroup
	renew := make(renewalPermits, renewals)
	over := make(chan struct{})
	t.Cleanup(func() {
		close(over)
		p.kill() // ends the connections
		held.Wait()
	})
	begun.Add(connectionsOfFlood)
	for i := range connectionsOfFlood {
		held.Go(func() {
			first := sync.OnceFunc(begun.Done)
			defer first()
			dial := from(fmt.Sprintf("127.%d.%d.1", 1+i/200, i%200))
			for opened := false; ; {
				select {
				case <-over:
					return
				default:
				}
				if opened {
					select {
					case <-over:
						return
					case <-renew:
					}
				}
				c, err := dial.Dial("tcp", p.addr)
				if err != nil {
					continue
				}
				if hold(c) == nil {
					opened = true
					first()
					_, _ = c.Read(make([]byte, 1)) // until the server closes it
				}
				c.Close()
			}
		})
	}
	begun.Wait()
	return renew
}

func startWithFewDescriptors(t *testing.T, args ...string) (p *process, dir string) {
	t.Helper()
	dir = t.TempDir()
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -n 300; exec "$0" "$@"`, binary,
		"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--throttle-every=0", "--quota-service=1000000"}, args...)...)
	p, err := startCommand(cmd, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p, dir
}

// operate runs a command of the operator's and returns what it printed.
func operate(t *testing.T, p *process, dir string, args ...string) string {
	t.Helper()
	out, err := commandTo(t, dir, p.admin, nil, args...)
	if err != nil {
		t.Fatalf("snip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func send(c net.Conn, text string) error {
	_, err := io.WriteString(c, text)
	return err
}

// TestConnectionFlood floods a program that may have 300 files open with 400
// connections of as many networks. The operator and strangers are served all the same.
func TestConnectionFlood(t *testing.T) {
	t.Parallel()
	const get = "GET /healthz HTTP/1.1\r\nHost: s\r\n\r\n"
	for _, row := range []struct {
		name string
		hold func(net.Conn) error
	}{
		{"says nothing", func(net.Conn) error { return nil }},
		{"sends half a header", func(c net.Conn) error { return send(c, get[:20]) }},
		{"keeps the connection after an answer", func(c net.Conn) error {
			_, err := oneAnswer(c, get)
			return err
		}},
		{"sends half of a second header", func(c net.Conn) error {
			_, err := oneAnswer(c, get+get[:20])
			return err
		}},
		{"sends half a body", func(c net.Conn) error {
			return send(c, "POST /api/links HTTP/1.1\r\nHost: s\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nhttps")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p, dir := startWithFewDescriptors(t)
			const visits = 200
			link := createdFrom(t, p, "127.100.0.1")
			calm := visitsFrom(t, nil, link, "127.100.0.1", visits)
			flood := floodConnections(t, p, row.hold)

			if out := operate(t, p, dir, "status"); !strings.Contains(out, "of 236 that may be open") {
				t.Errorf("snip status says\n%s", out)
			}
			operate(t, p, dir, "quota", "override", "127.1.0.1", "--block")
			beset := visitsFrom(t, flood, link, "127.101.0.1", visits)
			for i := range 5 {
				visitsFrom(t, flood, createdFrom(t, p, fmt.Sprintf("127.102.%d.1", i)), "127.103.0.1", 1)
			}
			t.Logf("%d visits, each over a connection of its own, took %v before and %v meanwhile: %.2f of the rate", visits, calm, beset, float64(calm)/float64(beset))
			metrics := metricsOf(t, p, dir)
			if open := metrics["process_open_fds"]; open == 0 || open > 300-16 {
				t.Errorf("%v descriptors are open of 300: the reserve is used up", open)
			}
			if got := metrics[`snip_connections_closed_total{reason="service"}`]; got < connectionsOfFlood-236 {
				t.Errorf("%v connections were closed for others", got)
			}
			if strings.Contains(p.log(), "too many open files") {
				t.Errorf("descriptors ran out:\n%s", p.log())
			}
		})
	}
}

// TestConnectionsOfOneClient opens more connections than a client, and than a network,
// may have. Others keep theirs.
func TestConnectionsOfOneClient(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		args    []string
		clients int // of one network
		bound   string
		most    float64
	}{
		{"a client", nil, 1, "client", 29},
		{"a network", nil, 10, "network", 59},
		{"a trusted proxy", []string{"--trusted-proxies=127.1.1.0/24"}, 1, "", 100},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p, dir := startWithFewDescriptors(t, row.args...)
			var conns []net.Conn
			open := func(client string) net.Conn {
				c, err := from(client).Dial("tcp", p.addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				if _, err := oneAnswer(c, "GET /healthz HTTP/1.1\r\nHost: s\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				return c
			}
			other := open("127.2.2.2")
			for i := range 100 {
				conns = append(conns, open(fmt.Sprintf("127.1.1.%d", 1+i%row.clients)))
			}
			var metrics map[string]float64
			idle := func() bool {
				metrics = metricsOf(t, p, dir)
				return metrics[`snip_connections{state="idle"}`] == row.most+1
			}
			if err := eventually("all that may be open are idle", idle); err != nil {
				t.Errorf("%v: %v, want %v and another's", err, metrics[`snip_connections{state="idle"}`], row.most)
			}
			for _, bound := range []string{"client", "network", "service"} {
				want := 0.0
				if bound == row.bound {
					want = 100 - row.most
				}
				if got := metrics[`snip_connections_closed_total{reason="`+bound+`"}`]; got != want {
					t.Errorf("%v connections were closed for the %s's bound, want %v", got, bound, want)
				}
			}
			for _, c := range append(conns[100-int(row.most):], other) { // the first ones went
				if _, err := oneAnswer(c, "GET /healthz HTTP/1.1\r\nHost: s\r\n\r\n"); err != nil {
					t.Fatalf("a connection that is younger, or another's: %v", err)
				}
			}
		})
	}
}

// TestRequestsUnderWayAreKept fills a bound with requests that the server is at: then
// a new connection is refused, and none of those ends.
func TestRequestsUnderWayAreKept(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	watch := newConnWatch(l, connBounds{service: 3, network: 3, client: 3}, nil, nil)
	begun, finish := make(chan struct{}, 10), make(chan struct{})
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-finish
	}), slog.New(slog.DiscardHandler))
	go server.Serve(watch)
	t.Cleanup(func() { server.Close() })
	var conns []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		if err := send(c, "GET / HTTP/1.1\r\nHost: s\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-begun
	}
	late, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := untilClosed(late); err != nil || answer != "" {
		t.Errorf("a fourth connection: %q, %v, want a close", answer, err)
	}
	if s := watch.stats(); s.Refused["client"] != 1 || s.Open["working"] != 3 {
		t.Errorf("%+v, want one refused and three at work", s)
	}
	close(finish)
	for _, c := range conns {
		if answer, err := oneAnswer(c, ""); err != nil || !strings.HasPrefix(answer, "HTTP/1.1 200") {
			t.Errorf("a request under way: %q, %v", answer, err)
		}
	}
}

// TestUnreadAnswersMakeRoom fills a bound with answers that nobody reads: a new
// connection takes the room of the longest of them.
func TestUnreadAnswersMakeRoom(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	watch := newConnWatch(l, connBounds{service: 2, network: 2, client: 2}, nil, nil)
	page := make([]byte, 16<<20) // more than the kernel keeps
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page" {
			w.Write(page)
		}
	}), slog.New(slog.DiscardHandler))
	go server.Serve(watch)
	t.Cleanup(func() { server.Close() })
	dial := func(request string) net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := send(c, request); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for n := range int64(2) {
		c := dial("GET /page HTTP/1.1\r\nHost: s\r\n\r\n")
		if _, err := c.Read(make([]byte, 1)); err != nil { // the server is at it
			t.Fatal(err)
		}
		for watch.stats().Open["sending"] <= n {
			runtime.Gosched()
		}
		watch.seconds.Add(1)
	}
	late := dial("")
	if answer, err := oneAnswer(late, "GET / HTTP/1.1\r\nHost: s\r\n\r\n"); err != nil || !strings.HasPrefix(answer, "HTTP/1.1 200") {
		t.Errorf("a third connection: %q, %v", answer, err)
	}
	if err := eventually("the late answer is out", func() bool { return watch.stats().Open["sending"] < 2 }); err != nil {
		t.Error(err)
	}
	if s := watch.stats(); s.Closed["client"] != 1 || s.Open["sending"] != 1 {
		t.Errorf("%+v, want one closed and one still sending", s)
	}
}

func TestConnBounds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		descriptors uint64
		store       int
		calls       bool
		want        connBounds
	}{
		{300, 0, false, connBounds{236, 59, 29}},
		{300, 0, true, connBounds{118, 29, 14}},
		{300, 14, false, connBounds{222, 55, 27}},
		{8192, 0, false, connBounds{8128, 2032, 1016}},
		{100, 0, false, connBounds{50, 12, 6}},
		{1, 0, true, connBounds{1, 1, 1}},
		{1 << 20, 8, true, connBounds{16384, 4096, 2048}},
		{1<<64 - 1, 8, false, connBounds{16384, 4096, 2048}}, // no limit
	} {
		if got := connBoundsFor(row.descriptors, row.store, row.calls); got != row.want {
			t.Errorf("%d descriptors, %d of the store's, calls %v: %+v, want %+v", row.descriptors, row.store, row.calls, got, row.want)
		}
	}
}

// metricsOf returns what the admin listener tells Prometheus.
func metricsOf(t *testing.T, p *process, dir string) map[string]float64 {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(dir, "snip.db.admin-token"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.admin+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil {
			values[name] = n
		}
	}
	return values
}
