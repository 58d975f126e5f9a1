package quota_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"snip/quota"
)

// pending returns a reservation of 10 of 100 in an hour, a day and a month.
func pending() quota.Reservation {
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	r := quota.Reservation{ID: "call", ExpiresAt: noon.Add(time.Minute), OnExpiry: quota.Committed, State: quota.Pending}
	for _, w := range []quota.Window{quota.MonthOf(noon), quota.DayOf(noon), quota.HourOf(noon)} {
		r.Charges = append(r.Charges, quota.Charge{
			Counter: quota.Counter{Level: "money", Period: w.Label}, Cost: 10, Max: 100, ResetAt: w.End,
		})
	}
	return r
}

func TestReservationSums(t *testing.T) {
	t.Parallel()
	held := []quota.Count{{50, 10}, {0, 25}, {math.MaxInt64 - 20, 10}}
	for name, row := range map[string]struct {
		become func(quota.Reservation, []quota.Count) (quota.Reservation, []quota.Count, error)
		want   string // the state, what was paid and what the counters hold
		err    error
	}{
		"commit":   {paid(3, 0, 10), "committed [3 0 10] [{53 0} {0 15} {9223372036854775797 0}]", nil},
		"above":    {paid(60, 200, 20), "committed [60 200 20] [{110 0} {200 15} {9223372036854775807 0}]", nil},
		"in full":  {paid(), "committed [10 10 10] [{60 0} {10 15} {9223372036854775797 0}]", nil},
		"release":  {release, "released [] [{50 0} {0 15} {9223372036854775787 0}]", nil},
		"expire":   {expire, "committed [10 10 10] [{60 0} {10 15} {9223372036854775797 0}]", nil},
		"overflow": {paid(0, 0, 21), "", quota.ErrInvalidCharge},
		"negative": {paid(0, 0, -1), "", quota.ErrInvalidCharge},
		"too few":  {paid(1), "", quota.ErrInvalidCharge},
		"of nothing": {func(r quota.Reservation, c []quota.Count) (quota.Reservation, []quota.Count, error) {
			return r.Release(c[:2], settledAt)
		}, "", quota.ErrInvalidCharge},
		"not held": {func(r quota.Reservation, _ []quota.Count) (quota.Reservation, []quota.Count, error) {
			return r.Release([]quota.Count{{0, 10}, {0, 10}, {0, 9}}, settledAt)
		}, "", quota.ErrCannotCount},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, counts, err := row.become(pending(), held)
			if !errors.Is(err, row.err) || err == nil && fmt.Sprint(string(r.State), " ", r.Actual, " ", counts) != row.want {
				t.Errorf("got %s %v %v, %v, want %s, %v", r.State, r.Actual, counts, err, row.want, row.err)
			}
			if err != nil && r.State != quota.Pending {
				t.Errorf("it is %s after an error", r.State)
			}
			if err == nil && !r.UpdatedAt.Equal(settledAt) {
				t.Errorf("it was settled at %s", r.UpdatedAt)
			}
			if err == nil && !r.Expired { // a second time, whatever is held and paid
				for _, again := range []func(quota.Reservation, []quota.Count) (quota.Reservation, []quota.Count, error){paid(7, 7, 7), release, expire} {
					same, after, err := again(r, counts)
					if err != nil || fmt.Sprint(same, after) != fmt.Sprint(r, counts) {
						t.Errorf("then: %v %v, %v", same, after, err)
					}
				}
			}
		})
	}
	if fmt.Sprint(held) != fmt.Sprint([]quota.Count{{50, 10}, {0, 25}, {math.MaxInt64 - 20, 10}}) {
		t.Errorf("the counts that were given have changed: %v", held)
	}
}

// settledAt is when the reservations of tests are settled.
var settledAt = time.Date(2026, 11, 29, 12, 0, 30, 0, time.UTC)

func release(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
	return r.Release(counts, settledAt)
}

func expire(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
	return r.Expire(counts, settledAt)
}

func paid(actual ...int64) func(quota.Reservation, []quota.Count) (quota.Reservation, []quota.Count, error) {
	return func(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
		return r.Commit(counts, actual, settledAt)
	}
}

// A reservation is kept for a day after its last window and its own end.
func TestReservationIsKept(t *testing.T) {
	t.Parallel()
	r := pending()
	if got := r.KeptUntil(); !got.Equal(time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("kept until %s", got)
	}
	r.ExpiresAt = time.Date(2027, 2, 28, 1, 2, 3, 0, time.UTC)
	if got := r.KeptUntil(); !got.Equal(time.Date(2027, 3, 1, 1, 2, 3, 0, time.UTC)) {
		t.Errorf("one that expires later is kept until %s", got)
	}
}

