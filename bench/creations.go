package main

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"time"
)

// creations measures making links, each of them counted and on the disk before
// it is acknowledged, beside the disk's own flush and beside the same server with
// its store in memory, which shows what is not the disk. Afterwards the server is
// killed and started again, and everything acknowledged must be there.
func (b *bench) creations(ctx context.Context, t *table) error {
	const store = "creations.db"
	snip, err := b.startSnip(ctx, store, unlimited...)
	if err != nil {
		return err
	}
	defer snip.kill()
	memory, err := b.startMemory(ctx)
	if err != nil {
		return err
	}
	defer memory.kill()
	made, kept := &creation{bench: b, server: snip}, &creation{bench: b, server: memory}
	one, sixteen := made.cell("snip, 1 connection", 1), made.cell("snip, 16 connections", 16)
	sixtyFour, many := made.cell("snip, 64 connections", 64), made.cell("snip, 256 connections", 256)
	memorySixtyFour := kept.cell("snip in memory, 64 connections", 64)
	memoryMany := kept.cell("snip in memory, 256 connections", 256)
	appended := &cell{name: "fdatasync, 4 KiB appended", measure: b.flushes(true)}
	overwritten := &cell{name: "fdatasync, 4 KiB overwritten", measure: b.flushes(false)}
	if err := b.inTurn(ctx, "creations", appended, overwritten, one, sixteen,
		sixtyFour, memorySixtyFour, many, memoryMany); err != nil {
		return err
	}
	if _, err := kept.check(ctx, memory); err != nil {
		return fmt.Errorf("in memory: %w", err)
	}
	snip.kill()
	again, err := b.startSnip(ctx, store, unlimited...)
	if err != nil {
		return err
	}
	defer again.kill()
	counted, err := made.check(ctx, again)
	if err != nil {
		return err
	}
	t.series("creations, counted and durable", "to 1 connection")
	t.row(appended, nil)
	t.row(overwritten, nil)
	t.row(one, nil)
	for _, c := range []*cell{sixteen, sixtyFour, many} {
		t.row(c, one)
	}
	t.series("creations, beside those in memory", "to memory")
	t.row(memorySixtyFour, nil)
	t.row(sixtyFour, memorySixtyFour)
	t.row(memoryMany, nil)
	t.row(many, memoryMany)
	t.note("creations: %s acknowledged; after a kill and a new start %s are counted (up to %s were cut off unanswered at the ends of runs), and %d of %d samples lead on",
		whole(float64(made.acknowledged)), whole(float64(counted)), whole(float64(made.cutOff)), len(made.samples), len(made.samples))
	toMemory, manyToMemory := sixtyFour.rate.over(memorySixtyFour.rate), many.rate.over(memoryMany.rate)
	t.target("creations at 64 connections to 1", sixtyFour.rate.over(one.rate), 5)
	t.target("creations at 64 connections to those in memory", toMemory, 0.5)
	t.target("that ratio at 256 connections to the one at 64", manyToMemory.over(toMemory), 1)
	return nil
}

// startMemory starts the binary whose store is in memory, and makes sure that it
// is: a build without that store would be compared with itself.
func (b *bench) startMemory(ctx context.Context) (*server, error) {
	const store = "memory.db"
	first, err := b.startBinary(ctx, b.memory, store, unlimited...)
	if err != nil {
		return nil, err
	}
	a, err := first.create(ctx, destination(0))
	first.kill()
	if err != nil {
		return nil, err
	}
	if a.Status != http.StatusCreated {
		return nil, fmt.Errorf("%s: making a link: status %d, %q", b.memory, a.Status, a.Body)
	}
	again, err := b.startBinary(ctx, b.memory, store, unlimited...)
	if err != nil {
		return nil, err
	}
	a, err = request(ctx, http.MethodGet, again.url+"/"+path.Base(a.Header.Get("Location")), "")
	if err == nil && a.Status != http.StatusNotFound {
		err = fmt.Errorf("%s has kept a link over a new start (status %d), so its store is not in memory: build it with -tags memstore", b.memory, a.Status)
	}
	if err != nil {
		again.kill()
		return nil, err
	}
	return again, nil
}

// creation keeps account of the links that were made.
type creation struct {
	bench        *bench
	server       *server
	before       int // how many were counted already
	runs         int
	acknowledged int
	cutOff       int // at most so many requests had no answer when their run ended
	samples      []string
}

func (m *creation) cell(name string, connections int) *cell {
	return &cell{
		name: name,
		measure: func(ctx context.Context, d time.Duration) (result, error) {
			m.runs++
			r, err := m.bench.run(ctx, load{"create.lua", m.server, "/api/links", connections, []string{fmt.Sprint("run", m.runs)}}, d)
			m.acknowledged += r.answers
			m.cutOff += connections
			m.samples = append(m.samples, r.samples...)
			return r, err
		},
	}
}

// check compares what was acknowledged with what the server finds in its file.
// wrk drops its connections at the end of a run, each with a request under way:
// such a link may have been made without an answer, so the count may be higher
// by that many and never lower.
func (m *creation) check(ctx context.Context, s *server) (counted int, err error) {
	if counted, err = s.used(ctx); err != nil {
		return 0, err
	}
	counted -= m.before
	if counted < m.acknowledged || counted > m.acknowledged+m.cutOff {
		return 0, fmt.Errorf("%d links were acknowledged and up to %d cut off, but %d are counted", m.acknowledged, m.cutOff, counted)
	}
	for _, location := range m.samples {
		if err := s.follows(ctx, path.Base(location), ""); err != nil {
			return 0, fmt.Errorf("an acknowledged link is lost: %w", err)
		}
	}
	return counted, nil
}
