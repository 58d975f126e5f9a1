package main

import (
	"context"
	"log/slog"
	"time"

	"snip/shortener"
)

// historyEvery is how often days are written down, and so how much of what was
// refused is missing from their records after a crash. What was made is in the
// store's counters.
const historyEvery = time.Minute

// keepHistory writes the day down, again and again, until it is told to end; then
// once more.
func keepHistory(writing context.Context, service *shortener.Service, log *slog.Logger) (end func()) {
	return repeat(historyEvery, func(context.Context) {
		if err := service.KeepHistory(writing); err != nil {
			log.Warn("the day could not be written down", "err", err)
		}
	})
}

// repeat does work in every interval, until it is told to end; then once more.
func repeat(interval time.Duration, work func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for last := false; !last; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				last = true
			}
			work(ctx)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
