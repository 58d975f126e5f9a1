package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snip/quota"
	"snip/shortener"
)

// Restarter is a handle whose data outlives it. Restart closes it and opens the
// data again; the handle then stands for what was opened.
type Restarter interface{ Restart() error }

// testModel runs random operations on the store, through any of its handles, and
// compares every answer with what [plain] predicts: what kind of error, which
// level, what is counted, what is found. Each check of rapid uses days and slugs
// of its own, so that one data set serves all.
//
// The flags -rapid.checks and -rapid.steps make it as long as one likes, up to
// 25,000 checks: then the days leave the four digits of their years.
func testModel(t *testing.T, stores []shortener.Store) {
	era, operations := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		era++
		run := model{
			stores:  stores,
			want:    newPlain(),
			era:     fmt.Sprintf("era%d-", era),
			now:     noon.AddDate(0, 0, 100*era),
			policy:  quota.Policy{Client: 3, Network: 5, Service: 12, Newcomers: 3},
			secrets: map[string]quota.Secret{},
		}
		// Both must agree on the newest day from the first step on.
		run.create(r, host(0, 0), 30)
		actions := map[string]func(*rapid.T){
			"":       func(*rapid.T) { operations++ },
			"create": run.createAny,
			"again":  run.again,
			"clock":  run.clock,
			"limits": run.limits,
			"read":   run.read,
			"visit":  run.visit,
			"change": run.change,
			"delete": run.delete,
		}
		if handle, ok := stores[0].(Restarter); ok {
			actions["restart"] = func(r *rapid.T) { restart(r, handle) }
		}
		r.Repeat(actions)
	})
	t.Logf("%d operations", operations)
}

// model is one sequence of random operations.
type model struct {
	stores  []shortener.Store
	want    plain
	policy  quota.Policy
	era     string
	now     time.Time
	secrets map[string]quota.Secret // by day, as the store gave them
	last    call                    // the creation before
}

// compare sends the call to one of the handles and asserts its answer.
func (m *model) compare(r *rapid.T, c call) {
	handle := rapid.IntRange(0, len(m.stores)-1).Draw(r, "handle")
	got := c.on(context.Background(), m.stores[handle])
	if want := m.want.answer(c); got != want {
		r.Fatalf("%v at %v: the store says %q, want %q", c, m.now, got, want)
	}
}

func (m *model) createAny(r *rapid.T) {
	who := host(rapid.IntRange(0, 4).Draw(r, "network"), rapid.IntRange(0, 2).Draw(r, "host"))
	m.create(r, who, rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 1, 4, rapid.ID[int]).Draw(r, "slugs")...)
}

func (m *model) create(r *rapid.T, who quota.Client, slugs ...int) {
	day := quota.DayOf(m.now)
	charges := m.policy.Charges(who, m.secret(r, day.Label), day, int64(len(slugs)))
	c := call{creation: shortener.Creation{Day: day.Label, Charges: charges}}
	for _, n := range slugs {
		c.creation.Links = append(c.creation.Links, shortener.Link{
			Slug:        shortener.Slug(fmt.Sprintf("%s%d", m.era, n)),
			Destination: "https://example.org/" + rapid.StringMatching("[a-z]{0,9}").Draw(r, "destination"),
			CreatedAt:   m.now,
			Day:         day.Label,
		})
	}
	m.last = c
	m.again(r)
}

// again sends the last creation, and looks at its counters. Sent twice, it is a
// request whose answer was lost and that somebody tries again.
func (m *model) again(r *rapid.T) {
	m.compare(r, m.last)
	var c call
	for _, charge := range m.last.creation.Charges {
		c.counters = append(c.counters, charge.Counter)
	}
	if !m.want.late(m.last.creation.Day) { // older counters go at some time
		m.compare(r, c)
	}
}

// secret returns the day's secret, which may not change, or any secret where the
// clock is not to be trusted: then the creation must be refused in its turn.
func (m *model) secret(r *rapid.T, day string) quota.Secret {
	secret, err := m.stores[0].EnsureSecret(context.Background(), day)
	switch known, ok := m.secrets[day]; {
	case m.want.late(day):
		if !errors.Is(err, quota.ErrClock) {
			r.Fatalf("secret of %s: got error %v, want %v", day, err, quota.ErrClock)
		}
	case err != nil:
		r.Fatalf("secret of %s: %v", day, err)
	case ok && secret != known:
		r.Fatalf("secret of %s: it has changed", day)
	default:
		m.secrets[day] = secret
	}
	return secret
}

// clock moves the clock, often enough far ahead for days to be swept.
func (m *model) clock(r *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(-48, 72).Draw(r, "hours")) * time.Hour)
	m.compare(r, call{day: quota.DayOf(m.now).Label})
}

func (m *model) limits(r *rapid.T) {
	m.policy = quota.Policy{ // zero leaves a level out
		Client:    int64(rapid.IntRange(0, 4).Draw(r, "client")),
		Network:   int64(rapid.IntRange(0, 6).Draw(r, "network")),
		Service:   int64(rapid.SampledFrom([]int{0, 8, 12, 16}).Draw(r, "service")),
		Newcomers: int64(rapid.IntRange(0, 4).Draw(r, "newcomers")),
		DryRun:    map[quota.Level]bool{rapid.SampledFrom([]quota.Level{"none", quota.LevelClient, quota.LevelNetwork, quota.LevelService}).Draw(r, "dry run"): true},
	}
}

func (m *model) read(r *rapid.T) { m.compare(r, call{slug: m.slug(r)}) }

func (m *model) visit(r *rapid.T) { m.compare(r, call{slug: m.slug(r), do: "visit"}) }

func (m *model) change(r *rapid.T) {
	destination, visits := rapid.StringMatching("https://example.net/[a-z]{0,9}").Draw(r, "destination"), int64(rapid.IntRange(0, 3).Draw(r, "visits"))
	change := rapid.SampledFrom([]shortener.Change{{}, {Destination: &destination}, {MaxVisits: &visits}, {Destination: &destination, MaxVisits: &visits}}).Draw(r, "change")
	m.compare(r, call{slug: m.slug(r), do: "change", change: change})
}

// delete is seldom, or soon nothing would be left.
func (m *model) delete(r *rapid.T) {
	if rapid.IntRange(1, 4).Draw(r, "chance") == 1 {
		m.compare(r, call{slug: m.slug(r), do: "delete"})
	}
}

func (m *model) slug(r *rapid.T) shortener.Slug {
	return shortener.Slug(fmt.Sprintf("%s%d", m.era, rapid.IntRange(0, 30).Draw(r, "slug")))
}

// restart opens the data again, in one of ten cases: it costs as much as all the
// other operations.
func restart(r *rapid.T, handle Restarter) {
	if rapid.IntRange(1, 10).Draw(r, "chance") < 10 {
		return
	}
	if err := handle.Restart(); err != nil {
		r.Fatalf("restart: %v", err)
	}
}
