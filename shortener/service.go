package shortener

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"snip/quota"
)

// Config holds what a [Service] is made of.
type Config struct {
	Store        Store
	Policy       quota.Policy
	Destinations Destinations
	Blocklist    Blocklist        // beside the operators' own blocks; nil is none
	Reserved     []string         // slugs that name something else, in any case
	Words        []string         // more slugs that nobody may choose, besides login, admin and the like; so are their look-alikes
	Checks       *Checks          // of new destinations, with sound numbers; nil is none
	NAT64        quota.NAT64      // by which operators may name clients; with sound prefixes
	Now          func() time.Time // the wall clock
}

// Service is the use cases. Its methods may be called at once.
type Service struct {
	store        Store
	policy       quota.Policy
	nat64        quota.NAT64
	destinations Destinations
	blocklist    Blocklist
	slugs        slugRules
	visits       *recorder
	checker      *checker // nil where destinations are not checked
	now          func() time.Time

	outcomes outcomes
	recent   recent

	days    dayCounts
	history historyBook

	acting sync.Mutex // held while an operator changes something
	set    atomic.Pointer[operatorSet]
}

// New returns a service. The policy must be valid. It knows nothing of
// what operators have set before [Service.LoadOperatorSet].
func New(c Config) *Service {
	s := &Service{
		store:        c.Store,
		policy:       c.Policy,
		nat64:        c.NAT64,
		destinations: c.Destinations,
		blocklist:    c.Blocklist,
		slugs:        newSlugRules(c.Reserved, c.Words),
		visits:       newRecorder(),
		now:          c.Now,
	}
	if c.Checks != nil {
		s.checker = &checker{Checks: *c.Checks, policy: c.Policy, store: c.Store, now: c.Now}
	}
	s.set.Store(&operatorSet{refused: quota.NewRefusals()})
	return s
}

// destination reads a destination and refuses one whose host is blocked.
func (s *Service) destination(text string) (string, error) {
	destination, err := s.destinations.Parse(text)
	if err == nil {
		err = s.blocklistReady()
	}
	if err == nil && s.blocks(HostOf(destination)) {
		return "", blocked(because("leads_to_a_blocked_host"))
	}
	return destination, err
}

// check refuses destinations that a [Reputation] finds dangerous, with a
// [*BatchError] that names all of them. Its other errors are those of the checker.
func (s *Service) check(ctx context.Context, destinations []string, p payer, key demandKey) error {
	dangerous, err := s.checker.check(ctx, destinations, p, key)
	if err != nil || len(dangerous) == 0 {
		return err
	}
	found := &BatchError{}
	for _, i := range dangerous {
		found.Items = append(found.Items, ItemError{i, blocked(because("leads_to_a_suspicious_page"))})
	}
	return found
}

