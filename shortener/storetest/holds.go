package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"

	"snip/quota"
	"snip/shortener"
)

// hold is an operation on reservations, and the whole of what a model has to know
// of it.
type hold struct {
	do      string // "reserve", "commit", "release", "settle", "forget" or "read"
	id      string
	amounts []int64 // of each level: to reserve, or paid
	expires time.Duration
	become  quota.State
}

// holdLevels are the levels of the model with what each may hold, the widest first.
var holdLevels = [...]int64{30, 12, 9}

func (h hold) charges(day quota.Window) []quota.Charge {
	var charges []quota.Charge
	for i, amount := range h.amounts {
		charges = append(charges, quota.Charge{
			Counter: quota.Counter{Level: quota.Level(fmt.Sprint("level ", i)), Period: day.Label},
			Cost:    amount, Max: holdLevels[i], ResetAt: day.End,
		})
	}
	return charges
}

// on returns the store's answer as text. The operation's instants count from the
// start of the day; it settles what has expired by h.expires.
func (h hold) on(ctx context.Context, s shortener.Store, day quota.Window, prefix string) string {
	id := prefix + h.id
	outcome := func(r quota.Reservation, err error) string {
		if err != nil {
			return holdKind(err)
		}
		return told(string(r.State), r.Expired, r.Actual)
	}
	switch h.do {
	case "reserve":
		r, already, err := s.Reserve(ctx, quota.Reservation{
			ID: id, Charges: h.charges(day), ExpiresAt: day.Start.Add(h.expires), OnExpiry: h.become,
		})
		if already {
			return "already " + outcome(r, err)
		}
		return outcome(r, err)
	case "commit":
		return outcome(s.Commit(ctx, id, h.amounts, day.Start.Add(h.expires)))
	case "release":
		return outcome(s.Release(ctx, id, day.Start.Add(h.expires)))
	case "settle":
		for {
			if more, err := s.SettleExpired(ctx, day.Start.Add(h.expires), 2); !more || err != nil {
				return holdKind(err)
			}
		}
	default:
		all := hold{amounts: holdLevels[:]}.charges(day)
		counters := make([]quota.Counter, len(all))
		for i, c := range all {
			counters[i] = c.Counter
		}
		counts, err := s.Counts(ctx, counters)
		if err != nil {
			return holdKind(err)
		}
		return fmt.Sprint(counts)
	}
}

func holdKind(err error) string {
	var exceeded *quota.ExceededError
	switch {
	case errors.Is(err, quota.ErrNoReservation):
		return quota.ErrNoReservation.Error()
	case errors.As(err, &exceeded):
		return noRoom(exceeded.Usage.Level, exceeded.Usage.Used)
	}
	return kind(err)
}

func noRoom(level quota.Level, taken int64) string {
	return fmt.Sprint("no room at ", level, " beside ", taken)
}

func (h hold) String() string {
	return fmt.Sprint(h.do, " ", h.id, " ", h.amounts, " ", h.expires, " ", h.become)
}

// sums is what reservations do, as arithmetic. It shares no code with the stores.
type sums struct {
	counts [len(holdLevels)]quota.Count
	holds  map[string]sumHold
}

type sumHold struct {
	hold
	state   string
	paid    []int64
	expired bool // settled by its expiry, and not by its caller since
}

// told is what a caller learns of a reservation.
func told(state string, expired bool, paid []int64) string {
	if expired {
		state = "expired, " + state
	}
	return fmt.Sprint(state, paid)
}

func (s sums) clone() sums { s.holds = maps.Clone(s.holds); return s }

func (s sums) equal(other sums) bool {
	return s.counts == other.counts && fmt.Sprint(s.holds) == fmt.Sprint(other.holds)
}

// answer does what the operation asks for and returns what a store must say.
func (s *sums) answer(h hold) string {
	found, there := s.holds[h.id]
	switch h.do {
	case "reserve":
		if there {
			return "already " + told(found.state, found.expired, found.paid)
		}
		for i, amount := range h.amounts {
			if taken := s.counts[i].Used + s.counts[i].Held; taken+amount > holdLevels[i] {
				return noRoom(quota.Level(fmt.Sprint("level ", i)), taken)
			}
		}
		for i, amount := range h.amounts {
			s.counts[i].Held += amount
		}
		s.holds[h.id] = sumHold{h, "pending", nil, false}
		return "pending[]"
	case "commit", "release":
		if !there {
			return quota.ErrNoReservation.Error()
		}
		if h.do == "release" {
			return s.settle(found, "released", nil, false)
		}
		return s.settle(found, "committed", h.amounts, false)
	case "settle":
		for _, found := range s.holds {
			if found.expires <= h.expires {
				paid := found.amounts
				if found.become == quota.Released {
					paid = nil
				}
				if found.state == "pending" {
					s.settle(found, string(found.become), paid, true)
				}
			}
		}
		return done
	default:
		return fmt.Sprint(s.counts[:])
	}
}

func (s *sums) settle(h sumHold, state string, paid []int64, expired bool) string {
	if h.state == "pending" || h.expired {
		for i, amount := range h.amounts {
			if h.state == "pending" {
				s.counts[i].Held -= amount
			}
		}
		for i, amount := range h.paid {
			s.counts[i].Used -= amount
		}
		for i, amount := range paid {
			s.counts[i].Used += amount
		}
		h.state, h.paid, h.expired = state, paid, expired
		s.holds[h.id] = h
	}
	return told(h.state, h.expired, h.paid)
}

// holdOperations is how many operations at least are compared, beside reading.
const holdOperations = 10_000