func TestValidateStored(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*quota.Reservation)
		want   string
	}{
		"pending":                  {func(*quota.Reservation) {}, ""},
		"released":                 {func(r *quota.Reservation) { r.State = quota.Released }, ""},
		"committed":                {func(r *quota.Reservation) { r.State, r.Actual = quota.Committed, []int64{1, 2, 3} }, ""},
		"expired and committed":    {func(r *quota.Reservation) { r.State, r.Actual, r.Expired = quota.Committed, []int64{1, 2, 3}, true }, ""},
		"expired and pending":      {func(r *quota.Reservation) { r.Expired = true }, "and is pending"},
		"in no state":              {func(r *quota.Reservation) { r.State = "" }, `its state is ""`},
		"committed to too little":  {func(r *quota.Reservation) { r.State, r.Actual = quota.Committed, []int64{1, 2} }, "2 amounts"},
		"released and paid":        {func(r *quota.Reservation) { r.State, r.Actual = quota.Released, []int64{1, 2, 3} }, "3 amounts"},
		"without an id":            {func(r *quota.Reservation) { r.ID = "" }, "0 bytes"},
		"with an expiry long past": {func(r *quota.Reservation) { r.ExpiresAt = time.Unix(0, 0) }, "before 1970"},
		"charged twice":            {func(r *quota.Reservation) { r.Charges[1] = r.Charges[0] }, "charged twice"},
	} {
		r := pending()
		row.change(&r)
		if err := r.ValidateStored(); (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got error %v, want %q", name, err, row.want)
		}
	}
}

// What expiry has assumed is replaced, once, by what the caller says: a cost above the
// limit as well.
func TestLateOutcome(t *testing.T) {
	t.Parallel()
	expired := func(onExpiry quota.State) quota.Reservation {
		r := pending()
		r.OnExpiry = onExpiry
		return r
	}
	// Next to 10 of its own, 5 are held and 80 used by others.
	counts := []quota.Count{{80, 15}, {80, 15}, {80, 15}}
	for name, row := range map[string]struct {
		onExpiry quota.State
		late     func(quota.Reservation, []quota.Count) (quota.Reservation, []quota.Count, error)
		want     string // the state, what was paid and what the counters hold
		over     int    // levels whose maximum was exceeded by it
		err      error
	}{
		"dearer":                    {quota.Committed, paid(14, 10, 40), "committed [14 10 40] [{94 5} {90 5} {120 5}]", 1, nil},
		"dearer, and there is room": {quota.Committed, paid(15, 11, 12), "committed [15 11 12] [{95 5} {91 5} {92 5}]", 0, nil},
		"as charged":                {quota.Committed, paid(), "committed [10 10 10] [{90 5} {90 5} {90 5}]", 0, nil},
		"cheaper":                   {quota.Committed, paid(0, 3, 9), "committed [0 3 9] [{80 5} {83 5} {89 5}]", 0, nil},
		"free":                      {quota.Committed, release, "released [] [{80 5} {80 5} {80 5}]", 0, nil},
		"a cost of what was free":   {quota.Released, paid(7, 8, 16), "committed [7 8 16] [{87 5} {88 5} {96 5}]", 1, nil},
		"free as it was":            {quota.Released, release, "released [] [{80 5} {80 5} {80 5}]", 0, nil},
		"more than can be counted":  {quota.Committed, paid(math.MaxInt64, 0, 0), "", 0, quota.ErrInvalidCharge},
		"less than nothing":         {quota.Committed, paid(-1, 0, 0), "", 0, quota.ErrInvalidCharge},
		"what was charged is missing": {quota.Committed, func(r quota.Reservation, _ []quota.Count) (quota.Reservation, []quota.Count, error) {
			return r.Commit([]quota.Count{{9, 0}, {80, 0}, {80, 0}}, nil, settledAt)
		}, "", 0, quota.ErrCannotCount},
	} {
		assumed, after, err := expired(row.onExpiry).Expire(counts, settledAt)
		if err != nil || !assumed.Expired || assumed.Settled() || assumed.State != row.onExpiry {
			t.Fatalf("%s: expired as %+v, %v", name, assumed, err)
		}
		if again, _, err := assumed.Expire(after, settledAt); err != nil || fmt.Sprint(again) != fmt.Sprint(assumed) {
			t.Errorf("%s: expired again as %+v, %v", name, again, err)
		}
		r, now, err := row.late(assumed, after)
		if !errors.Is(err, row.err) || err == nil && fmt.Sprint(string(r.State), " ", r.Actual, " ", now) != row.want {
			t.Errorf("%s: got %s %v %v, %v, want %s, %v", name, r.State, r.Actual, now, err, row.want, row.err)
		}
		if err != nil {
			if fmt.Sprint(r) != fmt.Sprint(assumed) {
				t.Errorf("%s: it became %+v after an error", name, r)
			}
			continue
		}
		if over := r.Overruns(assumed, now); len(over) != row.over {
			t.Errorf("%s: overruns %+v, want %d", name, over, row.over)
		}
		for _, again := range []func(quota.Reservation, []quota.Count) (quota.Reservation, []quota.Count, error){paid(7, 7, 7), release, expire} {
			same, sum, err := again(r, now)
			if err != nil || fmt.Sprint(same, sum) != fmt.Sprint(r, now) {
				t.Errorf("%s, then: %v %v, %v", name, same, sum, err)
			}
		}
	}
}
