package quota_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"snip/quota"
)

var resetAt = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// charges are those of the default limits for a demand of cost units.
func charges(cost int64) []quota.Charge {
	return []quota.Charge{
		charge(quota.LevelService, cost, 1000, 100),
		charge(quota.LevelNetwork, cost, 250, 0),
		charge(quota.LevelClient, cost, 50, 0),
	}
}

func charge(level quota.Level, cost, limit, reserved int64) quota.Charge {
	return quota.Charge{
		Counter:  quota.Counter{Level: level, Subject: "someone", Period: "2026-11-29"},
		Cost:     cost,
		Max:      limit,
		Reserved: reserved,
		ResetAt:  resetAt,
	}
}

// counts are what the service, the network and the client have used.
func counts(used ...int64) []int64 { return used }

const admitted = quota.Level("") // no level refuses

func TestDecide(t *testing.T) {
	t.Parallel()
	const service, network, client = quota.LevelService, quota.LevelNetwork, quota.LevelClient
	zeroClient := append(charges(1)[:2:2], charge(client, 1, 0, 0))
	rows := []struct {
		name    string
		charges []quota.Charge
		used    []int64
		refuses quota.Level
	}{
		{"the first of the day", charges(1), counts(0, 0, 0), admitted},
		{"a client's last", charges(1), counts(49, 49, 49), admitted},
		{"a client one too far", charges(1), counts(50, 50, 50), client},
		{"a network's last", charges(1), counts(249, 249, 0), admitted},
		{"a network one too far", charges(1), counts(250, 250, 0), network},
		{"the service full, for a newcomer too", charges(1), counts(1000, 0, 0), service},
		{"all full: the widest is named", charges(1), counts(1000, 250, 50), service},
		{"network and client full: the wider is named", charges(1), counts(500, 250, 50), network},

		{"the last before the reserve", charges(1), counts(899, 10, 10), admitted},
		{"in the reserve: a client that has made one", charges(1), counts(900, 1, 1), service},
		{"in the reserve: a newcomer", charges(1), counts(900, 0, 0), admitted},
		{"in the reserve: the very last unit", charges(1), counts(999, 0, 0), admitted},
		{"in the reserve: a second client of the network", charges(1), counts(901, 1, 0), service},
		{"in the reserve: a newcomer's batch", charges(2), counts(900, 0, 0), service},
		{"a newcomer's batch reaching into the reserve", charges(2), counts(899, 0, 0), service},
		{"a newcomer's batch short of the reserve", charges(2), counts(898, 0, 0), admitted},
		{"no narrower level to know a newcomer by", charges(1)[:1], counts(900), service},
		{"a newcomer without the network level", []quota.Charge{charges(1)[0], charges(1)[2]}, counts(900, 0), admitted},

		{"a batch that just fits", charges(50), counts(0, 0, 0), admitted},
		{"a batch one too large", charges(51), counts(0, 0, 0), client},
		{"a batch larger than what is left", charges(3), counts(48, 48, 48), client},
		{"a limit lowered under what was used", charges(1), counts(60, 60, 60), client},
		{"a limit of zero", zeroClient, counts(0, 0, 0), client},
		{"no charges at all", nil, nil, admitted},

		{"the largest numbers, full", []quota.Charge{charge(client, 1, math.MaxInt64, 0)}, counts(math.MaxInt64), client},
		{"the largest numbers, one left", []quota.Charge{charge(client, 1, math.MaxInt64, 0)}, counts(math.MaxInt64 - 1), admitted},
		{"the largest cost", []quota.Charge{charge(client, math.MaxInt64, math.MaxInt64, 0)}, counts(0), admitted},
		{"a sum that would overflow", []quota.Charge{charge(client, math.MaxInt64, math.MaxInt64, 0)}, counts(math.MaxInt64), client},
		{"the largest cost on a reserved limit", []quota.Charge{charge(service, math.MaxInt64, 1, 1)}, counts(0), service},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := quota.Decide(row.charges, row.used)
			if row.refuses == admitted {
				want := make([]quota.Usage, len(row.charges))
				for i, c := range row.charges {
					want[i] = quota.Usage{Level: c.Counter.Level, Used: row.used[i] + c.Cost, Max: c.Max, ResetAt: resetAt}
				}
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Fatalf("error %v, usages (-want +got):\n%s", err, diff)
				}
				return
			}
			if got != nil {
				t.Errorf("a refusal returned usages: %v", got)
			}
			var exceeded *quota.ExceededError
			if !errors.As(err, &exceeded) || !errors.Is(err, quota.ErrExceeded) {
				t.Fatalf("got %v, want an ExceededError", err)
			}
			for i, c := range row.charges {
				if c.Counter.Level != row.refuses {
					continue
				}
				want := quota.Usage{Level: row.refuses, Used: row.used[i], Max: c.Max, ResetAt: resetAt}
				if diff := cmp.Diff(want, exceeded.Usage); diff != "" {
					t.Errorf("refused by (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// What makes no sense is neither an admission nor a refusal for want of quota.
func TestDecideInvalid(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name    string
		charges []quota.Charge
		used    []int64
	}{
		{"cost zero", charges(0), counts(0, 0, 0)},
		{"cost negative", charges(-1), counts(0, 0, 0)},
		{"the most negative cost", charges(math.MinInt64), counts(0, 0, 0)},
		{"a negative limit", []quota.Charge{charge(quota.LevelClient, 1, -1, 0)}, counts(0)},
		{"a negative reserve", []quota.Charge{charge(quota.LevelClient, 1, 10, -1)}, counts(0)},
		{"more reserved than there is", []quota.Charge{charge(quota.LevelClient, 1, 10, 11)}, counts(0)},
		{"a negative count", charges(1), counts(5, -1, 0)},
		{"the last charge alone", append(charges(1)[:2:2], charge(quota.LevelClient, 0, 50, 0)), counts(0, 0, 0)},
		{"an invalid one behind a full one", charges(1), counts(1000, 0, -1)},
		{"a count missing", charges(1), counts(0, 0)},
		{"a count too many", charges(1), counts(0, 0, 0, 0)},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := quota.Decide(row.charges, row.used)
			if got != nil || !errors.Is(err, quota.ErrInvalidCharge) || errors.Is(err, quota.ErrExceeded) {
				t.Errorf("got %v and %v, want ErrInvalidCharge alone", got, err)
			}
		})
	}
}

// One evening of a service with 1,000 links a day of which 900 are gone.
func TestDecideNewcomersJourney(t *testing.T) {
	t.Parallel()
	used := map[quota.Counter]int64{{Level: quota.LevelService}: 900}
	secret := quota.NewSecret()
	policy := quota.Policy{Client: 50, Network: 250, Service: 1000, Newcomers: 100}
	for _, step := range []struct {
		who  string
		cost int64
		ok   bool
	}{
		{"192.0.2.1", 1, true},          // a fresh network's first
		{"192.0.2.1", 1, false},         // the same client again
		{"192.0.2.2", 1, false},         // its neighbour
		{"198.51.100.1", 2, false},      // a batch, even of a newcomer
		{"198.51.100.1", 1, true},       // whose refusal has cost it nothing
		{"2001:db8:1::1", 1, true},      // a /48
		{"2001:db8:1:2::1", 1, false},   // another /64 of it
		{"2001:db8:2::1", 1, true},      // another /48
		{"::ffff:192.0.2.9", 1, false},  // the first network in other clothes
		{"64:ff9b::c000:209", 1, false}, // and in others
	} {
		cs := policy.Charges(client(t, step.who), secret, quota.Window{End: resetAt}, step.cost)
		before := make([]int64, len(cs))
		for i, c := range cs {
			before[i] = used[c.Counter]
		}
		usages, err := quota.Decide(cs, before)
		if ok := err == nil; ok != step.ok {
			t.Fatalf("%s, cost %d: %v, want admitted %v", step.who, step.cost, err, step.ok)
		}
		for i, u := range usages {
			used[cs[i].Counter] = u.Used
		}
	}
	if got := used[quota.Counter{Level: quota.LevelService}]; got != 904 {
		t.Errorf("the service counts %d, want 904", got)
	}
}

// TestDecideProperties lets any sequence of demands run over a small service. A
// model that counts admissions says what must hold after each of them.
func TestDecideProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(0, 30)
		service := limit.Draw(t, "service")
		reserved := rapid.Int64Range(0, service).Draw(t, "reserved")
		network, client := limit.Draw(t, "network"), limit.Draw(t, "client")
		type key struct{ network, client int }
		var total, toReturning int64
		perNetwork, perClient := map[int]int64{}, map[key]int64{}

		for range rapid.IntRange(1, 80).Draw(t, "demands") {
			k := key{rapid.IntRange(0, 5).Draw(t, "net"), rapid.IntRange(0, 2).Draw(t, "host")}
			cost := rapid.Int64Range(1, 3).Draw(t, "cost")
			newcomer := cost == 1 && perNetwork[k.network] == 0
			demand := []quota.Charge{
				charge(quota.LevelService, cost, service, reserved),
				charge(quota.LevelNetwork, cost, network, 0),
				charge(quota.LevelClient, cost, client, 0),
			}
			fits := total+cost <= service && perNetwork[k.network]+cost <= network && perClient[k]+cost <= client &&
				(newcomer || total+cost <= service-reserved)
			usages, err := quota.Decide(demand, counts(total, perNetwork[k.network], perClient[k]))
			if (err == nil) != fits {
				t.Fatalf("%v at %d, %d, %d: error %v, but the model says %v", demand, total, perNetwork[k.network], perClient[k], err, fits)
			}
			if err != nil {
				continue
			}
			total, perNetwork[k.network], perClient[k] = usages[0].Used, usages[1].Used, usages[2].Used
			if !newcomer {
				toReturning = max(toReturning, total)
			}
		}

		var sum int64
		for _, n := range perClient {
			sum += n
			if n > client {
				t.Fatalf("a client has %d of %d", n, client)
			}
		}
		for _, n := range perNetwork {
			if n > network {
				t.Fatalf("a network has %d of %d", n, network)
			}
		}
		if sum != total || total > service {
			t.Fatalf("clients have %d, the service %d of %d", sum, total, service)
		}
		if toReturning > service-reserved {
			t.Fatalf("a returning client brought the service to %d with %d of %d reserved", toReturning, reserved, service)
		}
	})
}

