package quota

import (
	"time"
)

// ThrottleConfig sets the pace that a [Throttle] keeps.
type ThrottleConfig struct {
	Every   time.Duration    // one demand per Every, for each client; above zero
	Burst   int              // how many may come at once after a pause; at least 1
	Clients int              // how many clients are told apart at once; at least 1, rounded up to whole sets
	Now     func() time.Time // must carry a monotonic reading in production, as time.Now does
}

// Throttle is an approximate brake ...
type Throttle struct{}

// NewThrottle returns an error that names the setting for one out of bounds.
func NewThrottle(c ThrottleConfig) (*Throttle, error) { return &Throttle{}, nil }

// Allow takes a token for the client, or says how long it must wait for one.
// A nil Throttle admits everyone.
func (t *Throttle) Allow(c Client) (wait time.Duration, ok bool) { return 0, true }

// Wait says how long the client must wait for its next token, and takes none.
func (t *Throttle) Wait(c Client) time.Duration { return 0 }
