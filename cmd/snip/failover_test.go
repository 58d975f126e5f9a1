package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snip/quota/pgquota/pgtest"
)

// backAfter is how long after a promotion creations may still be refused.
const backAfter = 30 * time.Second

// TestFailover kills the primary under load and promotes its standby. No link that
// was acknowledged is missing, no client has more than its limit, and what was
// visited leads on all the time.
func TestFailover(t *testing.T) {
	t.Parallel()
	withinOneDay(t, func() error {
		primary, standby := pgtest.Start(t), pgtest.Start(t)
		database := primary.Database(t)
		standby.Follow(t, primary)
		r := &replicas{database: standby.Or(t, database)}
		r.start(t, 3, "--quota-network=100000", "--quota-service=1000000")
		l := newRush(r)
		kills := rounds(1, 10)
		for round := range kills {
			end := l.start(t, round)
			l.await(t, 150) // acknowledgements
			primary.Kill(t)
			standby.Promote(t)
			promoted := time.Now()
			for i, c := range r.callers {
				for status := 0; status != http.StatusCreated; {
					var err error
					if status, _, err = c.create(fmt.Sprintf("203.%d.%d.1", round, i), "https://example.org/back"); time.Since(promoted) > backAfter {
						return fmt.Errorf("round %d: server %d still answers %d, %v, %v after the promotion", round, i, status, err, backAfter)
					}
				}
			}
			t.Logf("round %d: creations are back %v after the promotion", round, time.Since(promoted).Round(time.Millisecond))
			l.await(t, 50)
			if primary, standby = standby, primary; round+1 < kills {
				standby.Follow(t, primary)
				l.await(t, 50)
			}
			if err := end(); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			if err := r.counted(t, -1); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			if err := r.holds(t, l.acknowledged); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		return nil
	})
}

// rush is a load of creations by clients that make more links than they may, and of
// visits.
type rush struct {
	*replicas
	made atomic.Int64

	mu           sync.Mutex
	acknowledged map[string]string
	byClient     map[string]int
	answers      map[int]int
	wrong        error
}

func newRush(r *replicas) *rush {
	return &rush{replicas: r, acknowledged: map[string]string{}, byClient: map[string]int{}, answers: map[int]int{}}
}

// start returns what ends it, and says what went wrong.
func (l *rush) start(t *testing.T, round int) (end func() error) {
	t.Helper()
	const makers, limit = 6, 50
	visited := make([]string, 20)
	for i := range visited {
		_, slug, err := l.callers[0].create(fmt.Sprintf("192.0.%d.%d", round, i), "https://example.org/visited")
		if err != nil || slug == "" {
			t.Fatalf("a link to visit: %q, %v", slug, err)
		}
		visited[i] = slug
		for _, c := range l.callers {
			if _, err := c.follow(slug); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range makers {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				// Each client asks for a fifth more than it may have, from all servers.
				client := fmt.Sprintf("198.%d.%d.%d", round, w, i/(limit*6/5))
				destination := fmt.Sprintf("https://example.org/%d/%d/%d", round, w, i)
				status, slug, err := l.callers[i%len(l.callers)].create(client, destination)
				l.mu.Lock()
				l.answers[status]++
				switch {
				case status == http.StatusCreated:
					l.acknowledged[slug] = destination
					l.made.Add(1)
					if l.byClient[client]++; l.byClient[client] > limit {
						l.wrong = fmt.Errorf("client %s has %d links", client, l.byClient[client])
					}
				case err != nil || status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable:
					l.wrong = fmt.Errorf("a creation was answered with %d, %w", status, err)
				}
				l.mu.Unlock()
			}
		})
	}
	var visits atomic.Int64
	for _, c := range l.callers {
		wg.Go(func() {
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for i := 0; ctx.Err() == nil; i++ {
				<-pace.C
				if _, err := c.follow(visited[i%len(visited)]); err != nil {
					l.mu.Lock()
					l.wrong = fmt.Errorf("a visit: %w", err)
					l.mu.Unlock()
				}
				visits.Add(1)
			}
		})
	}
	return func() error {
		cancel()
		wg.Wait()
		t.Logf("round %d: answers %v, %d visits", round, l.answers, visits.Load())
		return l.wrong
	}
}

// await returns when so many more creations were acknowledged.
func (l *rush) await(t *testing.T, more int64) {
	t.Helper()
	want := l.made.Load() + more
	if err := eventually("more links are made", func() bool { return l.made.Load() >= want }); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		t.Fatalf("%v: %v, %v", err, l.answers, l.wrong)
	}
}
