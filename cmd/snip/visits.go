package main

import (
	"context"
	"log/slog"
	"time"

	"snip/shortener"
)

// visitsEvery is how often visits are stored, and so how much of them is lost with
// a process that is killed.
const visitsEvery = time.Second

// storeVisits stores the visits that have been counted, again and again, until it
// is told to end; then once more.
func storeVisits(service *shortener.Service, log *slog.Logger) (end func()) {
	ending, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(visitsEvery)
		defer tick.Stop()
		losing := false
		for last := false; !last; {
			select {
			case <-tick.C:
			case <-ending:
				last = true
			}
			lost, err := service.StoreVisits(context.Background())
			// Once, and not each second of a disk that is full: the redirects go on.
			if lost > 0 && !losing {
				log.Warn("visits could not be stored and are lost; links lead on", "visits", lost, "err", err)
			}
			losing = lost > 0
		}
	}()
	return func() {
		close(ending)
		<-ended
	}
}