// testHolds compares random operations on reservations with [sums], through any of
// the handles and over restarts, and after each what the levels hold with their
// maximums: nothing but what was paid above its reservation may exceed them. Each
// check of rapid has a day and ids of its own.
func testHolds(t *testing.T, stores []shortener.Store) {
	era, operations := 0, 0
	check := func(r *rapid.T) {
		era++
		day, prefix := quota.DayOf(noon.AddDate(0, 0, era)), fmt.Sprint("era ", era, " ")
		model := sums{holds: map[string]sumHold{}}
		clock := time.Duration(0)
		above := [len(holdLevels)]int64{} // what was paid beyond reservations
		compare := func(h hold) {
			if h.do != "read" {
				operations++
			}
			store := stores[rapid.IntRange(0, len(stores)-1).Draw(r, "handle")]
			got := h.on(context.Background(), store, day, prefix)
			if want := model.answer(h); got != want {
				r.Fatalf("%v: the store says %q, want %q", h, got, want)
			}
		}
		within := func() {
			for i, c := range model.counts {
				if c.Held < 0 || c.Used+c.Held > holdLevels[i]+above[i] {
					r.Fatalf("level %d holds %+v of %d", i, c, holdLevels[i])
				}
			}
		}
		anyID := func() string { return fmt.Sprint(rapid.IntRange(0, 12).Draw(r, "id")) }
		amounts := func(least, n int) []int64 {
			all := make([]int64, n)
			for i := range all {
				all[i] = int64(rapid.IntRange(least, 6).Draw(r, "amount"))
			}
			return all
		}
		actions := map[string]func(*rapid.T){
			"":     func(*rapid.T) { within() },
			"read": func(*rapid.T) { compare(hold{do: "read"}) },
			"reserve": func(*rapid.T) {
				compare(hold{do: "reserve", id: anyID(), amounts: amounts(1, rapid.IntRange(1, len(holdLevels)).Draw(r, "levels")),
					expires: clock + time.Duration(rapid.IntRange(1, 5).Draw(r, "minutes"))*time.Minute,
					become:  rapid.SampledFrom([]quota.State{quota.Committed, quota.Released}).Draw(r, "become")})
			},
			"commit": func(*rapid.T) {
				h := hold{do: "commit", id: anyID()}
				found, there := model.holds[h.id]
				h.amounts = amounts(0, len(found.amounts))
				if there && (found.state == "pending" || found.expired) {
					stood := found.amounts
					if found.expired {
						stood = append(found.paid, make([]int64, len(found.amounts)-len(found.paid))...)
					}
					for i, paid := range h.amounts {
						above[i] += max(0, paid-stood[i])
					}
				}
				compare(h)
			},
			"release": func(*rapid.T) { compare(hold{do: "release", id: anyID()}) },
			"expire": func(*rapid.T) {
				clock += time.Duration(rapid.IntRange(0, 3).Draw(r, "minutes")) * time.Minute
				compare(hold{do: "settle", expires: clock})
			},
		}
		if handle, ok := stores[0].(Restarter); ok {
			actions["restart"] = func(r *rapid.T) { restart(r, handle) }
		}
		r.Repeat(actions)
		compare(hold{do: "read"})
		// Nothing of it is left for the next check, which settles what has expired too.
		for id := range model.holds {
			compare(hold{do: "release", id: id})
		}
	}
	for operations < holdOperations {
		rapid.Check(t, check)
	}
	t.Logf("%d operations", operations)
}

// sumsModel is [sums] for the checker of histories.
var sumsModel = porcupine.Model{
	Init: func() any { return sums{holds: map[string]sumHold{}} },
	Step: func(state, input, output any) (bool, any) {
		next := state.(sums).clone()
		if output == context.Canceled.Error() { // withdrawn, so it did nothing
			return true, next
		}
		answer := next.answer(input.(hold))
		return output == unknown || answer == output, next
	},
	Equal:             func(a, b any) bool { return a.(sums).equal(b.(sums)) },
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%v: %v", input, output) },
}

// testLinearHolds asks whether an order explains what callers are told that reserve,
// commit and release at once.
func testLinearHolds(t *testing.T, stores []shortener.Store) {
	for n := range linearHistories {
		if err := linearHolds(stores, n); err != nil {
			t.Error(err)
		}
	}
}

// linearHolds records a history of a day and ids of its own, the n-th.
func linearHolds(stores []shortener.Store, n int) error {
	day, prefix := quota.DayOf(noon.AddDate(0, 0, n)), fmt.Sprint("history ", n, " ")
	history := record(stores, anyHold, func(h hold, s shortener.Store) string { return h.send(s, day, prefix) })
	if result := porcupine.CheckOperationsTimeout(sumsModel, history, linearPatience); result != porcupine.Ok {
		return fmt.Errorf("no order explains the answers: the check says %s%s", result, inOrder(history))
	}
	return nil
}

// send is on, where some operations are withdrawn before or while they are under way,
// and some answers are lost.
func (h hold) send(s shortener.Store, day quota.Window, prefix string) string {
	if h.do == "read" {
		return h.on(context.Background(), s, day, prefix)
	}
	ctx, cancel, lost := fate()
	defer cancel()
	answer := h.on(ctx, s, day, prefix)
	if lost {
		return unknown
	}
	return answer
}

// anyHold returns a random operation on one of few reservations, for which there is
// hardly room.
func anyHold(string) hold {
	h := hold{id: fmt.Sprint(rand.IntN(4)), become: quota.Committed, expires: time.Hour}
	h.do = [...]string{"reserve", "reserve", "reserve", "commit", "release", "read"}[rand.IntN(6)]
	for range holdLevels {
		h.amounts = append(h.amounts, int64(1+rand.IntN(5)))
	}
	return h
}