// refusal makes sure that whatever a store reports ends in a refusal of a kind
// that callers know: unknown means that it could not be counted.
func refusal(err error) error {
	for _, known := range []error{quota.ErrExceeded, ErrSlugTaken, ErrUnavailable, context.Canceled} {
		if errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Allowance is what a client may still make today.
type Allowance struct {
	Usage quota.Usage // at the client level; the zero Level when that level is off
	Open  bool        // whether a creation now would pass every level
}

// Allowance reads the client's allowance and changes nothing.
func (s *Service) Allowance(ctx context.Context, who quota.Client) (Allowance, error) {
	now := s.instant()
	day := quota.DayOf(now)
	var a Allowance
	if err := s.store.Ready(ctx, day.Label); err != nil {
		return a, refusal(err)
	}
	secret, err := s.store.Secret(ctx, day.Label)
	fresh := errors.Is(err, ErrNotFound) // nobody has made a link today
	if err != nil && !fresh {
		return a, refusal(err)
	}
	limits, _ := s.set.Load().overrides.For(s.policy, who, now)
	charges := limits.Charges(who, secret, day, 1)
	used := make([]int64, len(charges))
	if !fresh {
		if used, err = s.used(ctx, charges); err != nil {
			return a, refusal(err)
		}
	}
	_, err = quota.Decide(charges, used)
	if err != nil && !errors.Is(err, quota.ErrExceeded) {
		return a, refusal(err)
	}
	a.Open = err == nil
	for i, c := range charges {
		if c.Counter.Level == quota.LevelClient {
			a.Usage = quota.Usage{Level: quota.LevelClient, Used: used[i], Max: c.Max, ResetAt: c.ResetAt}
		}
	}
	return a, nil
}

// Follow returns the destination of a link. A visit of a link whose visits are limited is
// still to be counted by [Service.Visit], which may find that none is left. The errors are
// [ErrNotFound], [ErrGone], [ErrTakenDown] or the store's.
func (s *Service) Follow(ctx context.Context, slug Slug) (Target, error) {
	target, err := s.target(ctx, slug)
	if err == nil && target.Limited && !target.DirectRedirect {
		_, err = s.Link(ctx, slug)
	}
	if err != nil || !target.Limited {
		s.outcomes.countVisit(err)
	}
	return target, err
}

// Visit counts a visit of a link whose visits are limited, and returns where it leads. It
// counts none of any other link. The errors are those of Follow.
func (s *Service) Visit(ctx context.Context, slug Slug) (Target, error) {
	target, err := s.target(ctx, slug)
	if err == nil && target.Limited {
		target, err = s.store.Visit(ctx, slug)
	}
	if err != nil || target.Limited {
		s.outcomes.countVisit(err)
	}
	return target, err
}

// Look is Follow for programs that only ask, and finds out whether visits are left.
func (s *Service) Look(ctx context.Context, slug Slug) (Target, error) {
	target, err := s.target(ctx, slug)
	if err == nil && target.Limited {
		_, err = s.Link(ctx, slug)
	}
	return target, err
}

// target returns a target that has not ended, but for visits that are used up.
func (s *Service) target(ctx context.Context, slug Slug) (Target, error) {
	target, err := s.store.Follow(ctx, slug)
	if err != nil {
		return Target{}, err
	}
	if target.TakenDown || s.blocks(target.Host) {
		return Target{}, ErrTakenDown
	}
	if target.Ended(s.now()) {
		return Target{}, ErrGone
	}
	return target, nil
}

// Ready reports why creations would fail now, or nil.
func (s *Service) Ready(ctx context.Context) error {
	if err := s.blocklistReady(); err != nil {
		return err
	}
	return s.store.Ready(ctx, quota.DayOf(s.instant()).Label)
}

// MaxVisits bounds the visits that a link may be limited to.
const MaxVisits = 10_000

// parseMaxVisits returns 0 for any number.
func parseMaxVisits(n *int64) (int64, error) {
	if n == nil {
		return 0, nil
	}
	if *n < 1 || *n > MaxVisits {
		return 0, &InvalidError{Field: "max_visits", Kind: ErrInvalidMaxVisits,
			Reason: because("must_be_a_whole_number", "Min", 1, "Max", MaxVisits)}
	}
	return *n, nil
}

// instant is the clock in the precision that every store keeps.
func (s *Service) instant() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// rfc3339 is stricter than time.Parse, which takes hours of one digit, a comma
// before the fraction and offsets of a day.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// parseExpiry reads an instant after now, or the zero time where there is none.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	invalid := func(reason Reason) (time.Time, error) {
		return time.Time{}, &InvalidError{Field: "expires_at", Kind: ErrInvalidExpiry, Reason: reason}
	}
	text = strings.ToUpper(text) // the RFC allows t and z
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || !rfc3339.MatchString(text) {
		return invalid(because("must_be_an_instant_with_an_offset"))
	}
	switch t = t.UTC().Truncate(time.Microsecond); {
	case t.Year() > 9999: // by its offset; no answer could show it, and the link would be there
		return invalid(because("must_lie_before_the_year_10000"))
	case !t.After(now):
		return invalid(because("must_lie_in_the_future"))
	}
	return t, nil
}
