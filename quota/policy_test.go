package quota_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"snip/quota"
)

// defaults are the limits that the program starts with when nobody says otherwise.
var defaults = quota.Policy{Client: 50, Network: 250, Service: 1000, Newcomers: 100}

func TestPolicyValidate(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name     string
		policy   quota.Policy
		problems []string // each in a line of its own; none means valid
	}{
		{"the defaults", defaults, nil},
		{"everything off", quota.Policy{}, nil},
		{"client alone", quota.Policy{Client: 50}, nil},
		{"all equal", quota.Policy{Client: 10, Network: 10, Service: 10}, nil},
		{"network + newcomers just fit", quota.Policy{Client: 1, Network: 900, Service: 1000, Newcomers: 100}, nil},
		{"newcomers without the service level", quota.Policy{Client: 50, Network: 250, Newcomers: 100}, nil},
		{"client over network", quota.Policy{Client: 251, Network: 250, Service: 1000},
			[]string{"quota client 251 must not exceed quota network 250"}},
		{"network over service", quota.Policy{Client: 50, Network: 1001, Service: 1000},
			[]string{"quota network 1001 + newcomers 0 must not exceed quota service 1000"}},
		{"network + newcomers over service", quota.Policy{Client: 50, Network: 901, Service: 1000, Newcomers: 100},
			[]string{"quota network 901 + newcomers 100 must not exceed quota service 1000"}},
		{"client + newcomers over service without the network", quota.Policy{Client: 901, Service: 1000, Newcomers: 100},
			[]string{"quota client 901 + newcomers 100 must not exceed quota service 1000"}},
		{"client over service without the network", quota.Policy{Client: 50, Service: 49},
			[]string{"quota client 50 + newcomers 0 must not exceed quota service 49"}},
		{"newcomers over service alone", quota.Policy{Service: 10, Newcomers: 11},
			[]string{"newcomers 11 must not exceed quota service 10"}},
		{"a sum that would overflow", quota.Policy{Network: 1<<63 - 1, Service: 1<<63 - 1, Newcomers: 1<<63 - 1},
			[]string{"must not exceed quota service 9223372036854775807"}},
		{"one negative", quota.Policy{Client: -1, Network: 250, Service: 1000},
			[]string{"quota client: -1 is negative; 0 leaves it out"}},
		{"everything wrong at once", quota.Policy{Client: 300, Network: 250, Service: 100, Newcomers: -5}, []string{
			"quota newcomers: -5 is negative",
			"quota client 300 must not exceed quota network 250",
			"quota network 250 + newcomers -5 must not exceed quota service 100",
		}},
		{"all negative", quota.Policy{Client: -1, Network: -2, Service: -3, Newcomers: -4}, []string{
			"quota client: -1", "quota network: -2", "quota service: -3", "quota newcomers: -4",
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			err := row.policy.Validate()
			if len(row.problems) == 0 {
				if err != nil {
					t.Fatalf("got %v, want none", err)
				}
				return
			}
			if err == nil {
				t.Fatal("got no error")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(row.problems) {
				t.Fatalf("got %d problems, want %d:\n%v", len(lines), len(row.problems), err)
			}
			for i, want := range row.problems {
				if !strings.Contains(lines[i], want) {
					t.Errorf("problem %d is %q, want %q in it", i, lines[i], want)
				}
			}
		})
	}
}

// The arithmetic behind having two layers and these defaults, done anew.
func TestPolicyArithmetic(t *testing.T) {
	t.Parallel()
	if defaults.Client > defaults.Network || defaults.Network+defaults.Newcomers > defaults.Service {
		t.Error("a narrower level promises what the wider one cannot give")
	}
	const day, pace = 24 * time.Hour, 10 * time.Second
	if got := int64(day / pace); got != 8640 || got <= 8*defaults.Service {
		t.Errorf("the pace admits %d a day, want 8640: more than eight budgets", got)
	}
	if got := time.Duration(defaults.Service) * pace; got != 2*time.Hour+46*time.Minute+40*time.Second {
		t.Errorf("one client at the pace empties the day in %v", got)
	}
	if got := (day / time.Duration(defaults.Service)).Truncate(time.Second); got != 86*time.Second {
		t.Errorf("a pace that met the budget would be one per %v, want 86s", got)
	}
	if got := defaults.Service / defaults.Client; got != 20 {
		t.Errorf("%d clients empty the day, want 20", got)
	}
	if got := (defaults.Service - defaults.Newcomers) / defaults.Network; got != 3 {
		t.Errorf("%d whole networks fit before the reserve, want 3", got)
	}
}

func TestPolicyCharges(t *testing.T) {
	t.Parallel()
	who, secret := client(t, "2001:db8:1:2::3"), quota.Secret{1}
	day := quota.Window{Label: "2026-11-29", End: resetAt}
	charge := func(level quota.Level, subject quota.Subject, limit, reserved int64) quota.Charge {
		return quota.Charge{
			Counter:  quota.Counter{Level: level, Subject: subject, Period: day.Label},
			Cost:     2,
			Max:      limit,
			Reserved: reserved,
			ResetAt:  resetAt,
		}
	}
	network := secret.Subject(quota.LevelNetwork, who.Network())
	key := quota.ClientOfKey(quota.Key{ID: 7, Limit: 500})
	rows := []struct {
		name   string
		who    quota.Client
		policy quota.Policy
		want   []quota.Charge
	}{
		{"a key has its own limit and no network", key, defaults, []quota.Charge{
			charge(quota.LevelService, "", 1000, 100),
			charge(quota.LevelClient, key.Creator(secret), 500, 0),
		}},
		{"a key is limited where addresses are not", key, quota.Policy{}, []quota.Charge{
			charge(quota.LevelClient, key.Creator(secret), 500, 0),
		}},
		{"all levels, the widest first", who, defaults, []quota.Charge{
			charge(quota.LevelService, "", 1000, 100),
			charge(quota.LevelNetwork, network, 250, 0),
			charge(quota.LevelClient, who.Creator(secret), 50, 0),
		}},
		{"client alone", who, quota.Policy{Client: 50, Newcomers: 100}, []quota.Charge{
			charge(quota.LevelClient, who.Creator(secret), 50, 0),
		}},
		{"without the network", who, quota.Policy{Client: 50, Service: 1000, Newcomers: 100}, []quota.Charge{
			charge(quota.LevelService, "", 1000, 100),
			charge(quota.LevelClient, who.Creator(secret), 50, 0),
		}},
		{"the service alone: nobody to tell apart, so no reserve", who, quota.Policy{Service: 1000, Newcomers: 100}, []quota.Charge{
			charge(quota.LevelService, "", 1000, 0),
		}},
		{"everything off", who, quota.Policy{}, []quota.Charge{}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(row.want, row.policy.For(row.who).Charges(row.who, secret, day, 2)); diff != "" {
				t.Errorf("charges (-want +got):\n%s", diff)
			}
		})
	}
}
