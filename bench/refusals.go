package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"snip/quota"
	"snip/shortener/boltstore"
)

// refusals measures how fast snip says no, to a client that is too fast and to
// one that has used up its day, beside a bare server that reads the same request
// and sends the same bytes. Saying no must not write.
func (b *bench) refusals(ctx context.Context, t *table) error {
	throttled, err := b.startRefusing(ctx, "throttled.db", append(slices.Clip(huge), "--throttle-every", "24h", "--throttle-burst", "1")...)
	if err != nil {
		return err
	}
	defer throttled.kill()
	full, err := b.startRefusing(ctx, "full.db", unthrottled, "--quota-client", "1")
	if err != nil {
		return err
	}
	defer full.kill()
	cells := append(throttled.cells(b, "throttle"), full.cells(b, "quota")...)
	if err := b.inTurn(ctx, "refusals", cells...); err != nil {
		return err
	}
	for _, r := range []*refusing{throttled, full} {
		if err := r.check(); err != nil {
			return err
		}
	}
	t.series("refusals (429), 64 connections", "to bare")
	for i := 0; i < len(cells); i += 2 {
		t.row(cells[i], nil)
		t.row(cells[i+1], cells[i])
	}
	t.target("refusals by the throttle to bare net/http", cells[1].rate.over(cells[0].rate), 0.9)
	t.target("refusals by the quota to bare net/http", cells[3].rate.over(cells[2].rate), 0.8)
	t.note("refusals: no link was made and no counter has changed, as read from the files afterwards")
	return nil
}

// refusing is a server that refuses its only client from now on, and a bare one
// that answers with the same bytes.
type refusing struct {
	snip, bare *server
	file       string
	begun      time.Time
	written    int64 // bytes that snip had written before
}

func (b *bench) startRefusing(ctx context.Context, store string, settings ...string) (_ *refusing, err error) {
	r := &refusing{file: filepath.Join(b.dir, store)}
	defer func() {
		if err != nil {
			r.kill()
		}
	}()
	if r.snip, err = b.startSnip(ctx, store, settings...); err != nil {
		return nil, err
	}
	first, err := r.snip.create(ctx, "https://example.org/first")
	if err != nil {
		return nil, err
	}
	second, err := r.snip.create(ctx, "https://example.org/refused")
	if err != nil {
		return nil, err
	}
	if first.Status != http.StatusCreated || second.Status != http.StatusTooManyRequests {
		return nil, fmt.Errorf("one link was to be made and the next refused, but the answers are %d and %d", first.Status, second.Status)
	}
	if r.bare, err = b.startBare(ctx, second, http.MethodPost, "/api/links"); err != nil {
		return nil, err
	}
	r.begun = time.Now()
	r.written, err = r.snip.written()
	return r, err
}

func (r *refusing) cells(b *bench, layer string) []*cell {
	return []*cell{
		b.loaded("bare net/http, as the "+layer, load{"refuse.lua", r.bare, "/api/links", 64, nil}),
		b.loaded("snip, by the "+layer, load{"refuse.lua", r.snip, "/api/links", 64, nil}),
	}
}

// writtenEachMinute bounds what snip may write while it refuses everything: once a
// minute it adds its refusals to the history of the day.
const writtenEachMinute = 256 << 10

// check stops the server and fails unless the first link is the only one, every
// counter is 1, and next to nothing was written.
func (r *refusing) check() error {
	written, err := r.snip.written()
	if err != nil {
		return err
	}
	minutes := int64(time.Since(r.begun)/time.Minute) + 1
	if wrote := written - r.written; wrote > minutes*writtenEachMinute {
		return fmt.Errorf("%s: %d bytes were written while everything was refused", r.file, wrote)
	}
	r.snip.kill()
	found, err := boltstore.Check(r.file)
	if err != nil {
		return err
	}
	if found.Links != 1 || len(found.Problems) > 0 {
		return fmt.Errorf("%s: %d links where 1 was made; problems: %q", r.file, found.Links, found.Problems)
	}
	want := map[quota.Level]int64{quota.LevelService: 1, quota.LevelNetwork: 1, quota.LevelClient: 1}
	for _, day := range found.Days {
		if !maps.Equal(day.Used, want) {
			return fmt.Errorf("%s: the counters are %v where 1 link was made", r.file, day.Used)
		}
	}
	return nil
}

func (r *refusing) kill() {
	for _, s := range []*server{r.snip, r.bare} {
		if s != nil {
			s.kill()
		}
	}
}
