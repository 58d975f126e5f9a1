package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestReplicaKilled kills one of three servers behind a proxy under load. At most one
// request fails on each connection that the proxy has to it; no other does, and
// nothing is half made.
func TestReplicaKilled(t *testing.T) {
	t.Parallel()
	const workers, before, after = 8, 300, 300
	r := startReplicas(t, plenty...)
	addresses := make([]string, len(r.servers))
	for i, p := range r.servers {
		addresses[i] = p.addr
	}
	// Where a connection is refused, nothing was sent, and Caddy asks the next one.
	f := caddy.start(t, strings.Join(addresses, " ")+" {\n\t\tlb_policy round_robin\n\t\tlb_try_duration 5s\n\t\tfail_duration 10s\n\t}")
	visitor := f.visitor(t, "127.0.0.1")
	behind := &caller{url: "https://s.example", http: *visitor}

	var mu sync.Mutex
	acknowledged := map[string]string{}
	var made, lost atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := 0; made.Load() < before+after; i++ {
				destination := fmt.Sprintf("https://example.org/%d/%d", w, i)
				status, slug, err := behind.create("", destination)
				switch {
				case err == nil && status == http.StatusCreated:
					mu.Lock()
					acknowledged[slug] = destination
					mu.Unlock()
					if made.Add(1) == before {
						r.servers[0].kill()
					}
				case err == nil && status == http.StatusBadGateway:
					lost.Add(1)
				default:
					t.Errorf("status %d, %v", status, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if lost.Load() > workers {
		t.Errorf("%d requests failed, and the proxy had at most %d connections", lost.Load(), workers)
	}
	r.servers, r.callers = r.servers[1:], r.callers[1:]
	if err := r.counted(t, -1); err != nil {
		t.Error(err)
	}
	if err := r.holds(t, acknowledged); err != nil {
		t.Error(err)
	}
	t.Logf("%d made, %d failed with the server that was killed", made.Load(), lost.Load())
}
