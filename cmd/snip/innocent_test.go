package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"
)

// innocent is everybody else: clients of as many networks, each with a
// connection of its own.
type innocent struct {
	*caller
	p      *process
	slug   string
	made   int
	memory int // the most that was seen, in KiB
}

func newInnocent(t *testing.T, p *process) *innocent {
	c := &innocent{caller: newCaller(t, p), p: p}
	c.http.Transport.(*http.Transport).DisableKeepAlives = true
	c.http.Timeout = 10 * time.Second // whoever waits longer was locked out
	c.slug = c.make(t)
	return c
}

func (c *innocent) make(t *testing.T) string {
	t.Helper()
	client := fmt.Sprintf("100.%d.%d.1", 64+c.made>>8, c.made&255)
	status, slug, err := c.create(client, "https://example.org/")
	if err != nil || status != http.StatusCreated {
		t.Fatalf("link %d: status %d, %v", c.made, status, err)
	}
	c.made++
	return slug
}

// latencies are those of visits and of creations.
type latencies struct{ visits, creations []time.Duration }

func (l latencies) String() string {
	show := func(took []time.Duration) string {
		slices.Sort(took)
		return fmt.Sprintf("median %v, 99 %% within %v, most %v", took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	}
	return fmt.Sprintf("%d visits: %s; %d creations: %s", len(l.visits), show(l.visits), len(l.creations), show(l.creations))
}

// visits follows a link and makes one in turn: n times, and until over is closed.
func (c *innocent) visits(t *testing.T, n int, over <-chan struct{}) latencies {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var l latencies
	for i := 0; ; i++ {
		start := time.Now()
		if _, err := c.follow(c.slug); err != nil {
			t.Fatalf("visit %d: %v", i, err)
		}
		visited := time.Now()
		c.make(t)
		l.visits = append(l.visits, visited.Sub(start))
		l.creations = append(l.creations, time.Since(visited))
		c.memory = max(c.memory, anonymousMemory(t, c.p))
		select {
		case <-over:
			return l
		case <-tick.C:
			if over == nil && i == n {
				return l
			}
		}
	}
}

// anonymousMemory returns what the process holds beside its mapped files, in
// KiB, or 0 where the system does not tell.
func anonymousMemory(t *testing.T, p *process) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("RssAnon:"))
	var size int
	if _, err := fmt.Sscanf(string(rest), "%d kB", &size); err != nil {
		t.Fatalf("RssAnon: %v", err)
	}
	return size
}
