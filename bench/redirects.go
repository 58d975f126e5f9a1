package main

import (
	"context"
	"net/http"
)

// redirects measures following links, in a small file and in a large one: a few
// that everybody follows, many in turn, by popularity and all alike, beside a bare
// server that sends the same answer.
func (b *bench) redirects(ctx context.Context, t *table) error {
	many, err := b.fill(ctx, "redirects.db", 10_000)
	if err != nil {
		return err
	}
	most, err := b.fill(ctx, largeFile, b.large())
	if err != nil {
		return err
	}
	small, err := b.startSnip(ctx, "redirects.db", unlimited...)
	if err != nil {
		return err
	}
	defer small.kill()
	if err := b.warm(largeFile); err != nil {
		return err
	}
	large, err := b.startSnip(ctx, largeFile, unlimited...)
	if err != nil {
		return err
	}
	defer large.kill()
	like, err := request(ctx, http.MethodGet, small.url+"/"+many.slug(0), "")
	if err != nil {
		return err
	}
	bare, err := b.startBare(ctx, like, http.MethodGet, "/"+many.slug(0))
	if err != nil {
		return err
	}
	defer bare.kill()

	hot, err := b.writeList("hot", few, many.hot)
	if err != nil {
		return err
	}
	all, err := b.writeList("all", many.count, many.slug)
	if err != nil {
		return err
	}
	largeHot, err := b.writeList("large-hot", few, most.hot)
	if err != nil {
		return err
	}
	size := "snip, " + whole(float64(b.large())) + " links"
	bareCell := b.loaded("bare net/http", follow(bare, hot, found))
	hotCell := b.loaded("snip, 10,000 links, 10 of them", follow(small, hot, found))
	allCell := b.loaded("snip, 10,000 links in turn", follow(small, all, found))
	largeHotCell := b.loaded(size+", 10 of them", follow(large, largeHot, found))
	popular := b.drawn(size+", by popularity", large, found, most.slug, byPopularity(b.large(), 1))
	uniform := b.drawn(size+", all alike", large, found, most.slug, uniformly(b.large(), 2))
	snips := []*cell{hotCell, allCell, largeHotCell, popular, uniform}
	if err := b.inTurn(ctx, "redirects", append([]*cell{bareCell}, snips...)...); err != nil {
		return err
	}
	t.series("redirects, 64 connections", "to bare")
	t.row(bareCell, nil)
	for _, c := range snips {
		t.row(c, bareCell)
	}
	t.target("redirects of 10 links to bare net/http", hotCell.rate.over(bareCell.rate), 0.95)
	t.target("redirects of 10,000 links in turn to bare net/http", allCell.rate.over(bareCell.rate), 0.8)
	t.target("redirects all over the large file to bare net/http", uniform.rate.over(bareCell.rate), 0.7)
	t.limit("p99 of redirects of 10 links to bare net/http", hotCell.p99.over(bareCell.p99), 1.3)
	t.limit("p99 of redirects all over the large file to bare net/http", uniform.p99.over(bareCell.p99), 1.3)
	return nil
}
