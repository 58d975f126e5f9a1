package quota_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"snip/quota"
)

// TestReservationProperties reserves and settles at random, near the end of small
// budgets and near the largest number there is.
func TestReservationProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		levels := rapid.IntRange(1, 5).Draw(t, "levels")
		limits, counts := make([]int64, levels), make([]quota.Count, levels)
		spent, overrun := make([]int64, levels), make([]bool, levels)
		for i := range levels {
			limits[i] = rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(math.MaxInt64-100, math.MaxInt64)).Draw(t, "limit")
			counts[i].Used = rapid.Int64Range(max(0, limits[i]-50), limits[i]).Draw(t, "used")
			spent[i] = counts[i].Used
		}
		var pending []quota.Reservation // and those that have expired
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				r := quota.Reservation{ID: "x", ExpiresAt: resetAt, OnExpiry: rapid.SampledFrom([]quota.State{quota.Committed, quota.Released}).Draw(t, "on expiry")}
				fits := true
				for i := range levels {
					cost := rapid.Int64Range(1, 20).Draw(t, "cost")
					r.Charges = append(r.Charges, charge(quota.Level(fmt.Sprint("level ", i)), cost, limits[i], 0))
					fits = fits && counts[i].Taken() <= limits[i]-cost
				}
				r, after, err := r.Reserve(counts)
				if fits != (err == nil) || err != nil && !errors.Is(err, quota.ErrExceeded) {
					t.Fatalf("%v of %v: got %v", counts, limits, err)
				}
				if err == nil {
					pending, counts = append(pending, r), after
				}
			},
			"settle": func(t *rapid.T) {
				if len(pending) == 0 {
					t.Skip("nothing is reserved")
				}
				n := rapid.IntRange(0, len(pending)-1).Draw(t, "which")
				before := pending[n]
				r := before
				var after []quota.Count
				var err error
				switch rapid.SampledFrom([]string{"commit", "release", "expire"}).Draw(t, "how") {
				case "commit":
					r, after, err = r.Commit(counts, rapid.SliceOfN(rapid.Int64Range(0, 30), levels, levels).Draw(t, "actual"), settledAt)
				case "release":
					r, after, err = r.Release(counts, settledAt)
				case "expire":
					r, after, err = r.Expire(counts, settledAt)
				}
				if errors.Is(err, quota.ErrInvalidCharge) { // only where the sum could not be counted
					for i := range levels {
						if counts[i].Taken() > math.MaxInt64-30 {
							return
						}
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				counts = after
				if pending[n] = r; r.Settled() {
					pending = slices.Delete(pending, n, n+1)
				}
				for i := range levels {
					now, then := r.Stands(i), before.Stands(i)
					spent[i] += now.Used - then.Used
					overrun[i] = overrun[i] || now.Taken() > then.Taken()
				}
			},
			"": func(t *rapid.T) {
				for i, c := range counts {
					var held int64
					for _, r := range pending {
						held += r.Stands(i).Held
					}
					if c.Held != held || c.Used != spent[i] {
						t.Fatalf("level %d holds %+v, want %d used and %d held", i, c, spent[i], held)
					}
					if c.Taken() < 0 || c.Taken() > limits[i] && !overrun[i] {
						t.Fatalf("level %d has taken %d of %d, and nothing cost more than was reserved", i, c.Taken(), limits[i])
					}
				}
			},
		})
	})
}
