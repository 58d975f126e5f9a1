package quota_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"snip/quota"
)

// reservation holds the same amount at each level of an organization that has
// 1,000, a team that has 200 and a member that has 30.
func reservation(cost int64) quota.Reservation {
	return quota.Reservation{
		ID: "request 1",
		Charges: []quota.Charge{
			charge("organization", cost, 1000, 0), charge("team", cost, 200, 0), charge("member", cost, 30, 0),
		},
		ExpiresAt: resetAt.Add(-time.Hour),
		OnExpiry:  quota.Committed,
	}
}

// held are what the three levels have used and what is held of them.
func held(usedAndHeld ...int64) (counts []quota.Count) {
	for pair := range slices.Chunk(usedAndHeld, 2) {
		counts = append(counts, quota.Count{Used: pair[0], Held: pair[1]})
	}
	return counts
}

func TestValidateReservation(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name   string
		change func(*quota.Reservation)
		names  string // what the error names; empty means valid
	}{
		{"as it is", func(*quota.Reservation) {}, ""},
		{"released on expiry", func(r *quota.Reservation) { r.OnExpiry = quota.Released }, ""},
		{"the longest id", func(r *quota.Reservation) { r.ID = strings.Repeat("x", quota.MaxReservationID) }, ""},
		{"an id of any bytes", func(r *quota.Reservation) { r.ID = "\x00\xff" }, ""},
		{"no id", func(r *quota.Reservation) { r.ID = "" }, "0 bytes"},
		{"an id that is too long", func(r *quota.Reservation) { r.ID = strings.Repeat("x", quota.MaxReservationID+1) }, "256 bytes"},
		{"no charges", func(r *quota.Reservation) { r.Charges = nil }, "no charges"},
		{"no expiry", func(r *quota.Reservation) { r.ExpiresAt = time.Time{} }, "expires"},
		{"nothing to be done on expiry", func(r *quota.Reservation) { r.OnExpiry = "" }, `becomes ""`},
		{"pending on expiry", func(r *quota.Reservation) { r.OnExpiry = quota.Pending }, `becomes "pending"`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := reservation(5)
			row.change(&r)
			err := r.Validate()
			if row.names == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, quota.ErrInvalidReservation) || !strings.Contains(err.Error(), row.names) {
				t.Errorf("got %v, want ErrInvalidReservation that names %s", err, row.names)
			}
			if _, counts, err := r.Reserve(held(0, 0, 0, 0, 0, 0)); counts != nil || !errors.Is(err, quota.ErrInvalidReservation) {
				t.Errorf("reserved: got %v and %v", counts, err)
			}
		})
	}
}

// A window without an end could be forgotten while it goes on.
func TestReservationNeedsAnEnd(t *testing.T) {
	t.Parallel()
	r := reservation(5)
	r.Charges[1].ResetAt = time.Time{}
	if err := r.Validate(); !errors.Is(err, quota.ErrInvalidCharge) || !strings.Contains(err.Error(), "team") {
		t.Errorf("got %v, want ErrInvalidCharge that names the level", err)
	}
	r.State = quota.Pending
	if err := r.ValidateStored(); !errors.Is(err, quota.ErrInvalidCharge) {
		t.Errorf("stored: got %v, want ErrInvalidCharge", err)
	}
}

