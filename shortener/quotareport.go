package shortener

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"snip/quota"
)

// QuotaReport is what an operator sees of one client or network.
type QuotaReport struct {
	Target  string
	Usages  []quota.Usage // the widest level first
	Refuses quota.Level   // the level that would refuse the next link; empty where none would
	Blocked bool          // by an override
	OpensAt time.Time     // when the next link can be made for want of quota; zero where it can be now
}

// QuotaOf reports on an address, a network, or "key" and a key's name. The errors
// are [ErrInvalidOverride], [ErrNoEntry], or wrap [ErrUnavailable].
func (s *Service) QuotaOf(ctx context.Context, target string) (QuotaReport, error) {
	who, network, err := s.clientOf(ctx, target)
	if err != nil {
		return QuotaReport{}, err
	}
	now := s.instant()
	day := quota.DayOf(now)
	limits, _ := s.set.Load().overrides.For(s.policy, who, now)
	if network {
		limits.Client = 0
	}
	secret, err := s.store.Secret(ctx, day.Label)
	fresh := errors.Is(err, ErrNotFound) // nobody has made a link today
	if err != nil && !fresh {
		return QuotaReport{}, refusalOf(err)
	}
	charges := limits.Charges(who, secret, day, 1)
	used := make([]int64, len(charges))
	if !fresh {
		if used, err = s.used(ctx, charges); err != nil {
			return QuotaReport{}, refusalOf(err)
		}
	}
	report := QuotaReport{Target: target, Blocked: limits.Blocked}
	for i, c := range charges {
		report.Usages = append(report.Usages, quota.Usage{Level: c.Counter.Level, Used: used[i], Max: c.Max, ResetAt: c.ResetAt})
	}
	var exceeded *quota.ExceededError
	if _, err := quota.Decide(charges, used); errors.As(err, &exceeded) {
		report.Refuses, report.OpensAt = exceeded.Usage.Level, exceeded.Usage.ResetAt
	} else if err != nil {
		return QuotaReport{}, refusalOf(err)
	}
	return report, nil
}

// clientOf returns the client that a target is, or any client of a network.
func (s *Service) clientOf(ctx context.Context, target string) (who quota.Client, network bool, err error) {
	keys, err := s.Keys(ctx)
	if err != nil {
		return quota.Client{}, false, err
	}
	if name, ok := strings.CutPrefix(target, keyTarget); ok {
		for _, key := range keys {
			if key.Name == name {
				return key.Client(), false, nil
			}
		}
		return quota.Client{}, false, fmt.Errorf("key %q %w", name, ErrNoEntry)
	}
	scope, err := s.nat64.ParseScope(target)
	if err != nil {
		return quota.Client{}, false, fmt.Errorf("%w: %w", ErrInvalidOverride, err)
	}
	who = quota.ClientOf(scope.Prefix.Addr())
	return who, scope.Prefix != netip.MustParsePrefix(who.String()), nil
}

// Budget returns what is used of the service's day; the zero Level when that level
// is off. The error is the store's.
func (s *Service) Budget(ctx context.Context) (quota.Usage, error) {
	return s.BudgetOf(ctx, quota.DayOf(s.instant()))
}

// BudgetOf is Budget of another day, whose counters are there for a day after it.
func (s *Service) BudgetOf(ctx context.Context, day quota.Window) (quota.Usage, error) {
	if s.policy.Service == 0 {
		return quota.Usage{}, nil
	}
	counts, err := s.store.Counts(ctx, []quota.Counter{{Level: quota.LevelService, Period: day.Label}})
	if err != nil {
		return quota.Usage{}, refusalOf(err)
	}
	return quota.Usage{Level: quota.LevelService, Used: counts[0].Taken(), Max: s.policy.Service, ResetAt: day.End}, nil
}

// Count is what one client or network has used of a day.
type Count struct {
	Subject quota.Subject
	Used    int64
}

// BusiestFirst puts counts in the order of what was used, the most first, and of
// the same number in that of their subjects.
func BusiestFirst(a, b Count) int {
	return cmp.Or(cmp.Compare(b.Used, a.Used), cmp.Compare(a.Subject, b.Subject))
}

// Busiest returns up to n clients or networks that have made most links today. Who
// they are, nobody can read from them.
func (s *Service) Busiest(ctx context.Context, level quota.Level, n int) ([]Count, error) {
	counts, err := s.store.Busiest(ctx, quota.DayOf(s.instant()).Label, level, n)
	return counts, refusalOf(err)
}

// StoreHealth says how the store is.
func (s *Service) StoreHealth() Health { return s.store.Health() }

// Set returns how many keys, overrides and blocks operators have set.
func (s *Service) Set() (keys, overrides, blocks int) {
	set := s.set.Load()
	return len(set.keys), len(set.overrides), len(set.blocked)
}

// Limits returns the limits of a client as they are now.
func (s *Service) Limits(who quota.Client) quota.Policy {
	limits, _ := s.set.Load().overrides.For(s.policy, who, s.now())
	return limits
}
