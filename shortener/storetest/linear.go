package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"snip/quota"
	"snip/shortener"
)

const (
	// linearHistories pairs of histories are recorded, one after the other.
	linearHistories = 25
	// Short histories of few clients on scarce units and slugs: what can go wrong
	// does so within a few operations, and the check of a long one takes for ever.
	linearWorkers = 4
	linearCalls   = 10 // by each worker
	// linearPatience ends a check that does not end by itself.
	linearPatience = 20 * time.Second
)

// unknown is the answer of a creation that was sent and of which nobody heard.
const unknown = "unknown"

// linearModel is [plain] for the checker, which wants a step to leave the state
// it was given alone.
var linearModel = porcupine.Model{
	Init: func() any { return newPlain() },
	Step: func(state, input, output any) (bool, any) {
		next := state.(plain).clone()
		switch output {
		case context.Canceled.Error(): // withdrawn, so it did nothing
			return true, next
		case unknown:
			// It may take effect at any time after it was sent. If it never does,
			// it fits behind the last operation, where nobody sees what it did.
			next.answer(input.(call))
			return true, next
		}
		return next.answer(input.(call)) == output, next
	},
	Equal:             func(a, b any) bool { return a.(plain).equal(b.(plain)) },
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%v: %v", input, output) },
	DescribeState: func(state any) string {
		p := state.(plain)
		return fmt.Sprintf("%d links, used %v", len(p.links), p.used)
	},
}

// testLinear records what callers that work at once are told, and asks whether
// the operations, each done in one instant between its call and its answer, could
// have given those answers.
func testLinear(t *testing.T, stores []shortener.Store) {
	for pair := range linearHistories {
		// Two days at once share the store's batches and nothing else, so each is a
		// history of its own; the next pair's first link ends both.
		var wg sync.WaitGroup
		for n := range 2 {
			wg.Go(func() {
				if err := linear(t, stores, noon.AddDate(0, 0, 2*pair+n)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

// linear records a history of the day and returns an error that shows it when
// there is no order which explains it. A picture is kept as the test's artifact.
func linear(t testing.TB, stores []shortener.Store, now time.Time) error {
	day := quota.DayOf(now)
	secret, err := stores[0].EnsureSecret(context.Background(), day.Label)
	if err != nil {
		return err
	}
	history := record(stores, func(name string) call { return anyCall(day, now, secret, name) }, send)
	result, info := porcupine.CheckOperationsVerbose(linearModel, history, linearPatience)
	if result == porcupine.Ok {
		return nil
	}
	picture := filepath.Join(t.ArtifactDir(), day.Label+".html")
	if err := porcupine.VisualizePath(linearModel, info, picture); err != nil {
		picture = err.Error()
	}
	return fmt.Errorf("no order explains the answers: the check says %s; picture (kept with -artifacts): %s%s", result, picture, inOrder(history))
}

// inOrder is a history as text, in the order of its calls.
func inOrder(history []porcupine.Operation) string {
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var text strings.Builder
	for _, op := range history {
		fmt.Fprintf(&text, "\n  %3d-%-3d %d %v: %v", op.Call, op.Return, op.ClientId, op.Input, op.Output)
	}
	return text.String()
}

// record lets workers send random calls at once, each through a handle of its
// own, and returns what was called, what was answered, and in which order as seen
// from outside. The names of calls differ.
func record[C any](stores []shortener.Store, anyCall func(name string) C, send func(C, shortener.Store) string) []porcupine.Operation {
	var (
		clock     atomic.Int64 // of events, so no two are at the same time
		histories [linearWorkers][]porcupine.Operation
		wg        sync.WaitGroup
	)
	start := make(chan struct{})
	for worker := range linearWorkers {
		wg.Go(func() {
			<-start
			for n := range linearCalls {
				c := anyCall(fmt.Sprintf("%d-%d", worker, n))
				op := porcupine.Operation{ClientId: worker, Input: c, Call: clock.Add(1)}
				op.Output = send(c, stores[worker%len(stores)])
				op.Return = clock.Add(1)
				histories[worker] = append(histories[worker], op)
			}
		})
	}
	close(start)
	wg.Wait()
	history := slices.Concat(histories[:]...)
	for i := range history {
		if history[i].Output == unknown {
			history[i].Return = clock.Load() + 1
		}
	}
	return history
}

// anyCall returns a random call on one of three clients in two networks, with
// room for a few links, or on one of eight slugs. The name tells it from others.
func anyCall(day quota.Window, now time.Time, secret quota.Secret, name string) call {
	who := [...]quota.Client{host(1, 1), host(1, 2), host(2, 1)}[rand.IntN(3)]
	policy := quota.Policy{Client: 3, Network: 4, Service: 7, Newcomers: 1}
	slug := func(n int) shortener.Slug { return shortener.Slug(fmt.Sprintf("%s-%d", day.Label, n)) }
	switch chance := rand.IntN(10); {
	case chance < 2:
		return call{slug: slug(rand.IntN(8))}
	case chance < 4:
		var c call
		for _, charge := range policy.Charges(who, secret, day, 1) {
			c.counters = append(c.counters, charge.Counter)
		}
		return c
	default:
		slugs := rand.Perm(8)[:1+rand.IntN(2)]
		c := call{creation: shortener.Creation{Day: day.Label, Charges: policy.Charges(who, secret, day, int64(len(slugs)))}}
		for _, n := range slugs {
			c.creation.Links = append(c.creation.Links, shortener.Link{
				Slug: slug(n), Destination: "https://example.org/" + name, CreatedAt: now, Day: day.Label,
			})
		}
		return c
	}
}

// send returns the store's answer to the call. Of some creations the answer is
// lost on its way; others are withdrawn before or while they are under way.
func send(c call, s shortener.Store) string {
	if len(c.creation.Links) == 0 {
		return c.on(context.Background(), s)
	}
	ctx, cancel, lost := fate()
	defer cancel()
	err := s.Create(ctx, c.creation)
	if lost || errors.Is(err, shortener.ErrUnavailable) {
		return unknown
	}
	return kind(err)
}

// fate is what becomes of a request: a context that may end before it or while it is
// under way, and whether its answer is lost.
func fate() (ctx context.Context, cancel func(), lost bool) {
	ctx, cancel = context.WithCancel(context.Background())
	chance := rand.IntN(10)
	switch chance {
	case 0:
		cancel()
	case 1:
		go cancel()
	}
	return ctx, cancel, chance == 2
}
