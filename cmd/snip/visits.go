package main

import (
	"context"
	"log/slog"
	"time"

	"snip/shortener"
)

const (
	// visitsEvery is how often visits are stored, and so how much of them is lost
	// with a process that is killed.
	visitsEvery = time.Second
	// visitsPause follows each small commit of them. With it the visits of 1,000
	// links are stored in a second, at a few % of a core; when more links are
	// visited, each waits longer and is stored with more visits.
	visitsPause = 32 * time.Millisecond
)

// storeVisits stores the visits that have been counted, again and again, until it
// is told to end; then once more.
func storeVisits(writing context.Context, service *shortener.Service, log *slog.Logger) (end func()) {
	losing := false
	return repeat(visitsEvery, func(ctx context.Context) {
		lost, err := service.StoreVisits(writing, func() {
			select {
			case <-time.After(visitsPause):
			case <-ctx.Done():
			}
		})
		// Once, and not each second of a disk that is full: the redirects go on.
		switch {
		case lost == 0 || losing:
		case err != nil:
			log.Warn("visits could not be stored and are lost; links lead on", "visits", lost, "err", err)
		default:
			log.Warn("more links are visited than can be counted; visits are lost, links lead on", "visits", lost)
		}
		losing = lost > 0
	})
}
