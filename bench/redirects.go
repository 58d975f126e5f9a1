package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// redirects measures following links: a few that everybody follows, and many in
// turn, beside a bare server that sends the same answer.
func (b *bench) redirects(ctx context.Context, t *table) error {
	const connections, few, many = 64, 10, 10_000
	snip, err := b.startSnip(ctx, "redirects.db", append(huge, unthrottled)...)
	if err != nil {
		return err
	}
	defer snip.kill()
	slugs, err := snip.makeLinks(ctx, many)
	if err != nil {
		return err
	}
	hot, all := filepath.Join(b.dir, "hot"), filepath.Join(b.dir, "all")
	if err := os.WriteFile(hot, []byte(strings.Join(slugs[:few], "\n")+"\n"), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(all, []byte(strings.Join(slugs, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	like, err := request(ctx, http.MethodGet, snip.url+"/"+slugs[0], "")
	if err != nil {
		return err
	}
	bare, err := b.startBare(ctx, like, http.MethodGet, "/"+slugs[0])
	if err != nil {
		return err
	}
	defer bare.kill()

	bareCell := b.loaded("bare net/http", load{"follow.lua", bare, "", connections, []string{hot}})
	hotCell := b.loaded("snip, 10 links", load{"follow.lua", snip, "", connections, []string{hot}})
	allCell := b.loaded("snip, 10,000 links", load{"follow.lua", snip, "", connections, []string{all}})
	if err := b.inTurn(ctx, "redirects", bareCell, hotCell, allCell); err != nil {
		return err
	}
	t.series("redirects, 64 connections", "to bare")
	t.row(bareCell, nil)
	t.row(hotCell, bareCell)
	t.row(allCell, bareCell)
	t.target("redirects of 10 links to bare net/http", hotCell.rate.over(bareCell.rate), 0.8)
	t.target("redirects of 10,000 links to bare net/http", allCell.rate.over(bareCell.rate), 0.8)
	return nil
}
