package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/boltstore"
)

// holdsFile names the data file of a process of these tests that reserves, commits,
// releases and keeps answers. Its one argument is how many pieces of work each of its
// workers does.
const holdsFile = "SNIP_TEST_HOLDS_FILE"

// holdsNoon is the instant of all that it does.
var holdsNoon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// workLevels are the levels of a piece of work with what it may cost and does cost.
var workLevels = []struct {
	level        quota.Level
	cost, actual int64
}{{"organisation", 7, 3}, {"team", 5, 5}, {"member", 4, 6}}

// work is the n-th piece of work of a worker. Every fourth of them is left pending.
func work(worker, n int) quota.Reservation {
	day := quota.DayOf(holdsNoon)
	r := quota.Reservation{ID: fmt.Sprintf("%d-%d", worker, n), ExpiresAt: holdsNoon.Add(time.Hour), OnExpiry: quota.Committed}
	for _, l := range workLevels {
		r.Charges = append(r.Charges, quota.Charge{
			Counter: quota.Counter{Level: l.level, Period: day.Label}, Cost: l.cost, Max: 1 << 40, ResetAt: day.End,
		})
	}
	return r
}

// answeredLink is the link of a piece of work, and its answer.
func answeredLink(worker, n int) shortener.Creation {
	day := quota.DayOf(holdsNoon).Label
	ref := shortener.AnswerRef{Day: day, ID: shortener.AnswerID{byte(worker), byte(n >> 8), byte(n)}}
	return shortener.Creation{
		Day:    day,
		Links:  []shortener.Link{{Slug: shortener.Slug(fmt.Sprintf("w-%d-%d", worker, n)), Destination: "https://example.org/", CreatedAt: holdsNoon, Day: day}},
		Answer: &shortener.Answer{AnswerRef: ref, At: holdsNoon, Sealed: []byte("sealed")}, Replays: []shortener.AnswerRef{ref},
	}
}

// hold does one piece of work after another with a few workers, and writes a line to
// standard error for each step once the store has acknowledged it.
func hold(path, pieces string) error {
	most, err := strconv.Atoi(pieces)
	if err != nil {
		return err
	}
	store, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := store.EnsureSecret(ctx, quota.DayOf(holdsNoon).Label); err != nil {
		return err
	}
	var wg sync.WaitGroup
	for worker := range 3 {
		wg.Go(func() {
			for n := range most {
				r := work(worker, n)
				if _, _, err := store.Reserve(ctx, r); err != nil {
					return
				}
				fmt.Fprintf(os.Stderr, `{"msg":"pending","id":%q}`+"\n", r.ID)
				var state quota.State
				switch n % 4 {
				case 0:
					var actual []int64
					for _, l := range workLevels {
						actual = append(actual, l.actual)
					}
					_, err = store.Commit(ctx, r.ID, actual, holdsNoon)
					state = quota.Committed
				case 1:
					_, err = store.Release(ctx, r.ID, time.Now())
					state = quota.Released
				case 2:
					err = store.Create(ctx, answeredLink(worker, n))
					state = "answered"
				default:
					continue
				}
				if err != nil {
					return
				}
				fmt.Fprintf(os.Stderr, `{"msg":%q,"id":%q}`+"\n", state, r.ID)
			}
		})
	}
	wg.Wait()
	return store.Close()
}

// TestKillReservations kills a process before each of the steps that make a commit.
// Whatever the step, every reservation, commit, release and answer that was
// acknowledged is there and none is half done; and when what was pending has been
// settled, nothing that may have been paid is missing from any level.
func TestKillReservations(t *testing.T) {
	t.Parallel()
	needStrace(t)
	base := newBase(t)
	random := rand.New(rand.NewPCG(*moments, 2))
	reached := map[string]int{}
	points := []string{"writing a page", "flushing pages", "writing the meta page", "flushing the meta page"}
	missed := func(p string) bool { return reached[p] == 0 }
	acknowledged := 0
	least, most := rounds(6, 300), rounds(80, 1000)
	for i := 0; i < least || slices.ContainsFunc(points, missed); i++ {
		if i == most {
			t.Fatalf("killed when: %v, and never at one of %v", reached, points)
		}
		name := []string{"pwrite64", "fdatasync", "pwrite64"}[i%3]
		point, said := killHolds(t, base, fmt.Sprintf("%s:signal=KILL:when=%d", name, 4+random.IntN(24)))
		reached[point]++
		acknowledged += said
		if t.Failed() {
			t.Fatalf("round %d, seed %d", i, *moments)
		}
	}
	if acknowledged < least {
		t.Errorf("%d steps were acknowledged", acknowledged)
	}
	t.Logf("killed when: %v; %d steps were acknowledged", reached, acknowledged)
}

// killHolds lets strace kill the process, and returns when that was and how many lines
// it had said.
func killHolds(t *testing.T, base []byte, fault string) (point string, said int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "snip.db")
	calls, lines := traceHolds(t, file, base, "1000", "-e", "inject="+fault)
	wantWhole(t, file, lines)
	return killPoint(calls), len(lines)
}