func TestRemaining(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ used, max, want int64 }{{3, 50, 47}, {50, 50, 0}, {60, 50, 0}, {0, 0, 0}} {
		if got := (quota.Usage{Used: row.used, Max: row.max}).Remaining(); got != row.want {
			t.Errorf("%d of %d: %d remain, want %d", row.used, row.max, got, row.want)
		}
	}
}

func TestExceededErrorText(t *testing.T) {
	t.Parallel()
	err := &quota.ExceededError{Usage: quota.Usage{Level: quota.LevelClient, Used: 50, Max: 50, ResetAt: resetAt}}
	if got, want := err.Error(), "client quota exceeded: 50 of 50 used until 2026-11-30T00:00:00Z"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A level in a dry run is counted and refuses nothing, whatever its limit; what it
// would have refused is told apart, and the other levels refuse as ever.
func TestDryRun(t *testing.T) {
	t.Parallel()
	charge := func(level quota.Level, limit, reserved int64, dry bool) quota.Charge {
		return quota.Charge{Counter: quota.Counter{Level: level}, Cost: 1, Max: limit, Reserved: reserved, DryRun: dry}
	}
	for _, row := range []struct {
		name    string
		dry     [3]bool
		used    [3]int64
		refused quota.Level // empty is none
		would   []quota.Level
	}{
		{"nothing is full", [3]bool{true, true, true}, [3]int64{5, 2, 1}, "", nil},
		{"a full network, dry", [3]bool{false, true, false}, [3]int64{5, 4, 1}, "", []quota.Level{quota.LevelNetwork}},
		{"a full network", [3]bool{true, false, true}, [3]int64{5, 4, 1}, quota.LevelNetwork, nil},
		{"a client beyond its limit, dry", [3]bool{false, false, true}, [3]int64{5, 2, 99}, "", []quota.Level{quota.LevelClient}},
		{"a full client behind a full network, dry", [3]bool{false, true, false}, [3]int64{5, 4, 2}, quota.LevelClient, nil},
		{"all full, all dry", [3]bool{true, true, true}, [3]int64{10, 4, 2}, "", []quota.Level{quota.LevelService, quota.LevelNetwork, quota.LevelClient}},
		{"what is kept for newcomers, dry", [3]bool{true, false, false}, [3]int64{8, 1, 0}, "", []quota.Level{quota.LevelService}},
		{"a newcomer", [3]bool{true, false, false}, [3]int64{8, 0, 0}, "", nil},
	} {
		charges := []quota.Charge{
			charge(quota.LevelService, 10, 2, row.dry[0]), charge(quota.LevelNetwork, 4, 0, row.dry[1]), charge(quota.LevelClient, 2, 0, row.dry[2]),
		}
		usages, err := quota.Decide(charges, row.used[:])
		var exceeded *quota.ExceededError
		switch {
		case row.refused != "":
			if !errors.As(err, &exceeded) || exceeded.Usage.Level != row.refused {
				t.Errorf("%s: %v, want a refusal by the %s", row.name, err, row.refused)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		for i, u := range usages {
			if u.Used != row.used[i]+1 {
				t.Errorf("%s: the %s is counted as %d", row.name, u.Level, u.Used)
			}
		}
		if got := quota.WouldRefuse(charges, row.used[:]); !slices.Equal(got, row.would) {
			t.Errorf("%s: %v would have refused, want %v", row.name, got, row.would)
		}
	}
	full := charge(quota.LevelClient, 1, 0, true)
	if _, err := quota.Decide([]quota.Charge{full}, []int64{math.MaxInt64}); !errors.Is(err, quota.ErrInvalidCharge) {
		t.Errorf("a counter without room: %v", err)
	}
}
