package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// make test runs the short form of the tests that break things, with the same
// moments each time; make torture the long one, with moments of its own.
var (
	tortured = flag.Bool("torture", false, "break things many times more often")
	moments  = flag.Uint64("torture.seed", 20261129, "what the moments at which things break are drawn from")
)

// rounds returns how often a test breaks something.
func rounds(usual, torture int) int {
	if *tortured {
		return torture
	}
	return usual
}

// plenty is limits that a load does not meet.
var plenty = []string{"--throttle-every=0", "--trusted-proxies=127.0.0.0/8",
	"--quota-client=100000", "--quota-network=100000", "--quota-service=1000000"}

// made is what a load has brought about.
type made struct {
	acknowledged map[string]string // slug to destination
	answers      map[int]int       // by status
	unanswered   int
}

// load makes links from a few connections at once, each in the name of a client
// of the network, such as "198.51". Some links are so long that the
// file grows. A connection ends with its first request that is not answered.
func load(c *caller, network string, connections, each int) made {
	m := made{acknowledged: map[string]string{}, answers: map[int]int{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for n := range connections {
		wg.Go(func() {
			for i := range each {
				destination := fmt.Sprintf("https://example.org/%d/%d/%s", n, i, strings.Repeat("x", i%4*1500))
				status, slug, err := c.create(fmt.Sprintf("%s.%d.1", network, n), destination)
				mu.Lock()
				switch {
				case err != nil:
					m.unanswered++
				case status == http.StatusCreated:
					m.acknowledged[slug] = destination
					fallthrough
				default:
					m.answers[status]++
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return m
}

// newBase makes a data file without links, as a first start leaves it, and
// returns its bytes.
func newBase(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := start(t, dir).stop(); err != nil {
		t.Fatal(err)
	}
	base, err := os.ReadFile(filepath.Join(dir, "snip.db"))
	if err != nil {
		t.Fatal(err)
	}
	return base
}
