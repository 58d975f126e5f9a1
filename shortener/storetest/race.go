package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"snip/quota"
	"snip/shortener"
)

// together runs n functions at once, spread over the handles, and returns how
// many returned nil. Any error that is not expected fails the test.
func together(t *testing.T, stores []shortener.Store, n int, expected error, run func(shortener.Store, int) error) int {
	t.Helper()
	var passed atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			switch err := run(stores[i%len(stores)], i); {
			case err == nil:
				passed.Add(1)
			case !errors.Is(err, expected):
				t.Errorf("number %d: got error %v, want %v", i, err, expected)
			}
		})
	}
	close(start)
	wg.Wait()
	return int(passed.Load())
}

func testLastUnit(t *testing.T, stores []shortener.Store) {
	const callers = 51
	for _, c := range []struct {
		level  quota.Level
		policy quota.Policy
		who    func(int) quota.Client // the i-th caller
	}{
		{quota.LevelClient, quota.Policy{Client: 50, Network: 250, Service: 1000}, func(int) quota.Client { return host(1, 1) }},
		{quota.LevelNetwork, quota.Policy{Client: 50, Network: 50, Service: 1000}, func(i int) quota.Client { return host(2, i) }},
		{quota.LevelService, quota.Policy{Client: 50, Network: 50, Service: 150}, func(i int) quota.Client { return host(3+i, 1) }},
	} {
		m := maker{t, stores[0], c.policy}
		prefix := string(c.level)
		for _, slug := range names(prefix+"-before", 49) {
			if err := m.create(c.who(0), noon, slug); err != nil {
				t.Fatal(err)
			}
		}
		slugs := names(prefix, callers)
		passed := together(t, stores, callers, quota.ErrExceeded, func(s shortener.Store, i int) error {
			return maker{t, s, c.policy}.create(c.who(i), noon, slugs[i])
		})
		if passed != 1 {
			t.Errorf("level %s with one unit left: %d of %d passed", c.level, passed, callers)
		}
		m.wantLinks(1, slugs...)
	}
	// 50 links at each level's turn, by three sets of clients.
	m := maker{t, stores[0], policy}
	m.wantUsed(host(1, 1), noon, 150, 50, 50)
}

func testSlugRace(t *testing.T, stores []shortener.Store) {
	passed := together(t, stores, 50, shortener.ErrSlugTaken, func(s shortener.Store, i int) error {
		return maker{t, s, policy}.create(host(i, 1), noon, "wanted")
	})
	if passed != 1 {
		t.Errorf("%d of 50 got the slug", passed)
	}
	if used := (maker{t, stores[0], policy}).used(host(999, 1), noon); used[0] != 1 {
		t.Errorf("the service counter is %d, want 1", used[0])
	}
}

func testSecretRace(t *testing.T, stores []shortener.Store) {
	secrets := make([]quota.Secret, 20)
	together(t, stores, len(secrets), nil, func(s shortener.Store, i int) (err error) {
		secrets[i], err = s.EnsureSecret(t.Context(), "2026-11-29")
		return err
	})
	for _, secret := range secrets {
		if secret != secrets[0] {
			t.Fatal("two secrets for one day")
		}
	}
}

// testLoad lets many clients hammer the store and then adds up: every level's
// counter equals the links that were acknowledged to it, and no limit was passed.
func testLoad(t *testing.T, stores []shortener.Store) {
	const workers, requests, networks, hosts = 8, 250, 12, 3
	m := maker{t, stores[0], quota.Policy{Client: 20, Network: 50, Service: 500, Newcomers: 5}}
	var mu sync.Mutex
	made := map[quota.Client]int64{}
	var slugs []string
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			m := maker{t, stores[w%len(stores)], m.policy}
			for i := range requests {
				who := host(random.IntN(networks), random.IntN(hosts))
				slug := fmt.Sprintf("load-%d-%d", w, i)
				err := m.create(who, noon, slug)
				if err != nil && !errors.Is(err, quota.ErrExceeded) {
					t.Errorf("create: %v", err)
					continue
				}
				mu.Lock()
				if err == nil {
					made[who]++
					slugs = append(slugs, slug)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(slugs) == 0 || len(slugs) > int(m.policy.Service) {
		t.Errorf("%d links for a service limit of %d", len(slugs), m.policy.Service)
	}
	m.wantLinks(len(slugs), slugs...)
	for n := range networks {
		var network int64
		for h := range hosts {
			network += made[host(n, h)]
		}
		if network > m.policy.Network {
			t.Errorf("network %d made %d links", n, network)
		}
		for h := range hosts {
			if client := made[host(n, h)]; client > m.policy.Client {
				t.Errorf("client %d.%d made %d links", n, h, client)
			}
			m.wantUsed(host(n, h), noon, int64(len(slugs)), network, made[host(n, h)])
		}
	}
}
