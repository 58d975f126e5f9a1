package quotatest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"snip/quota"
)

// testReserve is B19 with B27 (a): a new id with room, a new id without, the same
// id again.
func testReserve(t *testing.T, b book) {
	charges := []quota.Charge{
		{Counter: quota.Counter{Level: "org", Subject: "\xfe\x00", Period: day.Label}, Cost: 3, Max: 10, Reserved: 2, ResetAt: day.End},
		{Counter: quota.Counter{Level: "member", Subject: "ann", Period: quota.MonthOf(noon).Label}, Cost: 4, Max: 4, DryRun: true, ResetAt: quota.MonthOf(noon).End},
	}
	asked := reservation("\x00id\xff", charges)
	asked.ExpiresAt, asked.OnExpiry, asked.CreatedAt = noon.Add(time.Microsecond), quota.Committed, noon
	expected := asked
	expected.State, expected.Charges, expected.UpdatedAt = quota.Pending, slices.Clone(charges), noon
	if got := reserve(t, b, asked); !reflect.DeepEqual(got, expected) {
		t.Errorf("reserved %+v, want %+v", got, expected)
	}
	asked.Charges[0].Cost = 7 // the book has a copy of its own
	if _, _, err := b.reserve(reservation("another", charges)); !errors.Is(err, quota.ErrExceeded) {
		t.Errorf("without room: %v", err)
	}
	if _, err := b.reservation("another"); !errors.Is(err, quota.ErrNoReservation) {
		t.Errorf("something is left of what was refused: %v", err)
	}
	for range 2 { // also when there would be no room any more, and whatever is asked
		got, already, err := b.reserve(asked)
		if err != nil || !already || !reflect.DeepEqual(got, expected) {
			t.Errorf("again: %+v, %v, %v", got, already, err)
		}
	}
	if got, err := b.reservation(asked.ID); err != nil || !reflect.DeepEqual(got, expected) {
		t.Errorf("found %+v, %v", got, err)
	}
	want(t, b, charges, quota.Count{Held: 3}, quota.Count{Held: 4})
	do[quota.Reservation](t)(first(b.commit(asked.ID, nil)))
	if got, already, err := b.reserve(asked); err != nil || !already || got.State != quota.Committed {
		t.Errorf("once it is settled: %+v, %v, %v", got, already, err)
	}
	want(t, b, charges, quota.Count{Used: 3}, quota.Count{Used: 4})

	// Twenty who want the same one get it together, and one has made it.
	made := make([]bool, 20)
	together(t, len(made), func(i int) error {
		_, already, err := b.reserve(reservation("wanted", budget(2, 10)))
		made[i] = err == nil && !already
		return err
	})
	made = slices.DeleteFunc(made, func(m bool) bool { return !m })
	if len(made) != 1 {
		t.Errorf("one reservation was made %d times", len(made))
	}
	want(t, b, budget(1, 1), quota.Count{Held: 2})
}

func first(r quota.Reservation, _ []quota.Count, err error) (quota.Reservation, error) { return r, err }

// testSettled is B13: whatever comes second changes nothing and gets the first
// result.
func testSettled(t *testing.T, b book) {
	commit := func(id string) (quota.Reservation, []quota.Count, error) { return b.commit(id, []int64{2}) }
	later := func(id string) (quota.Reservation, []quota.Count, error) { return b.commit(id, []int64{3}) }
	used := int64(0)
	for i, c := range []struct {
		before, after func(string) (quota.Reservation, []quota.Count, error)
		state         quota.State
		paid          int64
	}{
		{commit, later, quota.Committed, 2},
		{commit, b.release, quota.Committed, 2},
		{b.release, commit, quota.Released, 0},
		{b.release, b.release, quota.Released, 0},
	} {
		id := fmt.Sprint("reservation ", i)
		reserve(t, b, reservation(id, budget(5, 100)))
		once := do[quota.Reservation](t)(first(c.before(id)))
		again := do[quota.Reservation](t)(first(c.after(id)))
		if once.State != c.state || !reflect.DeepEqual(once, again) {
			t.Errorf("row %d: settled as %+v, then as %+v", i, once, again)
		}
		used += c.paid
		want(t, b, budget(1, 1), quota.Count{Used: used})
	}
	for _, settle := range []func(string) (quota.Reservation, []quota.Count, error){commit, b.release} {
		if _, _, err := settle("unknown"); !errors.Is(err, quota.ErrNoReservation) {
			t.Errorf("of an unknown reservation: %v", err)
		}
	}
	// At once: one of them is the first, and all get its result.
	reserve(t, b, reservation("contested", budget(5, 100)))
	states := make([]quota.State, 10)
	together(t, len(states), func(i int) error {
		settle := commit
		if i%2 == 0 {
			settle = b.release
		}
		r, _, err := settle("contested")
		states[i] = r.State
		return err
	})
	for _, state := range states {
		if state != states[0] {
			t.Fatalf("it was settled as %v", states)
		}
	}
	if states[0] == quota.Committed {
		used += 2
	}
	want(t, b, budget(1, 1), quota.Count{Used: used})
}

