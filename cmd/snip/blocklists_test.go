package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A list takes down what it names when it is read, a broken one leaves the last
// good one in place, and visitors notice no reload.
func TestBlocklists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	list := filepath.Join(dir, "hosts")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(list+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(list+".new", list); err != nil {
			t.Fatal(err)
		}
	}
	write("0.0.0.0 first.example\n")
	p := start(t, dir, "--blocklists", list, "--throttle-every", "0")
	create := func(status int, url string) string {
		t.Helper()
		a := mustAsk(t, status, "POST", p.url+"/api/links", "application/json", fmt.Sprintf(`{"url":%q}`, url))
		slug, _, _ := strings.Cut(strings.TrimPrefix(a.body, `{"slug":"`), `"`)
		return p.url + "/" + slug
	}
	create(http.StatusBadRequest, "https://www.first.example/")
	create(http.StatusBadRequest, "https://bit.ly/abc")
	good, second := create(http.StatusCreated, "https://good.example/"), create(http.StatusCreated, "https://second.example/")

	// Visitors all the while.
	var visits, failures atomic.Int64
	var over atomic.Bool
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for !over.Load() {
				visits.Add(1)
				response, err := http.DefaultTransport.RoundTrip(must(http.NewRequest(http.MethodGet, good, nil)))
				if err != nil || response.StatusCode != http.StatusFound {
					failures.Add(1)
				}
				if err == nil {
					response.Body.Close()
				}
			}
		})
	}
	reload := func(text, message string) {
		t.Helper()
		write(text)
		p.signal(syscall.SIGHUP)
		if _, err := p.await(message); err != nil {
			t.Fatal(err)
		}
	}
	reload("<html>an error page</html>\n", "block lists were not loaded; what was last read from them stays in use")
	create(http.StatusBadRequest, "https://first.example/")
	var names strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&names, "0.0.0.0 host-%d.example\n", i)
	}
	write(names.String() + "0.0.0.0 second.example\n")
	p.signal(syscall.SIGHUP)
	for deadline := time.Now().Add(patience); mustVisit(t, second) != http.StatusGone; {
		if time.Now().After(deadline) {
			t.Fatalf("the list is not in use:\n%s", p.log())
		}
	}
	create(http.StatusCreated, "https://first.example/")
	over.Store(true)
	group.Wait()
	if visits.Load() == 0 || failures.Load() > 0 {
		t.Errorf("%d of %d visits failed while lists were read", failures.Load(), visits.Load())
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}

	// A list that is not there does not keep links from leading on, but no more are
	// made until it is.
	p = start(t, dir, "--blocklists", list+".missing", "--allow-shorteners", "--throttle-every", "0")
	if !strings.Contains(p.log(), "block lists could not be loaded") {
		t.Errorf("the log says nothing:\n%s", p.log())
	}
	if status := mustVisit(t, p.url+strings.TrimPrefix(good, good[:strings.LastIndexByte(good, '/')])); status != http.StatusFound {
		t.Errorf("a visit: %d", status)
	}
	if a := mustAsk(t, http.StatusServiceUnavailable, "GET", p.url+"/readyz", "", ""); !strings.Contains(a.body, "Reason: blocklist.") {
		t.Errorf("it is not ready: %s", a.body)
	}
	create(http.StatusServiceUnavailable, "https://bit.ly/abc")
	if err := os.Rename(list, list+".missing"); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGHUP)
	for deadline := time.Now().Add(patience); mustVisit(t, p.url+"/readyz") != http.StatusOK; {
		if time.Now().After(deadline) {
			t.Fatalf("it stays unready:\n%s", p.log())
		}
	}
	create(http.StatusCreated, "https://bit.ly/abc")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func mustVisit(t *testing.T, url string) int {
	t.Helper()
	response, err := http.DefaultTransport.RoundTrip(must(http.NewRequest(http.MethodGet, url, nil)))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}
