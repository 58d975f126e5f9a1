//go:build memstore

package main

import (
	"context"
	"log/slog"

	"snip/shortener/memstore"
)

// openStore returns a store that forgets everything at its end. It is built for
// benchmarks only: whatever the same server does faster over it is the price of
// keeping links.
func openStore(context.Context, location, *slog.Logger) (store, error) {
	return memory{memstore.New()}, nil
}

type memory struct{ *memstore.Store }

func (memory) Close() error { return nil }
