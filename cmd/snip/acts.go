package main

import (
	"context"
	"log/slog"
	"time"

	"snip/shortener"
)

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
