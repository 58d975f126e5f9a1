package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// demand is what a caller asks one of several servers for: a link, or, without a
// destination, how many its client has made.
type demand struct {
	server int
	request
}

// linearLimits is [limits] for the checker, which wants a step to leave the state it
// was given alone.
var linearLimits = porcupine.Model{
	Init: func() any {
		return limits{client: 3, network: 8, service: 1000, byClient: map[int]int{}, byNetwork: map[int]int{}, slugs: map[string]bool{}}
	},
	Step: func(state, input, output any) (bool, any) {
		before, d := state.(limits), input.(demand)
		if d.destination == "" {
			return before.byClient[d.client] == output, before
		}
		after := before
		after.byClient, after.byNetwork, after.slugs = maps.Clone(before.byClient), maps.Clone(before.byNetwork), maps.Clone(before.slugs)
		return after.answer(d.request) == output, after
	},
	Equal: func(a, b any) bool {
		x, y := a.(limits), b.(limits)
		return x.all == y.all && maps.Equal(x.byClient, y.byClient) && maps.Equal(x.slugs, y.slugs)
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %v", input, output) },
}

// TestReplicasLinear records what callers of three servers are told that work at
// once, and asks whether the requests, each done in one instant between its call and
// its answer, could have been answered so by one server.
func TestReplicasLinear(t *testing.T) {
	t.Parallel()
	withinOneDay(t, func() error {
		// Short histories on scarce units and slugs: what can go wrong does so within a
		// few requests, and the check of a long one takes for ever.
		const callers, each, clients = 4, 10, 3
		histories := rounds(20, 400)
		r := startReplicas(t, "--quota-client=3", "--quota-network=8", "--quota-service=100000", "--quota-newcomers=0")
		for n := range histories {
			var mu sync.Mutex
			var history []porcupine.Operation
			var wrong error
			begun := time.Now()
			var wg sync.WaitGroup
			for w := range callers {
				random := rand.New(rand.NewPCG(*moments, uint64(n*callers+w)))
				wg.Go(func() {
					for i := range each {
						d := demand{random.IntN(len(r.servers)), request{client: random.IntN(clients), network: n}}
						switch random.IntN(4) {
						case 0: // its allowance
						case 1:
							d.slug = fmt.Sprintf("slug-%d-%d", n, random.IntN(4))
							fallthrough
						default:
							d.destination = fmt.Sprintf("https://example.org/%d/%d/%d", n, w, i)
						}
						called := time.Since(begun)
						said, err := r.demand(d)
						answered := time.Since(begun)
						mu.Lock()
						if err != nil {
							wrong = err
						}
						history = append(history, porcupine.Operation{ClientId: w, Input: d, Call: int64(called), Output: said, Return: int64(answered)})
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			if wrong != nil {
				return fmt.Errorf("history %d: %w", n, wrong)
			}
			result, info := porcupine.CheckOperationsVerbose(linearLimits, history, time.Minute)
			if result != porcupine.Ok {
				path := filepath.Join(t.ArtifactDir(), "history.html")
				return fmt.Errorf("history %d, seed %d: %v, see %s: %v", n, *moments, result, path, porcupine.VisualizePath(linearLimits, info, path))
			}
		}
		return r.counted(t, -1)
	})
}

// demand returns the status of the answer, or how many links the client has made.
func (r *replicas) demand(d demand) (int, error) {
	client := fmt.Sprintf("10.%d.%d.%d", d.network>>8, d.network&0xff, d.client)
	c := r.callers[d.server]
	if d.destination != "" {
		status, _, err := c.ask(client, d.destination, d.slug)
		return status, err
	}
	request, err := http.NewRequest(http.MethodGet, c.url+"/api/quota", nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("X-Forwarded-For", client)
	response, err := c.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var allowance struct{ Used int }
	err = json.NewDecoder(response.Body).Decode(&allowance)
	return allowance.Used, err
}