// testDifference is B12 with B27 (b): what was stored counts, in the window in which
// it was reserved.
func testDifference(t *testing.T, b book) {
	for i, row := range []struct {
		actual []int64
		used   int64
	}{{[]int64{0}, 0}, {[]int64{3}, 3}, {[]int64{5}, 8}, {nil, 13}, {[]int64{9}, 22}} {
		id := fmt.Sprint("call ", i)
		reserve(t, b, reservation(id, budget(5, 20)))
		r, counts, err := b.commit(id, row.actual)
		if err != nil || r.State != quota.Committed || len(r.Actual) != 1 || counts[0].Used != row.used {
			t.Errorf("row %d: %+v, %v, %v", i, r, counts, err)
		}
		want(t, b, budget(1, 1), quota.Count{Used: row.used})
	}
	pending := budget(5, 100)
	reserve(t, b, reservation("odd", pending))
	for _, actual := range [][]int64{{-1}, {1, 2}, {1<<63 - 1}} {
		if _, _, err := b.commit("odd", actual); !errors.Is(err, quota.ErrInvalidCharge) {
			t.Errorf("paid %v: %v", actual, err)
		}
	}
	want(t, b, pending, quota.Count{Used: 22, Held: 5})
}

// testOverrun is B22.
func testOverrun(t *testing.T, b book) {
	do[[]quota.Usage](t)(b.apply(budget(5, 10)))
	reserve(t, b, reservation("call", budget(5, 10)))
	r, counts, err := b.commit("call", []int64{8})
	if over := r.Overruns(r.Unsettled(), counts); err != nil || len(over) != 1 || over[0].Used != 13 || over[0].Max != 10 {
		t.Errorf("%+v, %v, %v: overruns %v", r, counts, err, over)
	}
	_, _, err = b.reserve(reservation("next", budget(1, 10)))
	wantLevel(t, err, "team")
	want(t, b, budget(1, 1), quota.Count{Used: 13})
}

// settledAt is when reservations are settled by their callers.
var settledAt = noon.Add(30 * time.Second)

