package boltstore

import (
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"snip/shortener"
	"snip/shortener/storetest"
)

func open(t testing.TB) []shortener.Store {
	r := &restarter{openAt(t, filepath.Join(t.TempDir(), "snip.db"), Options{})}
	t.Cleanup(func() { _ = r.Close() }) // before the file is checked
	return []shortener.Store{r, r}
}

// restarter implements [storetest.Restarter].
type restarter struct{ *Store }

func (r *restarter) Restart() error {
	err := r.Close()
	if err == nil {
		r.Store, err = Open(r.path, Options{})
	}
	return err
}

// openAt opens a store whose file is checked when the test ends.
func openAt(t testing.TB, path string, o Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTimeout})
		if err != nil {
			t.Fatalf("open after closing: %v", err)
		}
		defer db.Close()
		if err := db.View(check); err != nil {
			t.Errorf("bbolt's own check: %v", err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open)
}

func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, open) }
