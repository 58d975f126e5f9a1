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
	"snip/shortener/memstore"
)

// testModel runs random operations against the store and against memstore. Every
// answer must agree: what kind of error, which level, what is counted, what is
// found. Each check of rapid uses days of its own, so that one data set serves.
func testModel(t *testing.T, stores []shortener.Store) {
	era := 0
	rapid.Check(t, func(r *rapid.T) {
		era++
		run := model{
			r:     r,
			real:  stores[0],
			model: memstore.New(),
			era:   fmt.Sprintf("era%d-", era),
			day:   noon.AddDate(0, 0, 100*era),
		}
		// Both must agree on the newest day from the first step on.
		run.policy = quota.Policy{Client: 3, Network: 5, Service: 12, Newcomers: 3}
		run.create([]string{run.era + "first"}, host(0, 0))
		r.Repeat(map[string]func(*rapid.T){
			"create": func(r *rapid.T) {
				slugs := rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 1, 3, rapid.ID[int]).Draw(r, "slugs")
				names := make([]string, len(slugs))
				for i, n := range slugs {
					names[i] = fmt.Sprintf("%s%d", run.era, n)
				}
				run.create(names, host(rapid.IntRange(0, 4).Draw(r, "network"), rapid.IntRange(0, 2).Draw(r, "host")))
			},
			"clock": func(r *rapid.T) {
				run.day = run.day.AddDate(0, 0, rapid.IntRange(-2, 2).Draw(r, "days"))
			},
			"limits": func(r *rapid.T) {
				run.policy.Client = int64(rapid.IntRange(0, 4).Draw(r, "client"))
				run.policy.Service = int64(rapid.IntRange(8, 16).Draw(r, "service"))
			},
			"get": func(r *rapid.T) {
				run.get(fmt.Sprintf("%s%d", run.era, rapid.IntRange(0, 30).Draw(r, "slug")))
			},
		})
	})
}

type model struct {
	r           *rapid.T
	real, model shortener.Store
	policy      quota.Policy
	era         string
	day         time.Time
}

func (m *model) create(slugs []string, who quota.Client) {
	answers := [2]string{}
	for i, s := range []shortener.Store{m.real, m.model} {
		day := quota.DayOf(m.day)
		secret, err := s.EnsureSecret(context.Background(), day.Label)
		if err != nil {
			answers[i] = kind(err)
			continue
		}
		c := shortener.Creation{Day: day.Label, Charges: m.policy.Charges(who, secret, day, int64(len(slugs)))}
		for _, slug := range slugs {
			c.Links = append(c.Links, shortener.Link{
				Slug: shortener.Slug(slug), Destination: "https://example.org/" + slug, CreatedAt: m.day, Day: day.Label,
			})
		}
		answers[i] = kind(s.Create(context.Background(), c))
		counters := make([]quota.Counter, len(c.Charges))
		for j, charge := range c.Charges {
			counters[j] = charge.Counter
		}
		used, err := s.Used(context.Background(), counters)
		answers[i] += fmt.Sprint(" used ", used, err)
	}
	if answers[0] != answers[1] {
		m.r.Fatalf("create %v on %s: the store says %q, the model %q", slugs, quota.DayOf(m.day).Label, answers[0], answers[1])
	}
}

func (m *model) get(slug string) {
	real, realErr := m.real.Get(context.Background(), shortener.Slug(slug))
	want, wantErr := m.model.Get(context.Background(), shortener.Slug(slug))
	if real != want || kind(realErr) != kind(wantErr) {
		m.r.Fatalf("get %s: the store says %+v, %v, the model %+v, %v", slug, real, realErr, want, wantErr)
	}
}

// kind is what a caller branches on.
func kind(err error) string {
	var exceeded *quota.ExceededError
	if errors.As(err, &exceeded) {
		return fmt.Sprintf("exceeded %+v", exceeded.Usage)
	}
	for _, sentinel := range []error{quota.ErrClock, quota.ErrCannotCount, shortener.ErrSlugTaken, shortener.ErrNotFound} {
		if errors.Is(err, sentinel) {
			return sentinel.Error()
		}
	}
	return fmt.Sprint(err)
}