// testList lists reservations, those that are pending before those that are settled.
func testList(t *testing.T, b book) {
	if got, err := b.list(9); len(got) > 0 || err != nil {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
	for i := range 4 {
		r := reservation(fmt.Sprint("call ", i), budget(1, 100))
		r.CreatedAt, r.ExpiresAt = noon.Add(time.Duration(-i)*time.Second), noon.Add(time.Duration(9-i)*time.Second)
		reserve(t, b, r)
	}
	do[quota.Reservation](t)(first(b.commit("call 2", []int64{3})))
	reserve(t, b, reservation("of unknown age", budget(1, 100)))
	got, err := b.list(9)
	var ids []string
	for _, r := range got {
		ids = append(ids, r.ID)
		if found, err := b.reservation(r.ID); err != nil || !reflect.DeepEqual(found, r) {
			t.Errorf("listed as %+v, and found as %+v, %v", r, found, err)
		}
		created, updated := r.CreatedAt, r.UpdatedAt
		switch r.ID {
		case "of unknown age":
			created, updated = noon.Add(-time.Second), noon.Add(-time.Second)
			if !r.CreatedAt.IsZero() || !r.UpdatedAt.IsZero() {
				t.Errorf("made at %s", r.CreatedAt)
			}
		case "call 2":
			updated = updated.Add(-settledAt.Sub(noon) - 2*time.Second)
		}
		if !created.Equal(updated) || created.After(noon) {
			t.Errorf("%s was created at %s and updated at %s", r.ID, r.CreatedAt, r.UpdatedAt)
		}
	}
	if err != nil || !slices.Equal(slices.Sorted(slices.Values(ids)), []string{"call 0", "call 1", "call 2", "call 3", "of unknown age"}) || ids[4] != "call 2" {
		t.Errorf("%q, %v", ids, err)
	}
	if some, err := b.list(2); err != nil || !reflect.DeepEqual(some, got[:2]) {
		t.Errorf("two of them: %+v, %v", some, err)
	}
}

// settleAll settles what has expired, a few at a time, and returns how each was.
func settleAll(t *testing.T, b book, now time.Time) map[string]quota.State {
	t.Helper()
	states := map[string]quota.State{}
	for rounds := 0; ; rounds++ {
		more, err := b.settleExpired(now, 2, func(r quota.Reservation, counts []quota.Count) error {
			if len(counts) != len(r.Charges) {
				t.Errorf("%s: %d counts of %d charges", r.ID, len(counts), len(r.Charges))
			}
			states[r.ID] = r.State
			return nil
		})
		if err != nil || rounds > 10 {
			t.Fatalf("round %d: %v", rounds, err)
		}
		if !more {
			return states
		}
	}
}

// testExpired is the part of B23 about reservations that are stuck, and B27 (d).
func testExpired(t *testing.T, b book) {
	for i, onExpiry := range []quota.State{quota.Released, quota.Committed, quota.Released, quota.Committed, quota.Released} {
		r := reservation(fmt.Sprint("call ", i), budget(1<<i, 100))
		r.OnExpiry, r.ExpiresAt = onExpiry, noon.Add(time.Duration(i)*time.Second)
		reserve(t, b, r)
	}
	do[quota.Reservation](t)(first(b.commit("call 0", nil)))
	want(t, b, budget(1, 1), quota.Count{Used: 1, Held: 30})
	if got := settleAll(t, b, noon.Add(3*time.Second-time.Microsecond)); !reflect.DeepEqual(got, map[string]quota.State{
		"call 1": quota.Committed, "call 2": quota.Released,
	}) {
		t.Errorf("settled %v", got)
	}
	want(t, b, budget(1, 1), quota.Count{Used: 3, Held: 24})
	if got := settleAll(t, b, noon.Add(3*time.Second)); len(got) != 1 || got["call 3"] != quota.Committed {
		t.Errorf("settled %v", got)
	}
	// The caller's word counts after all, once, for a day after the window.
	late := day.End.AddDate(0, 0, 1)
	settleAll(t, b, late.Add(-time.Microsecond))
	for range 2 {
		if r := do[quota.Reservation](t)(first(b.commit("call 1", []int64{500}))); r.Expired || !reflect.DeepEqual(r.Actual, []int64{500}) {
			t.Errorf("dearer than it was charged on expiry: %+v", r)
		}
	}
	want(t, b, budget(1, 1), quota.Count{Used: 509})
	do[quota.Reservation](t)(first(b.commit("call 1", []int64{2})))
	want(t, b, budget(1, 1), quota.Count{Used: 509})
	if r := do[quota.Reservation](t)(first(b.release("call 3"))); r.State != quota.Released {
		t.Errorf("free after all: %+v", r)
	}
	want(t, b, budget(1, 1), quota.Count{Used: 501})
	if r := do[quota.Reservation](t)(first(b.commit("call 2", []int64{10}))); r.State != quota.Committed || !r.UpdatedAt.Equal(settledAt) {
		t.Errorf("not free after all: %+v", r)
	}
	want(t, b, budget(1, 1), quota.Count{Used: 511})
	if got := settleAll(t, b, late); len(got) != 0 {
		t.Errorf("settled again: %v", got)
	}
	for i := range 5 {
		if _, err := b.reservation(fmt.Sprint("call ", i)); !errors.Is(err, quota.ErrNoReservation) {
			t.Errorf("call %d is not forgotten: %v", i, err)
		}
	}
	want(t, b, budget(1, 1), quota.Count{Used: 511})

	// Nobody has to listen, and at least one is settled whatever the limit.
	reserve(t, b, reservation("unheard", budget(1, 1000)))
	for _, more := range []bool{true, true, false} { // it is settled, and forgotten
		if got, err := b.settleExpired(late, 0, nil); got != more || err != nil {
			t.Errorf("at most 0 at a time: more %v, %v, want %v", got, err, more)
		}
	}
	want(t, b, budget(1, 1), quota.Count{Used: 511})
}

func testSwept(t *testing.T, b book) {
	tomorrow := quota.DayOf(noon.AddDate(0, 0, 1))
	for _, w := range []quota.Window{day, tomorrow} {
		for i := range 3 {
			do[[]quota.Usage](t)(b.apply([]quota.Charge{charge("client", quota.Subject(fmt.Sprint(i)), w, 1, 9)}))
		}
	}
	old, now := charge("client", "0", day, 2, 9), charge("client", "0", tomorrow, 2, 9)
	reserve(t, b, reservation("both days", []quota.Charge{old, now}))
	want(t, b, []quota.Charge{old, now}, quota.Count{Used: 1, Held: 2}, quota.Count{Used: 1, Held: 2})
	sweep := func(before time.Time) {
		t.Helper()
		for rounds := 0; ; rounds++ {
			more, err := b.sweep(before, 2)
			if err != nil || rounds > 10 {
				t.Fatalf("round %d: %v", rounds, err)
			}
			if !more {
				return
			}
		}
	}
	sweep(day.End.Add(-time.Microsecond))
	want(t, b, []quota.Charge{old, now}, quota.Count{Used: 1, Held: 2}, quota.Count{Used: 1, Held: 2})
	sweep(day.End)
	want(t, b, []quota.Charge{old, now}, quota.Count{}, quota.Count{Used: 1, Held: 2})
	if r, _, err := b.commit("both days", []int64{1, 1}); err != nil || r.State != quota.Committed {
		t.Errorf("%+v, %v", r, err)
	}
	want(t, b, []quota.Charge{old, now}, quota.Count{}, quota.Count{Used: 2})
}
