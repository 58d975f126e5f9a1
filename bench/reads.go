package main

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
)

// reads measures the other answers that change nothing: HEAD of a link, a slug
// that nobody has, and the page with the form, each beside a bare server that
// sends the same bytes.
func (b *bench) reads(ctx context.Context, t *table) error {
	links, err := b.fill(ctx, "reads.db", 10_000)
	if err != nil {
		return err
	}
	snip, err := b.startSnip(ctx, "reads.db", unlimited...)
	if err != nil {
		return err
	}
	defer snip.kill()
	kinds := []*read{
		{name: "HEAD of a link", method: http.MethodHead, path: links.slug(0), status: http.StatusFound, expect: found},
		{name: "GET of an unknown slug", method: http.MethodGet, path: links.unknown(0), status: http.StatusNotFound, expect: missing},
		{name: "GET of the form", method: http.MethodGet, status: http.StatusOK, expect: found},
	}
	var cells []*cell
	for i, r := range kinds {
		if err := r.start(ctx, b, snip); err != nil {
			return err
		}
		defer r.bare.kill()
		list, err := b.writeList(fmt.Sprint("read", i), 1, func(int) string { return r.path })
		if err != nil {
			return err
		}
		cells = append(cells,
			b.loaded("bare net/http, "+r.name, load{"follow.lua", r.bare, "", 64, []string{list, r.method, r.expect}}),
			b.loaded("snip, "+r.name, load{"follow.lua", snip, "", 64, []string{list, r.method, r.expect}}))
	}
	if err := b.inTurn(ctx, "reads", cells...); err != nil {
		return err
	}
	t.series("other reads, 64 connections", "to bare")
	for i, r := range kinds {
		if err := r.unchanged(ctx, snip); err != nil {
			return err
		}
		t.row(cells[2*i], nil)
		t.row(cells[2*i+1], cells[2*i])
	}
	return nil
}

// read is one request, and what snip answers.
type read struct {
	name, method, path string
	status             int
	expect             string // by follow.lua
	answer             answer
	bare               *server
}

func (r *read) start(ctx context.Context, b *bench, snip *server) (err error) {
	if r.answer, err = request(ctx, r.method, snip.url+"/"+r.path, ""); err != nil {
		return err
	}
	if r.answer.Status != r.status {
		return fmt.Errorf("%s: status %d where %d was expected", r.name, r.answer.Status, r.status)
	}
	r.bare, err = b.startBare(ctx, r.answer, r.method, "/"+r.path)
	return err
}

// unchanged fails unless the answer is still what the bare server sends.
func (r *read) unchanged(ctx context.Context, snip *server) error {
	now, err := request(ctx, r.method, snip.url+"/"+r.path, "")
	if err == nil && !reflect.DeepEqual(now, r.answer) {
		err = fmt.Errorf("%s: the answer was\n%v\nand has become\n%v", r.name, r.answer, now)
	}
	return err
}
