package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/boltstore"
)

// BenchmarkServe is a request and its answer over loopback, by the server as it is
// wired for real. make profile takes from it what the compiler is told of the
// program; bench/ says how fast the built program is.
func BenchmarkServe(b *testing.B) {
	const post = "POST /api/links HTTP/1.1\r\nHost: s\r\nContent-Type: application/json\r\nContent-Length: 33\r\n\r\n" +
		`{"url":"https://example.org/abc"}`
	huge := quota.Policy{Client: 1 << 40, Network: 1 << 40, Service: 1 << 40}
	slow := quota.ThrottleConfig{Every: 24 * time.Hour, Burst: 1, Clients: 64}
	for _, row := range []struct {
		name     string
		policy   quota.Policy
		throttle quota.ThrottleConfig
		request  string
		before   int // how many are sent before those that count
		status   int
	}{
		{"a visited link", huge, quota.ThrottleConfig{}, "GET /abc HTTP/1.1\r\nHost: s\r\n\r\n", 1, http.StatusFound},
		{"an unknown slug", huge, quota.ThrottleConfig{}, "GET /unknown HTTP/1.1\r\nHost: s\r\n\r\n", 1, http.StatusNotFound},
		{"the form", huge, quota.ThrottleConfig{}, "GET / HTTP/1.1\r\nHost: s\r\n\r\n", 1, http.StatusOK},
		{"a creation", huge, quota.ThrottleConfig{}, post, 1, http.StatusCreated},
		{"refused by the throttle", huge, slow, post, 1, http.StatusTooManyRequests},
		{"refused by the quota", quota.Policy{Client: 1}, quota.ThrottleConfig{}, post, 1, http.StatusTooManyRequests},
	} {
		b.Run(row.name, func(b *testing.B) {
			address := serveForBenchmark(b, row.policy, row.throttle)
			first := dialForBenchmark(b, address)
			for range row.before {
				if _, err := first.answer(row.request); err != nil {
					b.Fatal(err)
				}
			}
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				c := dialForBenchmark(b, address)
				for pb.Next() {
					if status, err := c.answer(row.request); err != nil || status != row.status {
						b.Errorf("status %d, %v, want %d", status, err, row.status)
						return
					}
				}
			})
		})
	}
}

// BenchmarkBatch is one client that makes its links one by one, or fifty at once. The
// two take turns, because a disk is not as fast in one second as in the next.
func BenchmarkBatch(b *testing.B) {
	const batch = 50
	huge := quota.Policy{Client: 1 << 40, Network: 1 << 40, Service: 1 << 40}
	c := dialForBenchmark(b, serveForBenchmark(b, huge, quota.ThrottleConfig{}))
	requests := make([]string, 2)
	for i, n := range []int{1, batch} {
		body := batchOf(n)
		requests[i] = fmt.Sprintf("POST /api/links HTTP/1.1\r\nHost: s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	var took [2]time.Duration
	for b.Loop() {
		for i, request := range requests {
			began := time.Now()
			if status, err := c.answer(request); err != nil || status != http.StatusCreated {
				b.Fatalf("status %d, %v", status, err)
			}
			took[i] += time.Since(began)
		}
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "batch/single")
	b.ReportMetric(float64(took[0].Microseconds())/float64(b.N), "µs/single")
	b.ReportMetric(float64(took[1].Microseconds())/float64(b.N), "µs/batch")
}

// serveForBenchmark serves a store that has the link "abc" until the benchmark
// ends, and returns its address.
func serveForBenchmark(b *testing.B, policy quota.Policy, throttle quota.ThrottleConfig) string {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	store, err := boltstore.Open(filepath.Join(b.TempDir(), "snip.db"), boltstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	link := shortener.Link{Slug: "abc", Destination: "https://example.org/articles/2026/0000001", CreatedAt: time.Now()}
	if err := store.Create(b.Context(), shortener.Creation{Links: []shortener.Link{link}}); err != nil {
		b.Fatal(err)
	}
	public := &url.URL{Scheme: "http", Host: "s"}
	destinations, err := shortener.NewDestinations(public, false)
	if err != nil {
		b.Fatal(err)
	}
	c := config{publicURL: public, policy: policy, throttle: throttle, destinations: destinations}
	throttles, err := newThrottles(c.throttle, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	handler, err := newHandler(c, newService(c, store, nil, time.Now), throttles, nil, time.Now, log)
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server, watch := newServer(handler, log), newConnWatch(listener, connBoundsFor(descriptors(), 0, false), nil, nil)
	ctx, cancel := context.WithCancel(context.Background())
	go watch.run(ctx)
	go server.Serve(watch)
	b.Cleanup(func() { server.Close(); cancel() })
	return listener.Addr().String()
}

// connection is a client that costs little beside the server.
type connection struct {
	conn   net.Conn
	reader *bufio.Reader
}

func dialForBenchmark(b *testing.B, address string) connection {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		b.Error(err)
		return connection{}
	}
	b.Cleanup(func() { conn.Close() })
	return connection{conn, bufio.NewReader(conn)}
}

// answer sends a request and reads its answer to the end.
func (c connection) answer(request string) (status int, err error) {
	if _, err := io.WriteString(c.conn, request); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
