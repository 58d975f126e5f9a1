package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// What is offered: one creation to nineteen redirects.
const (
	offeredRate = 5000 // per second
	creationOf  = 20
)

// mixed measures redirects and creations together: at a fixed rate far below what
// the server can do, where it is the time of an answer that counts, and as fast as
// it can.
func (b *bench) mixed(ctx context.Context, t *table) error {
	const store = "mixed.db"
	links, err := b.fill(ctx, store, 10_000)
	if err != nil {
		return err
	}
	snip, err := b.startSnip(ctx, store, unlimited...)
	if err != nil {
		return err
	}
	defer snip.kill()
	list, err := b.writeList("mixed", links.count, links.slug)
	if err != nil {
		return err
	}
	like, err := request(ctx, http.MethodGet, snip.url+"/"+links.slug(0), "")
	if err != nil {
		return err
	}
	bare, err := b.startBare(ctx, like, http.MethodGet, "/"+links.slug(0))
	if err != nil {
		return err
	}
	defer bare.kill()
	// Fewer rounds and longer ones, so that a round has creations enough for a p99.
	long := *b
	long.rounds, long.each = min(b.rounds, 3), 3*b.each
	m := &mixture{bench: b, server: snip, bare: bare, list: list}
	appended := &cell{name: "fdatasync, 4 KiB appended", measure: b.flushes(true)}
	overwritten := &cell{name: "fdatasync, 4 KiB overwritten", measure: b.flushes(false)}
	control := &cell{name: "bare net/http, redirects alone", measure: m.offerBare}
	redirects := &cell{name: "snip, redirects", measure: m.offerRedirects}
	creations := &cell{name: "snip, creations at the same time", measure: m.offeredCreations}
	saturated := &cell{name: "snip, as many as it can, 95 % redirects and 5 % creations", measure: m.saturate}
	if err := long.inTurn(ctx, "mixed", appended, overwritten, control, redirects, creations, saturated); err != nil {
		return err
	}
	t.series(fmt.Sprintf("redirects and creations, 64 connections, %d rounds of %s", long.rounds, long.each), "")
	for _, c := range []*cell{appended, overwritten, control, redirects, creations, saturated} {
		t.row(c, nil)
	}
	t.note("mixed: redirects and creations were offered at a fixed rate, and their times run from the moment that each was due; %s were acknowledged, and all of them are counted", whole(float64(m.made)))
	t.limit("p99 of offered creations to the median fdatasync of 4 KiB, appended", creations.p99.over(appended.p50), 4)
	return nil
}

// mixture keeps account of a mixed load.
type mixture struct {
	bench     *bench
	server    *server
	bare      *server
	list      string // file of slugs to follow
	runs      int
	made      int    // acknowledged at a fixed rate
	creations result // of the offer that ran last
}

// offerRedirects runs an offer and returns the figures of its redirects; those of
// its creations are kept for the cell that follows.
func (m *mixture) offerRedirects(ctx context.Context, d time.Duration) (result, error) {
	var o offered
	counted, err := m.counted(ctx, func() (err error) {
		o, err = m.offer(ctx, m.server, creationOf, d)
		return err
	})
	if err != nil {
		return result{}, err
	}
	if total := int(d.Seconds()) * offeredRate; o.Creations.Answers != total/creationOf {
		return result{}, fmt.Errorf("%d of %d requests made a link, where one in %d should", o.Creations.Answers, total, creationOf)
	}
	if counted != o.Creations.Answers {
		return result{}, fmt.Errorf("%d creations were acknowledged and %d are counted", o.Creations.Answers, counted)
	}
	m.made += counted
	m.creations = o.Creations.result(d)
	return o.Redirects.result(d), nil
}

// offerBare offers redirects only, to a server that has nothing to do: what the
// load itself adds to every time.
func (m *mixture) offerBare(ctx context.Context, d time.Duration) (result, error) {
	o, err := m.offer(ctx, m.bare, 0, d)
	return o.Redirects.result(d), err
}

// offer runs an offer in a process of its own, as this one has no core to itself.
func (m *mixture) offer(ctx context.Context, s *server, every int, d time.Duration) (o offered, err error) {
	m.runs++
	encoded, err := json.Marshal(offer{
		Address: strings.TrimPrefix(s.url, "http://"), List: m.list, Word: fmt.Sprint("offer", m.runs),
		Second: offeredRate, Every: every, For: d,
	})
	if err != nil {
		return o, err
	}
	cmd := m.bench.command(ctx, loadCore, m.bench.self, "-offer", string(encoded))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return o, fmt.Errorf("the load at a fixed rate: %w", err)
	}
	if err := json.Unmarshal(out, &o); err != nil {
		return o, err
	}
	if total := int(d.Seconds()) * offeredRate; o.Redirects.Answers+o.Creations.Answers != total {
		return o, fmt.Errorf("%d redirects and %d creations were answered, of %d requests", o.Redirects.Answers, o.Creations.Answers, total)
	}
	return o, nil
}

func (m *mixture) offeredCreations(context.Context, time.Duration) (result, error) {
	return m.creations, nil
}

func (t times) result(d time.Duration) result {
	return result{rate: float64(t.Answers) / d.Seconds(), p50: t.P50, p99: t.P99, answers: t.Answers}
}

// saturate has wrk send both kinds as fast as it gets answers. wrk cannot tell
// which of them it has heard of, so the count has to be right but for one request
// on each connection.
func (m *mixture) saturate(ctx context.Context, d time.Duration) (r result, err error) {
	const connections = 64
	m.runs++
	counted, err := m.counted(ctx, func() (err error) {
		l := load{"mix.lua", m.server, "", connections, []string{m.list, fmt.Sprint("mix", m.runs)}}
		r, err = m.bench.run(ctx, l, min(d, m.bench.each))
		return err
	})
	if err != nil {
		return result{}, err
	}
	least, most := r.answers/creationOf-connections, (r.answers+connections)/creationOf+1
	if counted < least || counted > most {
		return result{}, fmt.Errorf("of %d requests, from %d to %d should have made a link, and %d did", r.answers, least, most, counted)
	}
	return r, nil
}

// counted returns how many links the load has made, as the server counts them.
func (m *mixture) counted(ctx context.Context, load func() error) (int, error) {
	before, err := m.server.used(ctx)
	if err != nil {
		return 0, err
	}
	if err := load(); err != nil {
		return 0, err
	}
	after, err := m.server.used(ctx)
	return after - before, err
}
