package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"snip/shortener"
)

// One piece of work runs at a time, with seven times its time between two, and so many wait.
func TestPacer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPacer()
		start := time.Now()
		var began []time.Duration
		work := func() error {
			began = append(began, time.Since(start))
			<-time.After(4 * time.Millisecond)
			return nil
		}
		for range 3 {
			go p.do(t.Context(), of(0), work)
		}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, maxWaiting)
		synctest.Wait()
		for i := range maxWaiting - 2 {
			go func() {
				left <- p.do(ctx, of(1+i/maxNetworkWaiting), func() error { return errors.New("worked for a client that has left") })
			}()
		}
		synctest.Wait()
		if err := p.do(t.Context(), of(99), work); !errors.Is(err, errBusy) {
			t.Errorf("one more than may wait: %v", err)
		}
		leave()
		for range maxWaiting - 2 {
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("a client that has left: %v", err)
			}
		}
		if err := p.do(t.Context(), of(0), work); err != nil {
			t.Errorf("after others have left: %v", err)
		}
		if got := fmt.Sprint(began); got != "[0s 32ms 64ms 96ms]" {
			t.Errorf("work began at %s", got)
		}
		<-time.After(time.Second)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.waiting != 0 || len(p.of) != 0 || len(p.running) != 0 {
			t.Errorf("%d wait, of %d networks, and %d run", p.waiting, len(p.of), len(p.running))
		}
	})
}

// of returns the i-th network.
func of(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24)
}

// A network that asks for pages on many connections leaves room for others.
func TestPacerLeavesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPacer()
		ran := make(chan error, maxNetworkWaiting+1)
		for range maxNetworkWaiting {
			go func() { ran <- p.do(t.Context(), of(1), func() error { return nil }) }()
		}
		synctest.Wait()
		if err := p.do(t.Context(), of(1), func() error { return nil }); !errors.Is(err, errBusy) {
			t.Errorf("one more of the network: %v", err)
		}
		if err := p.do(t.Context(), of(2), func() error { return nil }); err != nil {
			t.Errorf("another network: %v", err)
		}
		for range maxNetworkWaiting {
			if err := <-ran; err != nil {
				t.Errorf("of those that waited: %v", err)
			}
		}
		<-time.After(time.Second)
	})
}

// What is the same for many visitors is rendered once.
func TestPagesAreKept(t *testing.T) {
	s := newSite(t, siteSetup{})
	for _, target := range []string{"/", "/-/manage", "/unknown"} {
		r, err := http.NewRequest(http.MethodGet, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		r.RemoteAddr = "192.0.2.1:1"
		w := &discard{header: make(http.Header)}
		get := func() {
			clear(w.header)
			s.undescribed.ServeHTTP(w, r)
		}
		get()
		if n := testing.AllocsPerRun(20, get); n > 100 {
			t.Errorf("%s: %.0f allocations, so it is rendered again", target, n)
		}
	}
	// Nothing that tells pages apart is left out.
	first := s.get("/?lang=en").Body.String()
	if again := s.get("/?lang=ko").Body.String(); again == first {
		t.Error("another language gets the same form")
	}
	s.post(`{"url":"https://example.org/"}`)
	if again := s.get("/?lang=en").Body.String(); again == first {
		t.Error("after a link was made the form still says the same of what is left")
	}
}

func TestBusyIsA503(t *testing.T) {
	t.Parallel()
	if p := (&server{}).problemOf(errBusy); p.status != http.StatusServiceUnavailable || p.code != "unavailable" || p.retryAfter != time.Second {
		t.Errorf("%+v", p)
	}
}

// A picture is drawn once: the largest has a million dots.
func TestPicturesAreKept(t *testing.T) {
	s := newSite(t, siteSetup{})
	s.put(t, shortener.Link{Slug: "abc", Destination: "https://example.org/"})
	r, err := http.NewRequest(http.MethodGet, "/abc/qr.png?size=1024&level=H", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &discard{header: make(http.Header)}
	allocated := func(times int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			clear(w.header)
			s.undescribed.ServeHTTP(w, r)
		}
		runtime.ReadMemStats(&after)
		if w.header.Get("Content-Type") != "image/png" {
			t.Fatal(w.header)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if n := allocated(1); n < 1<<20 {
		t.Errorf("the first took %d bytes: it is not drawn", n)
	}
	if n := allocated(20); n > 1<<20 {
		t.Errorf("20 more took %d bytes", n)
	}
	// Nothing that tells pictures apart is left out.
	bodies := make(map[string]string)
	s.put(t, shortener.Link{Slug: "def", Destination: "https://example.org/"})
	for _, slug := range []string{"abc", "def"} {
		for _, query := range []string{"", "?size=512", "?margin=8&size=512", "?level=H"} {
			for _, format := range []string{"png", "svg"} {
				target := "/" + slug + "/qr." + format + query
				first, again := s.get(target).Body.Bytes(), s.get(target).Body.Bytes()
				if other, ok := bodies[string(first)]; ok || !bytes.Equal(first, again) {
					t.Errorf("%s is also %q, or another one the second time", target, other)
				}
				bodies[string(first)] = target
			}
		}
	}
}

// However many characters are to be marked, a page has a bounded number of marks, and none of
// them is kept from the reader.
func TestManyMarks(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"\u200b", "\u202e", "\U000e0041"} {
		address := "https://example.org/" + strings.Repeat(c, maxMarks) + "a"
		if all := pieces(address); len(all) != maxMarks+2 || all[maxMarks+1] != (piece{Text: "a"}) {
			t.Errorf("%U: %d pieces", []rune(c), len(all))
		}
		all := pieces(address + strings.Repeat(c+"b", 1000))
		last := all[len(all)-1]
		encoded := strings.TrimPrefix(shortener.Location("https://example.org/"+c), "https://example.org/")
		if len(all) != maxMarks+3 || last.Code != "U+… ×1000" || last.Text != strings.Repeat(encoded+"b", 1000) {
			t.Errorf("%U: %d pieces, the last is %+v", []rune(c), len(all), last)
		}
	}
}
