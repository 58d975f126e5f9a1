package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// flushes returns a measurement of how often a second the disk makes 4 KiB
// durable, at the end of a growing file or always in one place. A commit of the
// store waits for two such flushes.
func (b *bench) flushes(growing bool) func(context.Context, time.Duration) (result, error) {
	return func(ctx context.Context, d time.Duration) (_ result, err error) {
		f, err := os.Create(filepath.Join(b.dir, "flushed"))
		if err != nil {
			return result{}, err
		}
		defer f.Close()
		block := make([]byte, 4096)
		var took figures // milliseconds
		begin := time.Now()
		// A third is enough, and leaves the time to the server.
		for end := begin.Add(min(d/3, time.Second)); time.Now().Before(end) && ctx.Err() == nil; {
			offset := int64(0)
			if growing {
				offset = int64(len(took) * len(block))
			}
			start := time.Now()
			if _, err := f.WriteAt(block, offset); err != nil {
				return result{}, err
			}
			if err := syscall.Fdatasync(int(f.Fd())); err != nil {
				return result{}, err
			}
			took = append(took, time.Since(start).Seconds()*1e3)
		}
		if err := ctx.Err(); err != nil {
			return result{}, err
		}
		rate := float64(len(took)) / time.Since(begin).Seconds()
		slices.Sort(took)
		return result{rate: rate, p50: took.median(), p99: took[len(took)*99/100]}, nil
	}
}
