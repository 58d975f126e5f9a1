// Command bench measures what a built snip does on this machine, beside what the
// machine itself can do: a bare net/http server that sends the same bytes, and
// the disk's own flush.
//
// It drives the binary from outside, over loopback, with wrk. Whatever is compared runs in turn, round by round, because one series
// later the same machine may be a fifth faster or slower: trust the ratios. A
// series fails when an answer is not the one expected, when an acknowledged link is
// not there after a kill, or when a refusal has written something. The other series
// go on, and the exit status is 1. A missed target is reported and is not a failure.
//
// Only the files of up to ten million links are made with the server's own store:
// by requests that would take the longest part of the run.
//
// It is for Linux. Start with main; each series is a file of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// atMost bounds a whole run, which takes about seventeen minutes.
	atMost = 30 * time.Minute
	// quickAtMost bounds a run of two rounds, which takes about two minutes.
	quickAtMost = 10 * time.Minute
	// room is what the data files need on the disk, with some to spare.
	room = 3 << 30
)

// largeFile is shared by the series that read it; the last one writes to it.
const largeFile = "large.db"

// bench is what all series share.
type bench struct {
	snip   string            // the binary that is measured
	memory string            // the same with its store in memory
	self   string            // this program, which is the bare server as well
	dir    string            // of data files and scripts; on a disk
	rounds int               // of each series
	each   time.Duration     // of one measurement, in whole seconds
	pinned bool              // servers on one core, load on another
	sizes  []int             // of the files that show growth, smallest first
	filled map[string]*links // by file
	remove []string          // folders outside of dir
}

func (b *bench) large() int { return b.sizes[len(b.sizes)-1] }

// series is one block of the table, or a few that are measured together.
type series struct {
	name    string
	measure func(context.Context, *table) error
}

func (b *bench) series() []series {
	return []series{
		{"redirects", b.redirects},
		{"reads", b.reads},
		{"refusals", b.refusals},
		{"creations", b.creations},
		{"mixed", b.mixed},
		{"postgres", b.postgres},
		{"growth", b.growth}, // last, as it writes to the large file
	}
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
	memory := flags.String("memory", "../bin/snip-memory", "the same `binary` built with -tags memstore")
	dir := flags.String("dir", ".", "a `folder` on the disk to measure, with 3 GiB free (2 GiB are needed, a file of 10 million links; -quick needs less); what is put there is removed again")
	only := flags.String("only", "", "only the series whose name has this `word` in it: redirects, reads, refusals, creations, mixed, postgres, growth")
	quick := flags.Bool("quick", false, "two rounds of one second, and 100,000 links in place of 10 million: to try it out, not to quote")
	bare := flags.String("bare", "", "be the bare server that gives this `answer` (used by the program itself)")
	offer := flags.String("offer", "", "put this `load` on a server at a fixed rate (used by the program itself)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *bare != "" {
		return serveBare(ctx, *bare)
	}
	if *offer != "" {
		return putOffer(ctx, *offer, os.Stdout)
	}
	longest := atMost
	if *quick {
		longest = quickAtMost
	}
	awaitDay(ctx, longest)
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	b := &bench{rounds: 5, each: 3 * time.Second, pinned: canPin(ctx), filled: map[string]*links{}, sizes: []int{10_000, 1_000_000, mostLinks}}
	if *quick {
		b.rounds, b.each, b.sizes = 2, time.Second, []int{10_000, 100_000}
	} else if err := hasRoom(*dir); err != nil {
		return err
	}
	chosen := slices.DeleteFunc(b.series(), func(s series) bool { return !strings.Contains(s.name, *only) })
	if len(chosen) == 0 {
		return fmt.Errorf("-only %s: no series has that in its name", *only)
	}
	var err error
	if b.snip, err = filepath.Abs(*snip); err != nil {
		return err
	}
	if b.memory, err = filepath.Abs(*memory); err != nil {
		return err
	}
	return b.measure(ctx, *dir, chosen)
}

func (b *bench) measure(ctx context.Context, dir string, chosen []series) (err error) {
	now := time.Now().UTC()
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(dir, "bench-"); err != nil {
		return err
	}
	defer func() {
		for _, dir := range append(b.remove, b.dir) {
			os.RemoveAll(dir)
		}
	}()
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
	fmt.Print(head)
	return measureEach(ctx, chosen, os.Stdout)
}

// awaitDay waits for the next UTC day where a run of that length could go past
// midnight: counters begin at zero then, and the checks here rely on them.
func awaitDay(ctx context.Context, run time.Duration) {
	now := time.Now().UTC()
	left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
	if left > run {
		return
	}
	fmt.Fprintf(os.Stderr, "the UTC day ends in %s: waiting for the next one\n", left.Round(time.Second))
	select {
	case <-time.After(left + time.Second):
	case <-ctx.Done():
	}
}

// measureEach prints the block of each series when that series is done, and what it
// measured before it failed. The others go on, unless ctx has ended.
func measureEach(ctx context.Context, chosen []series, out io.Writer) error {
	var failed []error
	for _, s := range chosen {
		t := &table{}
		err := s.measure(ctx, t)
		if err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
			t.notes = append(t.notes, "FAILED  "+err.Error())
		}
		failed = append(failed, err, t.print(out))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}
