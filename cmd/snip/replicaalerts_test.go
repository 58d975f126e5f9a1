package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestReplicasAlert: what the store has to tell is told by one server, and by another
// when that one is killed.
func TestReplicasAlert(t *testing.T) {
	t.Parallel()
	withinOneDay(t, func() error {
		var told sync.Map // how often, by what follows the day in the ID
		hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var notice struct{ ID string }
			if err := json.NewDecoder(r.Body).Decode(&notice); err != nil {
				t.Error(err)
			}
			_, id, _ := strings.Cut(notice.ID, "/")
			for n := 1; ; n++ {
				if _, again := told.LoadOrStore(fmt.Sprint(id, " for the ", n, ". time"), true); !again {
					return
				}
			}
		}))
		t.Cleanup(hook.Close)
		r := startReplicas(t, "--quota-service=10", "--quota-network=10", "--quota-client=10", "--quota-newcomers=0", "--alert-webhook", hook.URL)
		makeLinks := func(n int) error {
			for range n {
				if status, _, err := r.callers[0].create("203.0.113.1", "https://example.org/"); status != http.StatusCreated {
					return fmt.Errorf("a link: status %d, %w", status, err)
				}
			}
			return nil
		}
		tells := func(what string) error {
			return eventually("it is told: "+what, func() bool {
				_, ok := told.Load(what)
				return ok
			})
		}
		leads := func(p *process) bool { return strings.Contains(p.log(), "this server leads") }
		if err := eventually("one leads", func() bool { return slices.ContainsFunc(r.servers, leads) }); err != nil {
			return err
		}
		first := slices.IndexFunc(r.servers, leads)
		if err := makeLinks(5); err != nil {
			return err
		}
		if err := tells("budget/50 for the 1. time"); err != nil {
			return err
		}
		// Killed before it has written down that it told, it would be told again.
		if err := eventually("it is written down", func() bool { return r.number(t, "SELECT count(*) FROM outbox WHERE NOT delivered") == 0 }); err != nil {
			return err
		}
		r.servers[first].kill()
		r.servers, r.callers = slices.Delete(r.servers, first, first+1), slices.Delete(r.callers, first, first+1)
		if err := makeLinks(3); err != nil {
			return err
		}
		if err := tells("budget/80 for the 1. time"); err != nil {
			return err
		}
		if n := len(slices.DeleteFunc(r.servers, func(p *process) bool { return !leads(p) })); n != 1 {
			return fmt.Errorf("%d of two servers lead", n)
		}
		var err error
		told.Range(func(what, _ any) bool {
			if what != "budget/50 for the 1. time" && what != "budget/80 for the 1. time" {
				err = fmt.Errorf("it was told: %v", what)
			}
			return true
		})
		return err
	})
}

// eventually returns an error unless something holds soon.
func eventually(what string, holds func() bool) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(patience); !holds(); {
		select {
		case <-again.C:
		case <-deadline:
			return fmt.Errorf("it took too long: %s", what)
		}
	}
	return nil
}
