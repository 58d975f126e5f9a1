package main

import (
	"context"
	"log/slog"
	"time"

	"snip/shortener"
	"snip/shortener/pgstore"
)

// share is what a server knows of others that have the same store.
type share struct {
	leads func() bool // whether what only one of them does is its own
	end   func()
}

// shareStore returns how the store is shared. A file is not.
func shareStore(c config, store store, service *shortener.Service, log *slog.Logger) (share, error) {
	if _, shared := store.(*pgstore.Store); !shared {
		return share{leads: func() bool { return true }, end: func() {}}, nil
	}
	candidate, err := pgstore.Stand(c.store.database, log)
	if err != nil {
		return share{}, err
	}
	stopRenewing := renewOperatorSet(service, log)
	return share{leads: candidate.Leads, end: func() {
		stopRenewing()
		candidate.Close()
	}}, nil
}

const (
	// actsEvery is how often a server looks for what operators did through others that
	// share its database. It is to be in force there within a second.
	actsEvery = 400 * time.Millisecond
	// actsPatience bounds one look.
	actsPatience = 2 * time.Second
)

// renewOperatorSet takes in what operators did through other servers, until it is
// told to end. It asks and is not told: an answer that one index gives costs less
// than the doubt whether a word was missed.
func renewOperatorSet(service *shortener.Service, log *slog.Logger) (end func()) {
	failing := false
	return repeat(actsEvery, func(ctx context.Context) {
		if ctx.Err() != nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, actsPatience)
		defer cancel()
		err := service.RenewOperatorSet(ctx)
		switch {
		case err != nil && !failing:
			log.Warn("what operators do through other servers is not seen; what was read last is in force", "err", err)
		case err == nil && failing:
			log.Info("what operators do through other servers is seen again")
		}
		failing = err != nil
	})
}
