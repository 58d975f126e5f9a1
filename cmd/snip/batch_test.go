package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// batchOf is the body of a batch of n links.
func batchOf(n int) string {
	return "[" + strings.Repeat(`{"url":"https://example.org/abc"},`, n-1) + `{"url":"https://example.org/abc"}]`
}

// TestBatchCostsOneSync counts how often the program waits for the disk before each
// answer: a batch of fifty links is one commit, as a single link is.
func TestBatchCostsOneSync(t *testing.T) {
	t.Parallel()
	needStrace(t)
	withinOneDay(t, func() error {
		dir := t.TempDir()
		trace := filepath.Join(dir, "trace")
		p, err := startTraced(dir, trace, []string{"-e", diskCalls}, plenty...)
		if err != nil {
			return err
		}
		for i, body := range []string{batchOf(1), batchOf(1), batchOf(50), batchOf(1)} { // the first makes the day, too
			keyed{fmt.Sprintf("demand-number-%d-of-a-test", i), body}.ask(t, p, http.StatusCreated)
		}
		if err := p.stop(); err != nil {
			return err
		}
		calls, err := readTrace(trace)
		if err != nil {
			return err
		}
		var syncs []int // before each answer
		count := 0
		for _, c := range calls {
			switch {
			case c.begun:
			case c.name == "fdatasync" || c.name == "fsync":
				count++
			case c.name == "write" && strings.HasPrefix(c.text, "HTTP/1.1 201"):
				syncs, count = append(syncs, count), 0
			}
		}
		if len(syncs) != 4 || syncs[1] == 0 || syncs[2] != syncs[1] || syncs[3] != syncs[1] {
			return fmt.Errorf("%d flushes before the answers, the third of which is that of a batch", syncs)
		}
		return nil
	})
}
