package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// growth measures what becomes of a server as its file grows: how fast it reads
// and writes, how soon it is ready, and how much memory and disk it takes.
func (b *bench) growth(ctx context.Context, t *table) error {
	var files []*grown
	defer func() {
		for _, g := range files {
			g.kill()
		}
	}()
	for i, count := range b.sizes {
		g := &grown{bench: b, count: count, store: fmt.Sprintf("growth-%d.db", count)}
		if i == len(b.sizes)-1 {
			g.store = largeFile
		}
		files = append(files, g)
		if err := g.prepare(ctx); err != nil {
			return err
		}
	}
	small, large := files[0], files[len(files)-1]
	cells := []*cell{small.hot, large.hot, small.unknown, large.unknown}
	for _, g := range files {
		cells = append(cells, g.uniform) // last, so that the memory is what they leave
	}
	if err := b.inTurn(ctx, "growth, reading", cells...); err != nil {
		return err
	}
	var writing []*cell
	for _, g := range files {
		if err := g.memory(); err != nil {
			return err
		}
		if err := g.restart(ctx); err != nil {
			return err
		}
		writing = append(writing, g.creations)
	}
	if err := b.inTurn(ctx, "growth, writing", writing...); err != nil {
		return err
	}
	for _, g := range files {
		if err := g.check(ctx, t); err != nil {
			return err
		}
	}

	t.series("as the file grows, 64 connections", "to "+whole(float64(small.count))+" links")
	for _, kind := range [][]*cell{{small.hot, large.hot}, {small.unknown, large.unknown}, cells[4:], writing} {
		t.row(kind[0], nil)
		for _, c := range kind[1:] {
			t.row(c, kind[0])
		}
	}
	t.block("what the file takes", "file MiB", "bytes a link, but its destination", "ready in ms", "RssAnon MiB", "RssFile MiB")
	for _, g := range files {
		t.rows = append(t.rows, strings.Join([]string{"  " + whole(float64(g.count)) + " links", whole(float64(g.size) / (1 << 20)),
			whole(g.overhead()), g.ready.show(hundredths), hundredths(g.anon), hundredths(g.mapped)}, "\t"))
	}
	ratio := fmt.Sprintf("at %s links to %s", whole(float64(large.count)), whole(float64(small.count)))
	t.target("redirects of 10 links "+ratio, large.hot.rate.over(small.hot.rate), 0.9)
	t.target("unknown slugs "+ratio, large.unknown.rate.over(small.unknown.rate), 0.9)
	t.target("creations "+ratio, large.creations.rate.over(small.creations.rate), 0.9)
	at := fmt.Sprintf(" at %s links", whole(float64(large.count)))
	t.limit("RssAnon in MiB"+at, figures{large.anon}, 64)
	t.limit("ms from start to ready"+at, large.ready, 100)
	t.limit("bytes a link beside its destination"+at, figures{large.overhead()}, 200)
	return nil
}

// grown is a file of one size, and what is found with it.
type grown struct {
	bench  *bench
	count  int
	links  *links
	store  string
	server *server
	made   creation

	hot, uniform, unknown, creations *cell

	size         int64   // of the file, before links are added
	ready        figures // milliseconds
	anon, mapped float64 // MiB
}

// prepare makes the file and times a few starts, of which the last one stays.
func (g *grown) prepare(ctx context.Context) (err error) {
	b := g.bench
	if g.links, err = b.fill(ctx, g.store, g.count); err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(b.dir, g.store))
	if err != nil {
		return err
	}
	g.size = info.Size()
	if err := b.warm(g.store); err != nil {
		return err
	}
	for range 5 {
		g.kill()
		if err := g.start(ctx); err != nil {
			return err
		}
	}
	size := ", " + whole(float64(g.count)) + " links"
	list, err := b.writeList(fmt.Sprint("hot-", g.count), few, g.links.hot)
	if err != nil {
		return err
	}
	g.hot = &cell{name: "redirects of 10" + size, measure: func(ctx context.Context, d time.Duration) (result, error) {
		return b.run(ctx, follow(g.server, list, found), d)
	}}
	g.uniform = b.drawn("redirects of all alike"+size, g.server, found, g.links.slug, uniformly(g.count, 3))
	g.unknown = b.drawn("unknown slugs"+size, g.server, missing, g.links.unknown, uniformly(g.count, 4))
	return nil
}

// start starts the server and notes how long it takes until it is ready.
func (g *grown) start(ctx context.Context) (err error) {
	begin := time.Now()
	if g.server, err = g.bench.startSnip(ctx, g.store, unlimited...); err != nil {
		return err
	}
	for {
		a, err := request(ctx, http.MethodGet, g.server.url+"/readyz", "")
		if err != nil {
			return err
		}
		if a.Status == http.StatusOK {
			g.ready = append(g.ready, time.Since(begin).Seconds()*1e3)
			return nil
		}
	}
}

// memory reads what the process holds: RssAnon is its own, and RssFile is mostly
// the part of the data file that it has read, which the kernel may take back.
func (g *grown) memory() error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.server.cmd.Process.Pid))
	if err != nil {
		return fmt.Errorf("the server has ended: %w", err)
	}
	if g.anon, err = statusMiB(string(status), "RssAnon"); err != nil {
		return err
	}
	g.mapped, err = statusMiB(string(status), "RssFile")
	return err
}

// statusMiB reads a field of proc_pid_status(5), all of which are in KiB.
func statusMiB(status, field string) (float64, error) {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			var kib float64
			_, err := fmt.Sscanf(value, "%f kB", &kib)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("the kernel does not tell %s", field)
}

// restart starts the server anew, with nothing in its own cache, to be written to.
func (g *grown) restart(ctx context.Context) (err error) {
	g.kill()
	if err := g.bench.warm(g.store); err != nil {
		return err
	}
	if g.server, err = g.bench.startSnip(ctx, g.store, unlimited...); err != nil {
		return err
	}
	g.made = creation{bench: g.bench, server: g.server}
	if g.made.before, err = g.server.used(ctx); err != nil {
		return err
	}
	g.creations = g.made.cell("creations, "+whole(float64(g.count))+" links", 64)
	return nil
}

// check kills the server and finds the links that were made.
func (g *grown) check(ctx context.Context, t *table) (err error) {
	g.kill()
	if g.server, err = g.bench.startSnip(ctx, g.store, unlimited...); err != nil {
		return err
	}
	counted, err := g.made.check(ctx, g.server)
	if err != nil {
		return err
	}
	t.note("growth: the file of %s links had %s when its last was made", whole(float64(g.count)), whole(float64(g.count+counted)))
	return nil
}

// overhead is how many bytes a link takes beside its destination, free pages and
// all.
func (g *grown) overhead() float64 {
	return float64(g.size)/float64(g.count) - float64(len(destination(0)))
}

func (g *grown) kill() {
	if g.server != nil {
		g.server.kill()
	}
}
