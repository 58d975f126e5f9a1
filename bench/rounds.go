package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// cell is one thing that is measured, once in every round.
type cell struct {
	name    string
	measure func(context.Context, time.Duration) (result, error)

	rate, p50, p99, cpu, disk, busy figures
}

// inTurn measures the cells one after the other, round by round, after a second
// of each to warm up.
func (b *bench) inTurn(ctx context.Context, series string, cells ...*cell) error {
	for round := range b.rounds + 1 {
		if round > 0 {
			fmt.Fprintf(os.Stderr, "%s: round %d of %d\n", series, round, b.rounds)
		}
		for _, c := range cells {
			d := b.each
			if round == 0 {
				d = time.Second
			}
			r, err := c.measure(ctx, d)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if round == 0 {
				continue
			}
			c.rate = append(c.rate, r.rate)
			c.p50, c.p99 = append(c.p50, r.p50), append(c.p99, r.p99)
			c.cpu, c.disk = append(c.cpu, r.cpu), append(c.disk, r.disk)
			c.busy = append(c.busy, r.busy)
		}
	}
	return nil
}

// loaded returns a cell that puts a load on.
func (b *bench) loaded(name string, l load) *cell {
	return &cell{name: name, measure: func(ctx context.Context, d time.Duration) (result, error) {
		return b.run(ctx, l, d)
	}}
}
