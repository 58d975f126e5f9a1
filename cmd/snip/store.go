//go:build !memstore

package main

import (
	"context"
	"log/slog"
	"time"

	"snip/shortener/boltstore"
)

func openStore(ctx context.Context, at location, log *slog.Logger) (store, error) {
	if at.database != "" {
		return openDatabase(ctx, at, log)
	}
	return boltstore.Open(at.file, boltstore.Options{Log: log, Now: time.Now})
}
