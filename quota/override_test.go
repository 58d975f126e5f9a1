package quota_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"snip/quota"
)

func TestParseScope(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ text, prefix, says string }{
		{"203.0.113.9", "203.0.113.9/32", ""},
		{"::ffff:203.0.113.9", "203.0.113.9/32", ""},
		{"203.0.113.9/32", "203.0.113.9/32", ""},
		{"203.0.113.0/24", "203.0.113.0/24", ""},
		{"2001:db8:1:2:3::4", "2001:db8:1:2::/64", ""},
		{"2001:db8:1:2::/64", "2001:db8:1:2::/64", ""},
		{"2001:db8:1::/48", "2001:db8:1::/48", ""},
		{"203.0.113.9/24", "", "203.0.113.0/24 or 203.0.113.9 is meant"},
		{"203.0.112.0/23", "", "neither a client"},
		{"203.0.113.8/31", "", "neither a client"},
		{"2001:db8::/32", "", "neither a client"},
		{"2001:db8:1:2::/128", "", "neither a client"},
		{"::ffff:203.0.113.0/120", "", "neither a client"},
		{"0.0.0.0/0", "", "neither a client"},
		{"2002:cb00:7109::1", "203.0.113.9/32", ""},
		{"2002:cb00:7109::/48", "", "neither a client"},
		{"224.0.0.0/24", "", "no client's"},
		{"everybody", "", "neither an address"},
		{"", "", "neither an address"},
	} {
		got, err := quota.NAT64(nil).ParseScope(row.text)
		if row.says != "" {
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%q: %v, %v, want %q", row.text, got, err, row.says)
			}
			continue
		}
		if want := (quota.Scope{Prefix: netip.MustParsePrefix(row.prefix)}); err != nil || got != want {
			t.Errorf("%q is %v, %v, want %v", row.text, got, err, want)
		}
	}
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	someone, neighbour, stranger := client(t, "203.0.113.9"), client(t, "203.0.113.8"), client(t, "198.51.100.1")
	key := quota.ClientOfKey(quota.Key{ID: 7, Limit: 500})
	set := func(limit int64, until time.Time, texts ...string) quota.Overrides {
		o := quota.Overrides{}
		for _, text := range texts {
			scope, err := quota.NAT64(nil).ParseScope(text)
			if err != nil {
				t.Fatal(err)
			}
			o[scope] = quota.Override{Limit: limit, Until: until}
		}
		return o
	}
	never := time.Time{}
	for _, row := range []struct {
		name            string
		overrides       quota.Overrides
		who             quota.Client
		client, network int64
		overridden      bool
		blocked         bool
	}{
		{"none", nil, someone, 50, 250, false, false},
		{"of a client", set(7, never, "203.0.113.9"), someone, 7, 250, true, false},
		{"of another client", set(7, never, "203.0.113.9"), neighbour, 50, 250, false, false},
		{"of its network", set(7, never, "203.0.113.0/24"), someone, 50, 7, true, false},
		{"of another network", set(7, never, "203.0.113.0/24"), stranger, 50, 250, false, false},
		{"above the network's", set(900, never, "203.0.113.9"), someone, 900, 250, true, false},
		{"without a limit", set(quota.Unlimited, never, "203.0.113.9"), someone, quota.Unlimited, 250, true, false},
		{"a client that is blocked", set(0, never, "203.0.113.9"), someone, 0, 250, true, true},
		{"a network that is blocked", set(0, never, "203.0.113.0/24"), someone, 0, 0, true, true},
		{"in its last instant", set(7, now.Add(1), "203.0.113.9"), someone, 7, 250, true, false},
		{"at its end", set(7, now, "203.0.113.9"), someone, 50, 250, false, false},
		{"of addresses, for a key", set(7, never, "203.0.113.9"), key, 500, 0, false, false},
		{"of a key", quota.Overrides{{Key: 7}: {Limit: 900}}, key, 900, 0, true, false},
		{"of another key", quota.Overrides{{Key: 8}: {Limit: 900}}, key, 500, 0, false, false},
		{"a key that is blocked", quota.Overrides{{Key: 7}: {}}, key, 0, 0, true, true},
	} {
		limits, overridden := row.overrides.For(defaults, row.who, now)
		if limits.Client != row.client || limits.Network != row.network || overridden != row.overridden || limits.Blocked != row.blocked {
			t.Errorf("%s: %+v, overridden %t", row.name, limits, overridden)
		}
		// Whoever forgets to ask whether a client is blocked does not admit it.
		charges := limits.Charges(row.who, quota.Secret{}, quota.DayOf(now), 1)
		_, err := quota.Decide(charges, make([]int64, len(charges)))
		if errors.Is(err, quota.ErrExceeded) != row.blocked {
			t.Errorf("%s: a first demand: %v", row.name, err)
		}
	}
}
