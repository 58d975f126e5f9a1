package pgstore

import (
	"context"
	"testing"

	"snip/quota/pgquota/pgtest"
	"snip/shortener"
	"snip/shortener/storetest"
)

// open returns three programs' stores on one database.
func open(t testing.TB) []shortener.Store {
	url := pgtest.Database(t)
	first := &restarter{openAt(t, url, Options{}), url}
	t.Cleanup(func() { _ = first.Close() })
	return []shortener.Store{first, openClosing(t, url), openClosing(t, url)}
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
	url string
}

func (r *restarter) Restart() error {
	err := r.Close()
	if err == nil {
		r.Store, err = Open(context.Background(), r.url, Options{})
	}
	return err
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open)
}

func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, open) }
