//go:build !memstore

package main

import (
	"log/slog"
	"time"

	"snip/shortener/boltstore"
)

func openStore(path string, log *slog.Logger) (store, error) {
	return boltstore.Open(path, boltstore.Options{Log: log, Now: time.Now})
}