// traceHolds lets the process work on a file, and returns its calls and what it said.
func traceHolds(t *testing.T, file string, base []byte, pieces string, options ...string) ([]call, []string) {
	t.Helper()
	if err := os.WriteFile(file, base, 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	line := slices.Concat([]string{"-D", "-f", "-qq", "-xx", "-s", "1048576", "-o", trace, "-e", diskCalls}, options, []string{program, pieces})
	p, err := launch(exec.Command("strace", line...), filepath.Dir(file), []string{holdsFile + "=" + file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	<-p.ended
	calls, err := readTrace(trace)
	if err != nil {
		t.Fatal(err)
	}
	return calls, strings.Split(p.log(), "\n")
}

// TestPowerCutReservations cuts the power at any moment among reservations and
// answers: what had been acknowledged is on the disk, and nothing is half done.
func TestPowerCutReservations(t *testing.T) {
	t.Parallel()
	needStrace(t)
	base := newBase(t)
	calls, lines := traceHolds(t, filepath.Join(t.TempDir(), "snip.db"), base, "8")
	if len(lines) < 3*(8+6) { // of three workers, each piece and what most of them become
		t.Fatalf("it said only %q", lines)
	}
	path := filepath.Join(t.TempDir(), "cut.db")
	for i := range rounds(40, 2000) {
		random := rand.New(rand.NewPCG(*moments, uint64(i)))
		before := calls[:random.IntN(len(calls)+1)]
		events, err := eventsOf(before)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, c := range before {
			if c.name == "write" && c.begun {
				said = append(said, c.text)
			}
		}
		if err := os.WriteFile(path, cut(base, events, random), 0o600); err != nil {
			t.Fatal(err)
		}
		if wantWhole(t, path, said); t.Failed() {
			t.Fatalf("cut %d of seed %d, after call %d of %d", i, *moments, len(before), len(calls))
		}
	}
}

// wantWhole asserts what a data file holds when its process, which had said the lines,
// was killed.
func wantWhole(t *testing.T, file string, lines []string) {
	t.Helper()
	if report, err := boltstore.Check(file); err != nil || report.Err() != nil {
		t.Fatalf("%v, %v", err, report.Err())
	}
	store, err := boltstore.Open(file, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	acknowledged := map[string]quota.State{}
	furthest := map[int]int{} // the last piece of work of each worker that was begun for sure
	for _, said := range lines {
		var line struct {
			Msg quota.State
			ID  string
		}
		if json.Unmarshal([]byte(said), &line) != nil || line.ID == "" {
			continue // the last may be a part of one
		}
		var worker, n int
		if _, err := fmt.Sscanf(line.ID, "%d-%d", &worker, &n); err != nil {
			t.Fatal(err)
		}
		acknowledged[line.ID], furthest[worker] = line.Msg, n
	}
	ctx := t.Context()
	used, held := make([]int64, len(workLevels)), make([]int64, len(workLevels))
	for worker := range 3 {
		for n := range furthest[worker] + 2 { // the next may have been begun, too
			r := work(worker, n)
			wantAnswerWithLink(t, store, answeredLink(worker, n), acknowledged[r.ID] == "answered")
			found, there, err := store.Reserve(ctx, r) // which finds it
			if err != nil {
				t.Fatal(err)
			}
			if !there {
				if _, err := store.Release(ctx, r.ID, time.Now()); err != nil {
					t.Fatal(err)
				}
				if said := acknowledged[r.ID]; said != "" {
					t.Errorf("%s was acknowledged as %s and is gone", r.ID, said)
				}
				continue
			}
			if said := acknowledged[r.ID]; (said == quota.Committed || said == quota.Released) && said != found.State {
				t.Errorf("%s was acknowledged as %s and is %s", r.ID, said, found.State)
			}
			for i, l := range workLevels {
				switch found.State {
				case quota.Committed:
					used[i] += l.actual
				case quota.Pending:
					held[i] += l.cost
				}
			}
		}
	}
	wantLevels := func(when string, want func(i int) quota.Count) {
		t.Helper()
		var counters []quota.Counter
		for _, c := range work(0, 0).Charges {
			counters = append(counters, c.Counter)
		}
		counts, err := store.Counts(ctx, counters)
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range counts {
			if want := want(i); got != want {
				t.Errorf("%s: level %s holds %+v, want %+v", when, counters[i].Level, got, want)
			}
		}
	}
	wantLevels("killed", func(i int) quota.Count { return quota.Count{Used: used[i], Held: held[i]} })
	for more := true; more; {
		if more, err = store.SettleExpired(ctx, holdsNoon.Add(time.Hour), 100); err != nil {
			t.Fatal(err)
		}
	}
	wantLevels("settled", func(i int) quota.Count { return quota.Count{Used: used[i] + held[i]} })
}

// wantAnswerWithLink asserts that a link and its answer are there, or neither.
func wantAnswerWithLink(t *testing.T, store *boltstore.Store, c shortener.Creation, acknowledged bool) {
	t.Helper()
	_, linkErr := store.Get(t.Context(), c.Links[0].Slug)
	_, answerErr := store.Answer(t.Context(), c.Replays)
	if (linkErr == nil) != (answerErr == nil) || acknowledged && linkErr != nil {
		t.Errorf("%s, acknowledged %v: the link %v, its answer %v", c.Links[0].Slug, acknowledged, linkErr, answerErr)
	}
}
