package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// draws is how many slugs are drawn for each second of a measurement, which is
// more than wrk can ask for. If it should get through them, it starts again.
const draws = 130_000

// uniformly draws any link as often as any other.
func uniformly(links int, seed uint64) func() int {
	r := rand.New(rand.NewPCG(seed, 0))
	return func() int { return r.IntN(links) }
}

// byPopularity draws from a million of the links, or from all if they are fewer,
// as visitors do: the most popular one is asked for twice as often as the second
// and three times as often as the third (Zipf's law, with an exponent of 1.01,
// as it has to be above 1). They lie scattered over the file.
func byPopularity(links int, seed uint64) func() int {
	// A prime, which no number of links here has as a factor: no two ranks meet.
	const apart = 7_368_787
	zipf := rand.NewZipf(rand.New(rand.NewPCG(seed, 0)), 1.01, 1, uint64(min(links, 1_000_000)-1))
	return func() int { return int(zipf.Uint64()) * apart % links }
}

// drawn is like loaded, for follow.lua, which goes through a list that is drawn
// anew each time, so that no round finds what the one before left in a cache.
func (b *bench) drawn(name string, s *server, expect string, slug func(int) string, draw func() int) *cell {
	return &cell{name: name, measure: func(ctx context.Context, d time.Duration) (result, error) {
		list, err := b.writeList("drawn", draws*int(d.Seconds()), func(int) string { return slug(draw()) })
		if err != nil {
			return result{}, err
		}
		return b.run(ctx, follow(s, list, expect), d)
	}}
}

// writeList writes a file of slugs for follow.lua, and returns its name.
func (b *bench) writeList(name string, n int, slug func(i int) string) (string, error) {
	name = filepath.Join(b.dir, name)
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for i := range n {
		fmt.Fprintln(w, slug(i))
	}
	return name, w.Flush()
}

// What follow.lua may expect.
const (
	found   = "found"
	missing = "missing"
)

// follow is a load of 64 connections that get the slugs of a list in turn.
func follow(s *server, list, expect string) load {
	return load{"follow.lua", s, "", 64, []string{list, "GET", expect}}
}
