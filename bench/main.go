// Command bench measures what a built snip does on this machine, beside what the
// machine itself can do: a bare net/http server that sends the same bytes, and
// the disk's own flush.
//
// It drives the binary from outside, over loopback, with wrk, and shares no code
// with it. Whatever is compared runs in turn, round by round, because one series
// later the same machine may be a fifth faster or slower: trust the ratios. It
// fails when an answer is not the one expected, when an acknowledged link is not
// there after a kill, or when a refusal has written something. A target that is
// missed is reported and is not a failure.
//
// It is for Linux. Start with main; each series is a file of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// atMost bounds a whole run, which takes about four minutes.
const atMost = 10 * time.Minute

// bench is what all series share.
type bench struct {
	snip   string        // the binary that is measured
	self   string        // this program, which is the bare server as well
	dir    string        // of data files and scripts; on a disk
	rounds int           // of each series
	each   time.Duration // of one measurement, in whole seconds
	pinned bool          // servers on one core, load on another
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	snip := flags.String("snip", "../bin/snip", "the `binary` to measure")
	dir := flags.String("dir", ".", "a `folder` on the disk to measure; what is put there is removed again")
	quick := flags.Bool("quick", false, "three rounds of one second: to try it out, not to quote")
	bare := flags.String("bare", "", "be the bare server that gives this `answer` (used by the program itself)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *bare != "" {
		return serveBare(ctx, *bare)
	}
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	b := &bench{rounds: 6, each: 3 * time.Second, pinned: canPin(ctx)}
	if *quick {
		b.rounds, b.each = 3, time.Second
	}
	return b.measure(ctx, *snip, *dir)
}

func (b *bench) measure(ctx context.Context, snip, dir string) (err error) {
	// Counts start anew with the UTC day, and the checks here rely on them.
	now := time.Now().UTC()
	if left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now); left < atMost {
		return fmt.Errorf("the UTC day ends in %s, and counts start anew then: run it afterwards", left.Round(time.Second))
	}
	if b.snip, err = filepath.Abs(snip); err != nil {
		return err
	}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(dir, "bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return err
	}
	if err := b.writeScripts(); err != nil {
		return err
	}
	head, err := b.heading(ctx, now)
	if err != nil {
		return err
	}
	t := &table{heading: head}
	for _, series := range []func(context.Context, *table) error{b.redirects, b.creations, b.refusals} {
		if err := series(ctx, t); err != nil {
			return err
		}
	}
	return t.print(os.Stdout)
}
