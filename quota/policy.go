package quota

import (
	"errors"
	"fmt"
)

// Policy holds the limits of each level, in units per window. Zero leaves a
// level out.
type Policy struct {
	Client    int64
	Network   int64
	Service   int64
	Newcomers int64 // the last part of Service, open to newcomers only; see Decide

	DryRun map[Level]bool // levels that count and refuse nothing; see [Charge]

	Blocked bool // whether an override admits nothing at all
}

// Validate reports every problem of the policy at once: each level must fit into
// the next wider one that is on, or the narrower number would promise what the
// wider cannot give.
func (p Policy) Validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int64
	}{{"client", p.Client}, {"network", p.Network}, {"service", p.Service}, {"newcomers", p.Newcomers}} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("quota %s: %d is negative; 0 leaves it out", f.name, f.value))
		}
	}
	if p.Client > 0 && p.Network > 0 && p.Client > p.Network {
		errs = append(errs, fmt.Errorf("quota client %d must not exceed quota network %d", p.Client, p.Network))
	}
	if p.Service > 0 {
		widest, name := p.Network, "network"
		if widest == 0 {
			widest, name = p.Client, "client"
		}
		// The sum is compared by subtraction, which cannot overflow.
		if widest > p.Service-p.Newcomers {
			errs = append(errs, fmt.Errorf("quota %s %d + newcomers %d must not exceed quota service %d",
				name, widest, p.Newcomers, p.Service))
		}
	}
	return errors.Join(errs...)
}

// For returns the limits as they are for who: a key has its own in place of a
// client's, and is in no network.
func (p Policy) For(who Client) Policy {
	if key := who.Key(); key.ID != 0 {
		p.Client, p.Network = key.Limit, 0
	}
	return p
}

// Charges turns the limits of who, from [Policy.For] or [Overrides.For], into the
// charges for a demand of cost units within w, the widest level first. The secret
// is that of the UTC day.
func (p Policy) Charges(who Client, secret Secret, w Window, cost int64) []Charge {
	charges := make([]Charge, 0, 3)
	add := func(level Level, subject Subject, limit, reserved int64) {
		charges = append(charges, Charge{
			Counter:  Counter{Level: level, Subject: subject, Period: w.Label},
			Cost:     cost,
			Max:      limit,
			Reserved: reserved,
			DryRun:   p.DryRun[level],
			ResetAt:  w.End,
		})
	}
	if p.Service > 0 {
		reserved := p.Newcomers
		if p.Network == 0 && p.Client == 0 {
			reserved = 0 // nobody could be told apart as a newcomer
		}
		add(LevelService, "", p.Service, reserved)
	}
	if p.Network > 0 && who.Key().ID == 0 { // a key is in none
		add(LevelNetwork, secret.Subject(LevelNetwork, who.Network()), p.Network, 0)
	}
	if p.Client > 0 || p.Blocked { // zero leaves a level out, but for who is blocked
		add(LevelClient, who.Creator(secret), p.Client, 0)
	}
	return charges
}
