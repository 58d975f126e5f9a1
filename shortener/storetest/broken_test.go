package storetest

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/memstore"
)

// outside compares the counters with their limits outside the lock under which
// it counts, as a read beside the transaction would.
type outside struct{ *memstore.Store }

func (s outside) Create(ctx context.Context, c shortener.Creation) (err error) {
	if c.Charges, err = s.decide(ctx, c.Charges); err != nil {
		return err
	}
	return s.Store.Create(ctx, c)
}

func (s outside) Reserve(ctx context.Context, r quota.Reservation) (_ quota.Reservation, _ bool, err error) {
	if r.Charges, err = s.decide(ctx, r.Charges); err != nil {
		return r, false, err
	}
	return s.Store.Reserve(ctx, r)
}

// decide returns charges that are not compared any more.
func (s outside) decide(ctx context.Context, charges []quota.Charge) ([]quota.Charge, error) {
	counters := make([]quota.Counter, len(charges))
	for i, charge := range charges {
		counters[i] = charge.Counter
	}
	counts, err := s.Counts(ctx, counters)
	if err != nil {
		return nil, err
	}
	if _, err := quota.Decide(charges, quota.Taken(counts)); err != nil {
		return nil, err
	}
	runtime.Gosched()
	unlimited := make([]quota.Charge, len(charges))
	for i, charge := range charges {
		charge.Max, charge.Reserved = math.MaxInt64, 0
		unlimited[i] = charge
	}
	return unlimited, nil
}

// forgetful says of what is committed that it was released, when asked to do that
// after all.
type forgetful struct{ *memstore.Store }

func (s forgetful) Release(ctx context.Context, id string, at time.Time) (quota.Reservation, error) {
	r, err := s.Store.Release(ctx, id, at)
	r.State = quota.Released
	return r, err
}

// early answers before it has stored, which it does when the next one comes.
type early struct {
	*memstore.Store
	mu   *sync.Mutex
	late *shortener.Creation
}

func (s early) Create(ctx context.Context, c shortener.Creation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, *s.late = *s.late, c
	if len(c.Links) > 0 {
		_ = s.Store.Create(ctx, c)
	}
	return nil
}

// leaky stores a creation that it says was withdrawn.
type leaky struct{ *memstore.Store }

func (s leaky) Create(ctx context.Context, c shortener.Creation) error {
	err := s.Store.Create(context.WithoutCancel(ctx), c)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// halved counts and stores in two steps, between which others look.
type halved struct{ *memstore.Store }

func (s halved) Create(ctx context.Context, c shortener.Creation) error {
	links := c
	links.Charges = nil
	if err := s.Store.Create(ctx, links); err != nil {
		return err
	}
	runtime.Gosched()
	c.Links = nil
	return s.Store.Create(ctx, c)
}

// stale remembers for ever that a slug was free.
type stale struct {
	*memstore.Store
	free *sync.Map
}

func (s stale) Get(ctx context.Context, slug shortener.Slug) (shortener.Link, error) {
	if err, ok := s.free.Load(slug); ok {
		return shortener.Link{}, err.(error)
	}
	link, err := s.Store.Get(ctx, slug)
	if err != nil {
		s.free.Store(slug, err)
	}
	return link, err
}

// The check of histories finds the faults that it is there for.
func TestBrokenStores(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]shortener.Store{
		"limits are compared outside the lock": outside{memstore.New()},
		"the answer comes before the link":     early{memstore.New(), new(sync.Mutex), new(shortener.Creation)},
		"a withdrawn creation is stored":       leaky{memstore.New()},
		"link and count are two steps":         halved{memstore.New()},
		"a slug that was free stays free":      stale{memstore.New(), new(sync.Map)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 1000 // histories; some of these faults need luck to show
			for n := range most {
				if err := linear(t, []shortener.Store{broken}, noon.AddDate(0, 0, n)); err != nil {
					t.Logf("found in history %d", n+1)
					return
				}
			}
			t.Errorf("%d histories did not show it", most)
		})
	}
}

func TestBrokenReservations(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]shortener.Store{
		"limits are compared outside the lock": outside{memstore.New()},
		"a release comes after a commit":       forgetful{memstore.New()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 1000 // histories
			for n := range most {
				if err := linearHolds([]shortener.Store{broken}, n); err != nil {
					t.Logf("found in history %d", n+1)
					return
				}
			}
			t.Errorf("%d histories did not show it", most)
		})
	}
}
