package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for _, row := range []struct {
		sorted  []float64
		p, want float64
	}{
		{hundred, 50, 50}, {hundred, 99, 99}, {hundred, 100, 100}, {hundred, 0, 1},
		{[]float64{7}, 99, 7}, {[]float64{1, 2}, 50, 1}, {[]float64{1, 2, 3}, 50, 2},
	} {
		if got := percentile(row.sorted, row.p); got != row.want {
			t.Errorf("p%v of %d values: %v, want %v", row.p, len(row.sorted), got, row.want)
		}
	}
}

// A server that answers nothing at first is asked no less for it, and those that
// wait for a connection wait in line.
func TestOfferCountsFromWhenARequestWasDue(t *testing.T) {
	t.Parallel()
	const stopped = 200 * time.Millisecond
	open := make(chan struct{})
	var first sync.Once
	var posts, gets atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first.Do(func() { time.AfterFunc(stopped, func() { close(open) }) })
		<-open
		if r.Method == http.MethodPost {
			posts.Add(1)
			w.WriteHeader(http.StatusCreated)
			return
		}
		gets.Add(1)
		http.Redirect(w, r, "https://example.org/", http.StatusFound)
	}))
	defer s.Close()
	got, err := tryOffer(t, s, offer{Second: 1000, Every: 20, For: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if got.Creations.Answers != 15 || got.Redirects.Answers != 285 || posts.Load() != 15 || gets.Load() != 285 {
		t.Errorf("%+v, and the server saw %d and %d", got, posts.Load(), gets.Load())
	}
	// Two thirds were due while it was stopped, though only 64 could be sent then.
	if got.Redirects.P50 < 20 || got.Redirects.P99 < 150 {
		t.Errorf("p50 %.1f ms and p99 %.1f ms, of a server that answered nothing for 200 ms", got.Redirects.P50, got.Redirects.P99)
	}
}

func TestOfferWantsTheRightAnswers(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if got, err := tryOffer(t, s, offer{Second: 1000, For: 100 * time.Millisecond}); err == nil || !strings.Contains(err.Error(), "status 404") {
		t.Errorf("%+v, %v", got, err)
	}
}

func tryOffer(t *testing.T, s *httptest.Server, o offer) (got offered, err error) {
	o.Address, o.List, o.Word = s.Listener.Addr().String(), filepath.Join(t.TempDir(), "list"), "tried"
	if err := os.WriteFile(o.List, []byte("aaaaaaa\nbbbbbbb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := putOffer(t.Context(), string(encoded), &out); err != nil {
		return got, err
	}
	return got, json.Unmarshal(out.Bytes(), &got)
}