func TestReserve(t *testing.T) {
	t.Parallel()
	full := func(limit int64) quota.Reservation {
		r := reservation(math.MaxInt64)
		r.Charges = []quota.Charge{charge("organization", math.MaxInt64, limit, 0)}
		return r
	}
	twice, dry := reservation(5), reservation(5)
	twice.Charges = append(twice.Charges, twice.Charges[0])
	dry.Charges[2].DryRun = true
	rows := []struct {
		name        string
		reservation quota.Reservation
		counts      []quota.Count
		after       []quota.Count
		want        error
	}{
		{"the first", reservation(5), held(0, 0, 0, 0, 0, 0), held(0, 5, 0, 5, 0, 5), nil},
		{"beside what is used and held", reservation(5), held(100, 10, 100, 10, 10, 10), held(100, 15, 100, 15, 10, 15), nil},
		{"the last that fits", reservation(5), held(25, 0, 25, 0, 25, 0), held(25, 5, 25, 5, 25, 5), nil},
		{"the last that fits, all held", reservation(5), held(0, 25, 0, 25, 0, 25), held(0, 30, 0, 30, 0, 30), nil},
		{"one too many, used", reservation(5), held(26, 0, 26, 0, 26, 0), nil, quota.ErrExceeded},
		{"one too many, held", reservation(5), held(0, 26, 0, 26, 0, 26), nil, quota.ErrExceeded},
		{"one too many, both", reservation(5), held(13, 13, 13, 13, 13, 13), nil, quota.ErrExceeded},
		{"above the maximum by an overrun", reservation(1), held(31, 0, 31, 0, 31, 0), nil, quota.ErrExceeded},
		{"a dry run refuses nothing", dry, held(26, 0, 26, 0, 26, 0), held(26, 5, 26, 5, 26, 5), nil},
		{"more than there ever is", reservation(math.MaxInt64), held(0, 0, 0, 0, 0, 0), nil, quota.ErrExceeded},
		{"all there can be", full(math.MaxInt64), held(0, 0), held(0, math.MaxInt64), nil},
		{"one more than there can be", full(math.MaxInt64), held(1, 0), nil, quota.ErrExceeded},
		{"a cost of nothing", reservation(0), held(0, 0, 0, 0, 0, 0), nil, quota.ErrInvalidCharge},
		{"a negative cost", reservation(-1), held(0, 0, 0, 0, 0, 0), nil, quota.ErrInvalidCharge},
		{"one counter twice", twice, held(0, 0, 0, 0, 0, 0, 0, 0), nil, quota.ErrInvalidCharge},
		{"a count missing", reservation(5), held(0, 0, 0, 0), nil, quota.ErrInvalidCharge},
		{"counts whose sum overflows", reservation(5), held(math.MaxInt64, 1, 0, 0, 0, 0), nil, quota.ErrInvalidCharge},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(row.counts)
			// What a caller says of its state is not believed.
			row.reservation.State, row.reservation.Actual = quota.Committed, []int64{1}
			r, after, err := row.reservation.Reserve(row.counts)
			if !errors.Is(err, row.want) || !slices.Equal(after, row.after) {
				t.Errorf("got %v and %v, want %v and %v", after, err, row.after, row.want)
			}
			if err == nil && (r.State != quota.Pending || r.Actual != nil) {
				t.Errorf("it is %s, of %v", r.State, r.Actual)
			}
			if !slices.Equal(row.counts, before) {
				t.Errorf("the caller's counts became %v", row.counts)
			}
		})
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	pending := reservation(5)
	pending.State = quota.Pending
	commit := func(actual ...int64) func(quota.Reservation, []quota.Count) (quota.Reservation, []quota.Count, error) {
		return func(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
			return r.Commit(counts, actual, settledAt)
		}
	}
	local := pending
	local.OnExpiry = quota.Released
	stands := held(100, 5, 50, 8, 10, 20) // another has 3 and 15 more
	rows := []struct {
		name        string
		reservation quota.Reservation
		settle      func(quota.Reservation, []quota.Count) (quota.Reservation, []quota.Count, error)
		counts      []quota.Count
		after       []quota.Count
		state       quota.State
		actual      []int64
		want        error
	}{
		{"cheaper", pending, commit(4, 3, 2), stands, held(104, 0, 53, 3, 12, 15), quota.Committed, []int64{4, 3, 2}, nil},
		{"as reserved", pending, commit(5, 5, 5), stands, held(105, 0, 55, 3, 15, 15), quota.Committed, []int64{5, 5, 5}, nil},
		{"nobody knows", pending, commit(), stands, held(105, 0, 55, 3, 15, 15), quota.Committed, []int64{5, 5, 5}, nil},
		{"for nothing", pending, commit(0, 0, 0), stands, held(100, 0, 50, 3, 10, 15), quota.Committed, []int64{0, 0, 0}, nil},
		{"dearer", pending, commit(6, 6, 6), stands, held(106, 0, 56, 3, 16, 15), quota.Committed, []int64{6, 6, 6}, nil},
		{"dearer than the maximum", pending, commit(2000, 2000, 2000), stands, held(2100, 0, 2050, 3, 2010, 15), quota.Committed, []int64{2000, 2000, 2000}, nil},
		{"dearer where all is used", pending, commit(6, 6, 6), held(995, 5, 195, 5, 25, 5), held(1001, 0, 201, 0, 31, 0), quota.Committed, []int64{6, 6, 6}, nil},
		{"the most that can be counted", pending, commit(math.MaxInt64-100, 0, 0), stands, held(math.MaxInt64, 0, 50, 3, 10, 15), quota.Committed, []int64{math.MaxInt64 - 100, 0, 0}, nil},
		{"more than can be counted", pending, commit(math.MaxInt64-99, 0, 0), stands, nil, quota.Pending, nil, quota.ErrInvalidCharge},
		{"more than can be counted beside what others hold", pending, commit(0, math.MaxInt64-52, 0), stands, nil, quota.Pending, nil, quota.ErrInvalidCharge},
		{"a negative amount", pending, commit(5, 5, -1), stands, nil, quota.Pending, nil, quota.ErrInvalidCharge},
		{"an amount missing", pending, commit(5, 5), stands, nil, quota.Pending, nil, quota.ErrInvalidCharge},
		{"an amount too many", pending, commit(5, 5, 5, 5), stands, nil, quota.Pending, nil, quota.ErrInvalidCharge},
		{"a count missing", pending, commit(5, 5, 5), stands[:2], nil, quota.Pending, nil, quota.ErrInvalidCharge},
		{"less held than it holds", pending, commit(5, 5, 5), held(100, 5, 50, 5, 10, 4), nil, quota.Pending, nil, quota.ErrCannotCount},

		{"released", pending, release, stands, held(100, 0, 50, 3, 10, 15), quota.Released, nil, nil},
		{"released, a count missing", pending, release, stands[:2], nil, quota.Pending, nil, quota.ErrInvalidCharge},
		{"released, less held than it holds", pending, release, held(100, 5, 50, 0, 10, 5), nil, quota.Pending, nil, quota.ErrCannotCount},

		{"expired, of unknown outcome", pending, expire, stands, held(105, 0, 55, 3, 15, 15), quota.Committed, []int64{5, 5, 5}, nil},
		{"expired, work of one's own", local, expire, stands, held(100, 0, 50, 3, 10, 15), quota.Released, nil, nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(row.counts)
			r, after, err := row.settle(row.reservation, row.counts)
			if !errors.Is(err, row.want) || !slices.Equal(after, row.after) {
				t.Errorf("got %v and %v, want %v and %v", after, err, row.after, row.want)
			}
			if r.State != row.state || !slices.Equal(r.Actual, row.actual) {
				t.Errorf("it is %s, of %v; want %s, of %v", r.State, r.Actual, row.state, row.actual)
			}
			if !slices.Equal(row.counts, before) {
				t.Errorf("the caller's counts became %v", row.counts)
			}
		})
	}
}

