package memstore_test

import (
	"testing"

	"snip/shortener"
	"snip/shortener/memstore"
	"snip/shortener/storetest"
)

func open(testing.TB) []shortener.Store {
	s := memstore.New()
	return []shortener.Store{s, s}
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open)
}

func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, open) }
