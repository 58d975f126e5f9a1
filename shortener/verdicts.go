package shortener

import (
	"crypto/sha256"
	"sync"
	"time"
)

// mostVerdicts bounds the verdicts that are remembered; each takes some 100 bytes.
const mostVerdicts = 65_536

// verdicts are remembered: of a host that one of its destinations was found safe, and of a
// destination that it is dangerous. The names are hashed, so that long destinations
// take no more room than short ones.
//
// Each verdict was paid for, so a stranger can add no more of them than the day's
// calls, and it does not matter which one gives way when there is no room.
type verdicts struct {
	mu    sync.Mutex
	until map[[sha256.Size]byte]time.Time
}

func safeHost(host string) [sha256.Size]byte { return sha256.Sum256([]byte("safe " + host)) }

func dangerousAt(destination string) [sha256.Size]byte {
	return sha256.Sum256([]byte("dangerous " + destination))
}

// find returns whether the destination is dangerous, if that is known.
func (v *verdicts) find(host, destination string, now time.Time) (dangerous, known bool) {
	safe, danger := safeHost(host), dangerousAt(destination) // hashed without the lock
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.holds(danger, now) { // first: of one host both may be known
		return true, true
	}
	return false, v.holds(safe, now)
}

func (v *verdicts) holds(name [sha256.Size]byte, now time.Time) bool {
	until, there := v.until[name]
	if there && !now.Before(until) {
		delete(v.until, name)
	}
	return there && now.Before(until)
}

func (v *verdicts) remember(host, destination string, verdict Verdict, now time.Time) {
	if !verdict.Until.After(now) {
		return
	}
	name := safeHost(host)
	if verdict.Dangerous {
		name = dangerousAt(destination)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.until == nil {
		v.until = make(map[[sha256.Size]byte]time.Time)
	}
	for other := range v.until {
		if len(v.until) < mostVerdicts {
			break
		}
		delete(v.until, other)
	}
	v.until[name] = verdict.Until
}
