package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// offer is a load at a fixed rate, whatever the server makes of it. wrk cannot put
// it on: it sends the next request when the last is answered, so a server that
// stops for a while is asked for less and looks quicker than it was. It runs in a
// process of its own, on the core for loads.
type offer struct {
	Address string        // of the server
	List    string        // file of slugs
	Word    string        // sets this run's links apart
	Second  int           // how many requests a second, all evenly apart
	Every   int           // of so many requests one makes a link; 0 makes none
	For     time.Duration // how long
}

// offered is what came of it. A time runs from the moment that the request was
// due, so one that waits for a free connection waits in line like any other.
type offered struct{ Redirects, Creations times }

// times are figures of how long answers took.
type times struct {
	Answers  int
	P50, P99 float64 // milliseconds
}

// offerConnections are kept alive.
const offerConnections = 64

// due is the n-th request of a run.
type due struct {
	n  int
	at time.Time
}

// putOffer runs an offer and writes what came of it. Any answer but the expected
// one is an error.
func putOffer(ctx context.Context, encoded string, out io.Writer) error {
	var o offer
	if err := json.Unmarshal([]byte(encoded), &o); err != nil {
		return fmt.Errorf("-offer: %w", err)
	}
	list, err := os.ReadFile(o.List)
	if err != nil {
		return err
	}
	slugs := strings.Fields(string(list))
	// One of them is kept by the thread that sleeps until the next is due.
	runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0)))
	ctx, cancel := context.WithTimeout(ctx, o.For+10*time.Second)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	total := o.Second * int(o.For/time.Millisecond) / 1000
	queue := make(chan due, total) // so that handing one over never waits
	redirects, creations := make([][]float64, offerConnections), make([][]float64, offerConnections)
	var group sync.WaitGroup
	for i := range offerConnections {
		group.Go(func() {
			if err := o.serve(ctx, queue, slugs, &redirects[i], &creations[i]); err != nil {
				fail(err)
			}
		})
	}
	group.Go(func() {
		defer close(queue)
		if err := o.dispatch(ctx, queue, total); err != nil {
			fail(err)
		}
	})
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(offered{summarize(redirects), summarize(creations)})
}

// dispatch hands over each request when it is due. The runtime's timers are
// up to a millisecond late, longer than most answers take, so the thread itself
// sleeps.
func (o offer) dispatch(ctx context.Context, queue chan<- due, total int) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil { // in place of 50 µs
		return err
	}
	start := time.Now().Add(10 * time.Millisecond)
	for n := range total {
		at := start.Add(time.Duration(n) * time.Second / time.Duration(o.Second))
		for left := time.Until(at); left > 0; left = time.Until(at) {
			pause := syscall.NsecToTimespec(int64(left))
			syscall.Nanosleep(&pause, nil) // may be interrupted by the runtime's signals
		}
		if ctx.Err() != nil {
			return nil
		}
		queue <- due{n, at}
	}
	return nil
}

// serve sends requests over one connection until there are no more. It ends by
// itself when the server does not answer.
func (o offer) serve(ctx context.Context, queue <-chan due, slugs []string, redirects, creations *[]float64) error {
	conn, err := net.Dial("tcp", o.Address)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	answers := bufio.NewReader(conn)
	var request bytes.Buffer
	for d := range queue {
		if ctx.Err() != nil {
			return nil
		}
		want, took := http.StatusFound, redirects
		request.Reset()
		if o.Every > 0 && d.n%o.Every == o.Every-1 {
			want, took = http.StatusCreated, creations
			body := fmt.Sprintf(`{"url":"https://example.org/%s/%d"}`, o.Word, d.n)
			fmt.Fprintf(&request, "POST /api/links HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", o.Address, len(body), body)
		} else {
			fmt.Fprintf(&request, "GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n", slugs[d.n%len(slugs)], o.Address)
		}
		if _, err := conn.Write(request.Bytes()); err != nil {
			return err
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		if resp.StatusCode != want {
			return fmt.Errorf("request %d: status %d where %d was expected", d.n, resp.StatusCode, want)
		}
		*took = append(*took, time.Since(d.at).Seconds()*1e3)
	}
	return nil
}

func summarize(connections [][]float64) times {
	all := slices.Sorted(slices.Values(slices.Concat(connections...)))
	if len(all) == 0 {
		return times{}
	}
	return times{len(all), percentile(all, 50), percentile(all, 99)}
}

// percentile is the least of the sorted values that p percent do not exceed.
func percentile(sorted []float64, p float64) float64 {
	return sorted[max(int(math.Ceil(float64(len(sorted))*p/100)), 1)-1]
}
