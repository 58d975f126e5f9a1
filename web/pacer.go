package web

import (
	"context"
	"errors"
	"time"
)

// Pages and pictures cost up to 250 redirects each, and anybody may ask for them. One is made
// at a time, and what comes next waits: so they take at most a quarter of one processor, and
// a client that asks again and again waits most of its time.
const (
	maxWaiting = 64
	// minRest and maxRest bound the pause after each, which is three times what it took. The
	// upper bound is for a machine that stood still meanwhile.
	minRest = time.Millisecond
	maxRest = 20 * time.Millisecond
)

// busyPause is the Retry-After of an answer that found too many waiting.
const busyPause = time.Second

var errBusy = errors.New("too many pages and pictures are waiting to be made")

// pacer lets one piece of work run at a time, with a pause after it. It is safe for
// concurrent use.
type pacer struct {
	running chan struct{} // holds one
	waiting chan struct{} // holds those that wait, and the one that runs
}

func newPacer() *pacer {
	return &pacer{running: make(chan struct{}, 1), waiting: make(chan struct{}, maxWaiting+1)}
}

// do runs work, which must not wait for a store or a client. It returns [errBusy] where too
// many wait, or the context's error where the client has left.
func (p *pacer) do(ctx context.Context, work func() error) error {
	select {
	case p.waiting <- struct{}{}:
	default:
		return errBusy
	}
	select {
	case p.running <- struct{}{}:
	case <-ctx.Done():
		<-p.waiting
		return ctx.Err()
	}
	start := time.Now() // real time: it is about the processor
	defer func() {
		time.AfterFunc(min(max(3*time.Since(start), minRest), maxRest), func() {
			<-p.running
			<-p.waiting
		})
	}()
	return work()
}
