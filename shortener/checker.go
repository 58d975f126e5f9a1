package shortener

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"snip/quota"
)

const (
	// checksAtOnce bounds the calls that one batch makes at once.
	checksAtOnce = 8
	// checksTime bounds the checks of one demand, however many there are, so that
	// its answer comes before the connection is ended.
	checksTime = 20 * time.Second
	// settleSlack is how much longer than the call a reservation lasts: about as long
	// as a write may wait for its turn.
	settleSlack = 10 * time.Second
)

// checker asks a [Reputation] about destinations. Each call is paid for by a
// reservation, which is made before the call and becomes a charge or is given back
// after it, never both. When the process ends in between, it expires and is charged.
type checker struct {
	Checks
	policy quota.Policy
	store  Store
	now    func() time.Time

	flights singleflight.Group // by host
	known   verdicts
	circuit circuit

	mu      sync.Mutex
	waiting map[demandKey]bool

	ended     [len(CheckOutcomes)]atomic.Int64
	cached    atomic.Int64
	unsettled atomic.Int64

	unchecked atomic.Int64
	why       atomic.Pointer[error] // the last of them was unchecked
}

// check returns which of the destinations are dangerous, by their indexes. Each
// distinct one is judged once. The errors are [ErrUnchecked],
// [ErrInProgress] where a demand with the same key waits for its own check,
// [*quota.ExceededError] where the payer may ask no more, the context's, or the
// store's.
func (c *checker) check(ctx context.Context, destinations []string, p payer, key demandKey) ([]int, error) {
	dangerous, unknown := c.lookup(destinations)
	if len(unknown) == 0 {
		return dangerousAmong(destinations, dangerous), nil
	}
	if key.key != "" {
		if !c.enter(key) {
			return nil, ErrInProgress
		}
		defer c.leave(key)
	}
	if err := c.payable(ctx, unknown, p); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checksTime, ErrUnchecked)
	defer cancel()
	var mu sync.Mutex
	group, checking := errgroup.WithContext(ctx)
	group.SetLimit(checksAtOnce)
	for _, destination := range unknown {
		group.Go(func() error {
			found, err := c.judge(checking, destination, p)
			if errors.Is(err, ErrUnchecked) {
				c.leaveUnchecked(1, err)
				if c.AllowOnFailure {
					return nil
				}
			}
			mu.Lock()
			defer mu.Unlock()
			dangerous[destination] = found
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, refusal(err)
	}
	return dangerousAmong(destinations, dangerous), nil
}

// lookup returns what is known of the destinations, and those of which nothing is.
func (c *checker) lookup(destinations []string) (dangerous map[string]bool, unknown []string) {
	dangerous = make(map[string]bool, len(destinations))
	for _, destination := range destinations {
		// Nobody elsewhere can know where a private one leads, and its name tells of the
		// network that it is in.
		if _, seen := dangerous[destination]; seen || isPrivate(destination) {
			continue
		}
		found, known := c.known.find(HostOf(destination), destination, c.now())
		dangerous[destination] = found
		if known {
			c.cached.Add(1)
		} else {
			unknown = append(unknown, destination)
		}
	}
	return dangerous, unknown
}

func dangerousAmong(destinations []string, dangerous map[string]bool) (indexes []int) {
	for i, destination := range destinations {
		if dangerous[destination] {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// enter returns false while another demand with the same key is waiting.
func (c *checker) enter(key demandKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[key] {
		return false
	}
	if c.waiting == nil {
		c.waiting = make(map[demandKey]bool)
	}
	c.waiting[key] = true
	return true
}

func (c *checker) leave(key demandKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, key)
}

// judgement is what came of a call, and whose it was.
type judgement struct {
	destination string
	who         quota.Client
	dangerous   bool
	unpaid      bool // whether that payer had no room for it, which others may have
	err         error
}

// judge returns whether a destination is dangerous. Whoever asks about a host while
// another does waits for that call; it goes on when the one who began it leaves.
func (c *checker) judge(ctx context.Context, destination string, p payer) (bool, error) {
	host := HostOf(destination)
	for ctx.Err() == nil { // or a call would begin that nobody waits for
		flight := c.flights.DoChan(host, func() (any, error) {
			return c.call(context.WithoutCancel(ctx), host, destination, p), nil
		})
		var j judgement
		select {
		case result := <-flight:
			j = result.Val.(judgement)
		case <-ctx.Done():
			continue
		}
		switch {
		case j.unpaid && j.who != p.who: // somebody else may ask no more
		case j.err == nil && j.dangerous && j.destination != destination: // says nothing about this one
		default:
			return j.dangerous, j.err
		}
	}
	return false, context.Cause(ctx)
}

// call makes a call, and pays for it. Its error is one of check's.
func (c *checker) call(ctx context.Context, host, destination string, p payer) (j judgement) {
	j = judgement{destination: destination, who: p.who}
	// It runs beside all requests, where a panic would end the process. What it has
	// reserved expires, and is charged.
	defer func() {
		if value := recover(); value != nil {
			j.err = fmt.Errorf("%w: panic: %v\n%s", ErrUnchecked, value, debug.Stack())
		}
	}()
	now := c.now().UTC()
	// Again: the call of another may have ended just before this one began.
	var known bool
	if j.dangerous, known = c.known.find(host, destination, now); known {
		c.cached.Add(1)
		return j
	}
	if until := c.circuit.openUntil(now); !until.IsZero() {
		j.err = &PausedError{until, "calls have failed"}
		return j
	}
	r := quota.Reservation{
		ID:        "reputation/" + rand.Text(),
		Charges:   c.charges(p, c.policy),
		CreatedAt: now.Truncate(time.Microsecond),
		ExpiresAt: now.Add(c.Timeout + settleSlack).Truncate(time.Microsecond),
		OnExpiry:  quota.Committed,
	}
	if err := c.reserve(ctx, r); err != nil {
		j.unpaid, j.err = errors.Is(err, quota.ErrExceeded), unpaid(err)
		return j
	}
	calling, cancel := context.WithTimeout(ctx, c.Timeout)
	verdict, err := c.Reputation.Check(calling, destination)
	cancel()
	outcome, pause := outcomeOf(verdict, err)
	now = c.now().UTC()
	c.settle(ctx, r.ID, outcome, now.Truncate(time.Microsecond))
	c.circuit.ended(outcome, pause, now)
	if err != nil {
		j.err = fmt.Errorf("%w: %w", ErrUnchecked, err)
		return j
	}
	c.known.remember(host, destination, verdict, now)
	j.dangerous = verdict.Dangerous
	return j
}

// payable refuses a demand that needs more calls than its payer, or the service, has
// left, before the first of them is made. It only reads, and may be wrong by what is
// spent meanwhile. Where links are made unchecked, as many are checked as can be.
func (c *checker) payable(ctx context.Context, unknown []string, p payer) error {
	hosts := make(map[string]bool, len(unknown))
	for _, destination := range unknown {
		hosts[HostOf(destination)] = true
	}
	if len(hosts) < 2 { // reserve looks itself
		return nil
	}
	charges := c.charges(p, c.policy)
	for i := range charges {
		charges[i].Cost = times(charges[i].Cost, int64(len(hosts)))
	}
	err := c.admits(ctx, charges)
	if err == nil {
		return nil
	}
	if err = unpaid(err); errors.Is(err, ErrUnchecked) {
		if c.AllowOnFailure {
			return nil
		}
		c.leaveUnchecked(len(unknown), err)
	}
	return err
}

func (c *checker) leaveUnchecked(n int, why error) {
	c.why.Store(&why) // first, so that whoever has seen the number finds a cause
	c.unchecked.Add(int64(n))
}

// times is a product of two positive numbers, or the greatest number.
func times(a, b int64) int64 {
	if a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// admits decides on charges by reading only.
func (c *checker) admits(ctx context.Context, charges []quota.Charge) error {
	used, err := taken(ctx, c.store, charges)
	if err == nil {
		_, err = quota.Decide(charges, used)
	}
	return err
}

// reserve refuses by reading only, so that refusals do not wait behind creations.
// Only the store's own transaction admits.
func (c *checker) reserve(ctx context.Context, r quota.Reservation) error {
	if err := c.admits(ctx, r.Charges); err != nil {
		return err
	}
	_, _, err := c.store.Reserve(ctx, r)
	return err
}

// unpaid says what follows when a call cannot be paid for: a payer at its own limit
// is refused, and where the service's money is used up nobody can be asked, which is
// no limit of the payer's.
func unpaid(err error) error {
	exceeded, ok := errors.AsType[*quota.ExceededError](err)
	if ok && (exceeded.Usage.Level == LevelCheckBudget || exceeded.Usage.Level == LevelCheckCalls) {
		return &PausedError{exceeded.Usage.ResetAt, exceeded.Error()}
	}
	return refusal(err)
}

// outcomeOf returns how a call has ended, and for how long the service is not to be
// asked. An error that does not say so may have cost money.
func outcomeOf(v Verdict, err error) (CheckOutcome, time.Duration) {
	failed, ok := errors.AsType[*CheckError](err)
	switch {
	case ok:
		return failed.Outcome, failed.Pause
	case err != nil:
		return CheckUnanswered, 0
	case v.Dangerous:
		return CheckDangerous, 0
	}
	return CheckSafe, 0
}

// settle pays for a call or not. A store that cannot do it now finds the reservation
// expired later, and charges for it.
func (c *checker) settle(ctx context.Context, id string, outcome CheckOutcome, now time.Time) {
	var err error
	if outcome.Charged() {
		_, err = c.store.Commit(ctx, id, nil, now)
	} else {
		_, err = c.store.Release(ctx, id, now)
	}
	if err != nil {
		c.unsettled.Add(1)
	}
	for i, o := range CheckOutcomes {
		if o == outcome {
			c.ended[i].Add(1)
		}
	}
}
