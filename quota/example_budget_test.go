package quota_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
)

// yen is the unit of the budgets, in millionths: prices of models have fractions of a yen.
const yen = 1_000_000

// errNotSent is the one error of a model after which nothing can have been charged.
var errNotSent = errors.New("the request was never sent")

// gateway passes requests on to a model and pays for them.
type gateway struct{ db *bbolt.DB }

// budget is the most that a request may cost, at each level of who pays for it,
// the widest first.
func budget(team, member quota.Subject, most int64, now time.Time) []quota.Charge {
	month := quota.MonthOf(now)
	var charges []quota.Charge
	for _, level := range []struct {
		name    quota.Level
		subject quota.Subject
		max     int64
	}{
		{"organization", "", 1_000_000 * yen},
		{"team", team, 200_000 * yen},
		{"member", member, 30_000 * yen},
	} {
		charges = append(charges, quota.Charge{
			Counter: quota.Counter{Level: level.name, Subject: level.subject, Period: month.Label},
			Cost:    most, Max: level.max, ResetAt: month.End,
		})
	}
	return charges
}

// ask reserves what the request may cost, calls the model, and settles. The id is
// that of the request, and the same when the request is tried again.
func (g *gateway) ask(id string, charges []quota.Charge, now time.Time, model func() (cost int64, err error)) string {
	r := quota.Reservation{
		ID: id, Charges: charges,
		// Far beyond the deadline of the call. Whatever was reserved by a process that
		// has died since is charged in full then: the call may have been made.
		CreatedAt: now, ExpiresAt: now.Add(time.Hour), OnExpiry: quota.Committed,
	}
	var already bool
	err := g.db.Update(func(tx *bbolt.Tx) (err error) {
		r, already, err = boltquota.Reserve(tx, r)
		return err
	})
	switch {
	case errors.Is(err, quota.ErrExceeded):
		return "refused: " + err.Error()
	case err != nil:
		return "refused: it cannot be counted"
	case already:
		return "begun before, and now " + string(r.State)
	}

	cost, err := model() // with no transaction open meanwhile
	sent := !errors.Is(err, errNotSent)
	var actual []int64 // nil charges all that was reserved: who knows what it has cost?
	if err == nil {
		actual = slices.Repeat([]int64{cost}, len(r.Charges))
	}
	var counts []quota.Count
	reserved := r
	err = g.db.Update(func(tx *bbolt.Tx) (err error) {
		if sent {
			r, counts, err = boltquota.Commit(tx, id, actual, now)
		} else {
			r, counts, err = boltquota.Release(tx, id, now)
		}
		return err
	})
	if err != nil {
		return "pending until it expires: it cannot be settled"
	}
	for _, over := range r.Overruns(reserved, counts) {
		fmt.Printf("alert: %s has spent %d of %d yen\n", over.Level, over.Used/yen, over.Max/yen)
	}
	return string(r.State)
}

// A gateway to a model that is paid by what a request turns out to cost. The
// most that it may cost is reserved in the budgets of an organization, a team and
// a member, all or none, before the model is called.
func Example_moneyBudget() {
	dir, err := os.MkdirTemp("", "gateway")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := bbolt.Open(filepath.Join(dir, "gateway.db"), 0o600, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(boltquota.Init); err != nil {
		log.Fatal(err)
	}

	g := gateway{db}
	now := time.Date(2026, 11, 29, 13, 0, 0, 0, time.UTC)
	costs := func(microYen int64) func() (int64, error) {
		return func() (int64, error) { return microYen, nil }
	}
	fails := func(err error) func() (int64, error) {
		return func() (int64, error) { return 0, err }
	}
	most := budget("search", "search/ann", 10_000*yen, now)
	fmt.Println("request 1:", g.ask("1", most, now, costs(2_100_000_000)))
	fmt.Println("request 1 again:", g.ask("1", most, now, costs(2_100_000_000)))
	fmt.Println("request 2, no connection:", g.ask("2", most, now, fails(errNotSent)))
	fmt.Println("request 3, no answer in time:", g.ask("3", most, now, fails(os.ErrDeadlineExceeded)))
	fmt.Println("request 4, dearer than it could be:", g.ask("4", most, now, costs(18_000_500_000)))
	fmt.Println("request 5:", g.ask("5", most, now, costs(0)))
	// Output:
	// request 1: committed
	// request 1 again: begun before, and now committed
	// request 2, no connection: released
	// request 3, no answer in time: committed
	// alert: member has spent 30100 of 30000 yen
	// request 4, dearer than it could be: committed
	// request 5: refused: member quota exceeded: 30100500000 of 30000000000 used until 2026-12-01T00:00:00Z
}
