package quota

import (
	"fmt"
	"math"
	"net/netip"
	"time"
)

// Unlimited is a limit that no counter reaches. What it leaves open is counted
// all the same.
const Unlimited = math.MaxInt64

// Override is what an operator has set for one client, network or key in place of
// a policy's limit.
type Override struct {
	Limit int64     // units per window; 0 admits nothing
	Until time.Time // when it ends; the zero time is never
}

// holds reports whether the override is in force.
func (o Override) holds(now time.Time) bool { return o.Until.IsZero() || now.Before(o.Until) }

// Scope is what an override is about: one client, network or key.
type Scope struct {
	Prefix netip.Prefix // of a client or a network
	Key    KeyID        // or this one
}

// ParseScope reads an address, or a prefix of the size of a client or a network.
// What stands for more or less than one of them is refused: nothing is counted by
// it.
func (n NAT64) ParseScope(text string) (Scope, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		client := n.ClientOf(addr)
		if client.Nobody() {
			return Scope{}, errNobody(text)
		}
		return Scope{Prefix: client.prefix}, nil
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return Scope{}, fmt.Errorf("%q is neither an address nor a prefix such as 203.0.113.0/24", text)
	case p != p.Masked():
		return Scope{}, fmt.Errorf("%q has bits beyond its length; %s or %s is meant", text, p.Masked(), p.Addr())
	}
	client := n.ClientOf(p.Addr())
	switch {
	case p != client.prefix && p != client.Network():
		return Scope{}, fmt.Errorf("%q is neither a client (an IPv4 address, an IPv6 /%d) nor a network (an IPv4 /%d, an IPv6 /%d)",
			text, clientBits6, networkBits4, networkBits6)
	case client.Nobody():
		return Scope{}, errNobody(text)
	}
	return Scope{Prefix: p}, nil
}

func errNobody(text string) error {
	return fmt.Errorf("%q is no client's: it is unspecified, multicast, reserved or broadcast", text)
}

// Overrides are the overrides by what they are about. They must not change once
// they are used; nil is none.
type Overrides map[Scope]Override

// For returns the limits as they are for who at the instant now, and whether an
// override has set any of them.
func (o Overrides) For(p Policy, who Client, now time.Time) (limits Policy, overridden bool) {
	limits = p.For(who)
	if len(o) == 0 {
		return limits, false
	}
	set := func(limit *int64, s Scope) {
		if found, ok := o[s]; ok && found.holds(now) {
			*limit, overridden = found.Limit, true
			limits.Blocked = limits.Blocked || found.Limit == 0
		}
	}
	if key := who.Key(); key.ID != 0 {
		set(&limits.Client, Scope{Key: key.ID})
	} else {
		set(&limits.Client, Scope{Prefix: who.prefix})
		set(&limits.Network, Scope{Prefix: who.Network()})
	}
	if limits.Blocked {
		limits.Client = 0
	}
	return limits, overridden
}
