package shortener

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"snip/quota"
)

// Reputation is a service elsewhere that judges where a link leads, for money.
type Reputation interface {
	// Check asks for a verdict on a destination. It sends one request at most, follows
	// no redirect and tries nothing again, because each request may cost money; it
	// ends when ctx does. Its error is a [*CheckError].
	Check(ctx context.Context, destination string) (Verdict, error)
}

// Verdict is what is known of a destination.
type Verdict struct {
	Dangerous bool
	Until     time.Time // from when on it is to be asked for again
}

// CheckOutcome is how a call to a [Reputation] has ended.
type CheckOutcome string

// The outcomes. Those that may have cost money are charged for.
const (
	CheckSafe       CheckOutcome = "safe"
	CheckDangerous  CheckOutcome = "dangerous"
	CheckUnreadable CheckOutcome = "unreadable" // a whole answer that makes no sense
	CheckUnanswered CheckOutcome = "unanswered" // sent, and no whole answer: nobody knows what was done
	CheckRejected   CheckOutcome = "rejected"   // the service would not do it
	CheckThrottled  CheckOutcome = "throttled"  // the service wants a pause
	CheckFailed     CheckOutcome = "failed"     // the service could not do it
	CheckUnsent     CheckOutcome = "unsent"     // no connection was made
)

// CheckOutcomes are all of them.
var CheckOutcomes = [...]CheckOutcome{
	CheckSafe, CheckDangerous, CheckUnreadable, CheckUnanswered, CheckRejected, CheckThrottled, CheckFailed, CheckUnsent,
}

// Charged reports whether a call with that outcome may have cost money. What is not
// known to be free does.
func (o CheckOutcome) Charged() bool {
	switch o {
	case CheckRejected, CheckThrottled, CheckFailed, CheckUnsent:
		return false
	}
	return true
}

// troubled reports whether the outcome tells of trouble with the service. A
// rejection may be due to the destination, which a stranger chose, and must not
// keep others from asking.
func (o CheckOutcome) troubled() bool {
	return o != CheckSafe && o != CheckDangerous && o != CheckRejected
}

// CheckError says why there is no verdict.
type CheckError struct {
	Outcome CheckOutcome
	Pause   time.Duration // how long the service is not to be asked; 0 where it did not say
	Err     error
}

func (e *CheckError) Error() string { return fmt.Sprintf("%s: %v", e.Outcome, e.Err) }

// Unwrap returns the cause.
func (e *CheckError) Unwrap() error { return e.Err }

// ErrUnchecked means that a destination could not be checked, so no link was made
// to lead there. It is a kind of [ErrUnavailable].
var ErrUnchecked = fmt.Errorf("%w: a destination could not be checked", ErrUnavailable)

// PausedError is an [ErrUnchecked] that lasts: nobody is asked before an instant.
type PausedError struct {
	Until  time.Time
	reason string
}

func (e *PausedError) Error() string {
	return fmt.Sprintf("%s: %s, so nobody is asked before %s", ErrUnchecked, e.reason, e.Until.Format(time.RFC3339))
}

// Unwrap returns [ErrUnchecked].
func (e *PausedError) Unwrap() error { return ErrUnchecked }

// The levels at which checks are paid for, the widest first.
const (
	LevelCheckBudget  quota.Level = "reputation-budget"  // the service's money, in micro-units
	LevelCheckCalls   quota.Level = "reputation-calls"   // the service's calls
	LevelCheckNetwork quota.Level = "reputation-network" // a network's calls
	LevelCheckClient  quota.Level = "reputation-client"  // a client's calls
)

// Checks says how new destinations are checked, and for how much. Money is in
// micro-units: millionths of whatever unit the service sends its bills in.
type Checks struct {
	Reputation     Reputation
	AllowOnFailure bool          // whether links are made when nobody can be asked
	Timeout        time.Duration // of a call
	Price          int64         // of a call, in micro-units; 0 is free
	Budget         int64         // micro-units a UTC day
	Calls          int64         // of the service, a UTC day
	NetworkCalls   int64         // of each network, a UTC day
	ClientCalls    int64         // of each client, a UTC day
	KeysOnly       bool          // whether nobody without an API key makes links; keys are in no network
}

// Validate reports every problem of the numbers at once.
func (c Checks) Validate() error {
	var errs []error
	if c.Price > c.Budget {
		errs = append(errs, fmt.Errorf("a call at %d micro-units does not fit into a day's budget of %d", c.Price, c.Budget))
	}
	if c.ClientCalls > c.NetworkCalls {
		errs = append(errs, fmt.Errorf("a client's %d calls must not exceed a network's %d", c.ClientCalls, c.NetworkCalls))
	}
	if c.NetworkCalls > c.Calls {
		errs = append(errs, fmt.Errorf("a network's %d calls must not exceed the service's %d", c.NetworkCalls, c.Calls))
	}
	return errors.Join(errs...)
}

// DayCalls is how many calls a UTC day has room for.
func (c Checks) DayCalls() int64 {
	if c.Price == 0 {
		return c.Calls
	}
	return min(c.Calls, c.Budget/c.Price)
}

// Newcomers is the last part of DayCalls, a tenth, which is open to those alone whose
// network has had no call that day: a few networks cannot use up everybody's. Where
// all have keys there is none, or the last of the money could hardly be spent.
func (c Checks) Newcomers() int64 {
	if c.KeysOnly {
		return 0
	}
	return c.DayCalls() / 10
}

// DayAtMost is what a UTC day can cost, in micro-units.
func (c Checks) DayAtMost() int64 { return c.DayCalls() * c.Price } // no more than the budget, unless both are nothing

// payer is who pays for checks, and on which day.
type payer struct {
	who    quota.Client
	day    quota.Window
	secret quota.Secret
	limits quota.Policy // of links, as an operator may have raised them
}

// charges are those of a call. Whoever was granted more links than others may have
// as many calls; a key is in no network.
func (c Checks) charges(p payer, policy quota.Policy) []quota.Charge {
	var charges []quota.Charge
	add := func(level quota.Level, subject quota.Subject, cost, limit, reserved int64) {
		charges = append(charges, quota.Charge{
			Counter: quota.Counter{Level: level, Subject: subject, Period: p.day.Label}, Cost: cost, Max: limit, Reserved: reserved, ResetAt: p.day.End,
		})
	}
	granted := func(calls, links, usual int64) int64 {
		if links > usual {
			return max(calls, links)
		}
		return calls
	}
	if c.Price > 0 {
		add(LevelCheckBudget, "", c.Price, c.Budget, 0)
	}
	add(LevelCheckCalls, "", 1, c.DayCalls(), c.Newcomers())
	if p.who.Key().ID == 0 {
		add(LevelCheckNetwork, p.secret.Subject(quota.LevelNetwork, p.who.Network()), 1, granted(c.NetworkCalls, p.limits.Network, policy.Network), 0)
	}
	add(LevelCheckClient, p.who.Creator(p.secret), 1, granted(c.ClientCalls, p.limits.Client, policy.Client), 0)
	return charges
}

// Units writes micro-units as a number of units, such as "0.0005".
func Units(micros int64) string {
	text := fmt.Sprintf("%d.%06d", micros/1_000_000, micros%1_000_000)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
