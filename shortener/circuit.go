package shortener

import (
	"sync"
	"time"
)

const (
	// troublesInARow are as many calls as may fail one after another before the
	// service is left alone for a while.
	troublesInARow = 5
	circuitPause   = 30 * time.Second
	longestPause   = time.Hour // that a service may ask for
)

// circuit keeps from asking a service that is in trouble, or wants a pause. After a
// pause, one more trouble begins the next one.
type circuit struct {
	mu       sync.Mutex
	troubles int // in a row
	until    time.Time
}

// openUntil returns when the service may be asked again; the zero time is now.
func (c *circuit) openUntil(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A clock that went back would leave it open for longer than any pause.
	if !now.Before(c.until) || c.until.Sub(now) > longestPause {
		return time.Time{}
	}
	return c.until
}

// ended tells how a call has ended.
func (c *circuit) ended(outcome CheckOutcome, pause time.Duration, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case outcome.troubled():
		c.troubles++
	case outcome != CheckRejected:
		c.troubles = 0
	}
	if c.troubles >= troublesInARow {
		pause = max(pause, circuitPause)
	}
	if until := now.Add(min(pause, longestPause)); outcome.troubled() && pause > 0 && until.After(c.until) {
		c.until = until
	}
}