// TestSettledStays shows that the first to settle a reservation is the last.
func TestSettledStays(t *testing.T) {
	t.Parallel()
	settle := map[string]func(quota.Reservation, []quota.Count) (quota.Reservation, []quota.Count, error){
		"commit": func(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
			return r.Commit(counts, []int64{4, 4, 4}, settledAt)
		},
		"commit another amount": func(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
			return r.Commit(counts, []int64{1, 2, 3}, settledAt)
		},
		"commit nonsense": func(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
			return r.Commit(counts, []int64{-1}, settledAt)
		},
		"release": release,
		"expire":  expire,
	}
	for _, first := range []string{"commit", "release"} {
		for then, again := range settle {
			t.Run(fmt.Sprintf("%s, then %s", first, then), func(t *testing.T) {
				t.Parallel()
				r, counts, err := reservation(5).Reserve(held(1, 0, 1, 0, 1, 0))
				if err != nil {
					t.Fatal(err)
				}
				settled, after, err := settle[first](r, counts)
				if err != nil {
					t.Fatal(err)
				}
				r, counts, err = again(settled, after)
				if err != nil || !slices.Equal(counts, after) || !cmp.Equal(r, settled) {
					t.Errorf("got %v, %v and %v, want %v and %v as they were", r, counts, err, settled, after)
				}
			})
		}
	}
}

func TestKeptUntil(t *testing.T) {
	t.Parallel()
	r := reservation(5) // expires an hour before its windows end
	if got, want := r.KeptUntil(), resetAt.AddDate(0, 0, 1); !got.Equal(want) {
		t.Errorf("got %s, want a day after its windows: %s", got, want)
	}
	r.Charges[1].ResetAt = resetAt.AddDate(0, 1, 0)
	if got, want := r.KeptUntil(), resetAt.AddDate(0, 1, 1); !got.Equal(want) {
		t.Errorf("got %s, want a day after the longest of its windows: %s", got, want)
	}
	r.ExpiresAt = resetAt.AddDate(1, 0, 0)
	if got, want := r.KeptUntil(), resetAt.AddDate(1, 0, 1); !got.Equal(want) {
		t.Errorf("got %s, want a day after its expiry: %s", got, want)
	}
}

func TestOverruns(t *testing.T) {
	t.Parallel()
	before := reservation(5)
	before.State = quota.Pending
	committed := func(actual ...int64) quota.Reservation {
		r := before
		r.State, r.Actual = quota.Committed, actual
		return r
	}
	want := []quota.Usage{
		{Level: "team", Used: 201, Max: 200, ResetAt: resetAt},
		{Level: "member", Used: 31, Max: 30, ResetAt: resetAt},
	}
	for name, row := range map[string]struct {
		actual []int64
		counts []quota.Count
		want   []quota.Usage
	}{
		"more was paid, and there is room":            {[]int64{6, 6, 6}, held(1000, 0, 200, 0, 30, 0), nil},
		"more was paid than there is room":            {[]int64{6, 6, 6}, held(1000, 0, 201, 0, 31, 0), want},
		"next to what others hold":                    {[]int64{6, 6, 6}, held(995, 5, 196, 5, 11, 20), want},
		"as much was paid after the limit was raised": {[]int64{5, 4, 0}, held(5000, 0, 201, 5, 31, 0), nil},
		"more was paid at one level":                  {[]int64{5, 5, 6}, held(5000, 0, 201, 0, 31, 0), want[1:]},
	} {
		if got := committed(row.actual...).Overruns(before, row.counts); !slices.Equal(got, row.want) {
			t.Errorf("%s: got %v, want %v", name, got, row.want)
		}
	}
	r := committed(6, 6, 6)
	r.Charges[1].DryRun = true
	if got := r.Overruns(before, held(1000, 0, 201, 0, 31, 0)); !slices.Equal(got, want[1:]) {
		t.Errorf("with the team in a dry run got %v, want %v", got, want[1:])
	}
}
