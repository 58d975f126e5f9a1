package pgstore

import (
	"context"
	"testing"

	"snip/quota/pgquota/pgtest"
	"snip/shortener"
	"snip/shortener/storetest"
)

// three returns three programs' stores on one database. They keep no links at hand,
// since what one has changed the others would see within a second, not at once.
func three(t testing.TB) []shortener.Store {
	url := pgtest.Database(t)
	t.Cleanup(func() { wantNoDeadlocks(t, url) })
	stores := make([]shortener.Store, 3)
	for i := range stores {
		stores[i] = openRestarter(t, url, Options{uncached: true})
	}
	return stores
}

// one returns the store of a single program, which does keep them.
func one(t testing.TB) []shortener.Store {
	s := openRestarter(t, pgtest.Database(t), Options{})
	return []shortener.Store{s, s}
}

func openRestarter(t testing.TB, url string, o Options) *restarter {
	t.Helper()
	r := &restarter{openAt(t, url, o), url, o}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// openClosing returns a store that is closed when the test ends.
func openClosing(t testing.TB, url string) *Store {
	t.Helper()
	s := openAt(t, url, Options{})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openAt(t testing.TB, url string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// restarter implements [storetest.Restarter].
type restarter struct {
	*Store
	url     string
	options Options
}

func (r *restarter) Restart() error {
	err := r.Close()
	if err == nil {
		r.Store, err = Open(context.Background(), r.url, r.options)
	}
	return err
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, three)
}

func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, one) }
