package storetest

import (
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"snip/quota"
	"snip/shortener"
)

// server is a service on one of the handles. Those of a test share a clock.
type server struct {
	*testing.T
	*shortener.Service
	now *atomic.Pointer[time.Time]
}

func startServer(t *testing.T, s shortener.Store, p quota.Policy, now *atomic.Pointer[time.Time]) server {
	t.Helper()
	public, err := url.Parse("https://s.example")
	if err != nil {
		t.Fatal(err)
	}
	destinations, err := shortener.NewDestinations(public, false)
	if err != nil {
		t.Fatal(err)
	}
	return server{t, shortener.New(shortener.Config{
		Store: s, Policy: p, Destinations: destinations, Now: func() time.Time { return *now.Load() },
	}), now}
}

// makes makes links at an instant, and then asks for more than a day has.
func (s server) makes(at time.Time, who quota.Client, links, refusals int) {
	s.Helper()
	s.now.Store(&at)
	for i := range links + refusals {
		_, err := s.Create(s.Context(), who, shortener.NewLink{URL: "https://example.org/"}, "")
		if refused := err != nil; refused != (i >= links) {
			s.Errorf("%v, creation %d of %s: %v", at, i, who, err)
		}
	}
}

func (s server) keeps() {
	s.Helper()
	if err := s.KeepHistory(s.Context()); err != nil {
		s.Error(err)
	}
}

// wantHistory waits for what the history is to say: a store removes old days, and
// closes them, when it has the time.
func (s server) wantHistory(want ...shortener.DayRecord) {
	s.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(20 * time.Second)
	for {
		got, err := s.History(s.Context(), 1000)
		diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(shortener.DayRecord{}, "Hours"))
		if err == nil && diff == "" {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			s.Errorf("%v (-want +got):\n%s", err, diff)
			return
		}
	}
}

func refusedBy(level quota.Level, n int64) map[quota.Level]int64 {
	if n == 0 {
		return map[quota.Level]int64{}
	}
	return map[quota.Level]int64{level: n}
}

// testMidnight has two servers make and refuse links up to the last microsecond of a
// day, and on. What the one or the other writes down, in any order and any number of
// times, each link and each refusal is on its day.
func testMidnight(t *testing.T, stores []shortener.Store) {
	var now atomic.Pointer[time.Time]
	p := quota.Policy{Client: 3}
	a, b := startServer(t, stores[0], p, &now), startServer(t, stores[1], p, &now)
	last := time.Date(2026, 11, 29, 23, 59, 59, 999_999_000, time.UTC)
	a.makes(last.Add(-time.Minute), host(1, 1), 3, 1)
	a.keeps()
	b.makes(last.Add(-6*time.Second), host(2, 1), 3, 4)
	a.makes(last, host(3, 1), 2, 0)
	b.makes(last, host(3, 1), 1, 2)
	b.makes(last.Add(time.Microsecond), host(1, 1), 3, 5)
	for range 3 {
		b.keeps()
		a.keeps()
	}
	ended := shortener.DayRecord{Day: "2026-11-29", Created: 9, Clients: 3, Busiest: 3, Refused: refusedBy(quota.LevelClient, 7)}
	begun := shortener.DayRecord{Day: "2026-11-30", Created: 3, Clients: 1, Busiest: 3, Refused: refusedBy(quota.LevelClient, 5)}
	b.wantHistory(begun, ended)

	// A clock that goes back counts on the day that it shows.
	a.makes(last, host(4, 1), 3, 2)
	a.keeps()
	ended.Created, ended.Clients, ended.Refused = 12, 4, refusedBy(quota.LevelClient, 9)
	a.wantHistory(begun, ended)

	// One that jumps ahead by years costs no record of an earlier day.
	ahead := last.AddDate(3, 0, 0)
	b.makes(last.Add(time.Hour), host(4, 1), 1, 0)
	b.makes(ahead, host(1, 1), 2, 0)
	b.keeps()
	begun.Created, begun.Clients = 4, 2
	a.wantHistory(shortener.DayRecord{Day: "2029-11-29", Created: 2, Clients: 1, Busiest: 2, Refused: refusedBy("", 0)}, begun, ended)
}

// testDayIsClosed has no server write anything down: it is killed before midnight and
// days pass. When a store removes the counters of a day, the day is in the history.
func testDayIsClosed(t *testing.T, stores []shortener.Store) {
	for i, p := range []quota.Policy{
		{},
		{Service: 1000},
		{Network: 100},
		{Client: 50},
		{Client: 50, Network: 250, Service: 1000, Newcomers: 100},
	} {
		var now atomic.Pointer[time.Time]
		s := startServer(t, stores[0], p, &now)
		day := noon.AddDate(0, 0, 10*i)
		s.makes(day.Add(11*time.Hour+59*time.Minute+59*time.Second), host(1, 1), 4, 0)
		s.makes(day.Add(11*time.Hour+59*time.Minute+59*time.Second), host(1, 2), 1, 0)

		after := startServer(t, stores[1], p, &now) // that was down for four days
		after.makes(day.AddDate(0, 0, 5), host(1, 1), 2, 0)
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			want := []shortener.DayRecord{{Day: quota.DayOf(day).Label, Created: 5, Clients: 2, Busiest: 4, Refused: refusedBy("", 0)}}
			for j := i - 1; j >= 0; j-- {
				earlier := noon.AddDate(0, 0, 10*j)
				want = append(want,
					shortener.DayRecord{Day: quota.DayOf(earlier.AddDate(0, 0, 5)).Label, Created: 2, Clients: 1, Busiest: 2, Refused: refusedBy("", 0)},
					shortener.DayRecord{Day: quota.DayOf(earlier).Label, Created: 5, Clients: 2, Busiest: 4, Refused: refusedBy("", 0)})
			}
			server{t, after.Service, &now}.wantHistory(want...)
		})
	}
}

// testTallied makes links while each level, or every one, is off: all of them are
// tallied, also those of a client whose limit an operator took away.
func testTallied(t *testing.T, stores []shortener.Store) {
	for i, p := range []quota.Policy{{}, {Service: 1000}, {Network: 100}, {Client: 50}, {Client: 2, Network: 100, Service: 1000, Newcomers: 1}} {
		var now atomic.Pointer[time.Time]
		s := startServer(t, stores[0], p, &now)
		if err := s.LoadOperatorSet(t.Context()); err != nil {
			t.Fatal(err)
		}
		day := noon.AddDate(0, 0, i)
		now.Store(&day)
		if i == 0 {
			if _, err := s.PutOverride(t.Context(), shortener.Override{Target: host(7, 7).String(), Limit: quota.Unlimited}); err != nil {
				t.Fatal(err)
			}
		}
		s.makes(day, host(1, 1), 2, 0)
		s.makes(day, host(7, 7), 5, 0)
		s.keeps()
		got, err := s.History(t.Context(), 1)
		want := []shortener.DayRecord{{
			Day: quota.DayOf(day).Label, Created: 7, Clients: 2, Busiest: 5, Refused: refusedBy("", 0), Hours: shortener.Hours{12: 7},
		}}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%+v: %v (-want +got):\n%s", p, err, diff)
		}
	}
}

// testHours makes links on two servers. Each of them tells the hours of both, also after a
// restart and for a day that is closed.
func testHours(t *testing.T, stores []shortener.Store) {
	var now atomic.Pointer[time.Time]
	a, b := startServer(t, stores[0], quota.Policy{}, &now), startServer(t, stores[len(stores)-1], quota.Policy{}, &now)
	want := func(s server, day time.Time, want shortener.Hours) {
		t.Helper()
		if got, err := s.MadeByHour(t.Context(), day); err != nil || got != want {
			t.Errorf("%s: made by hour %v, %v, want %v", day.Format(time.DateOnly), got, err, want)
		}
	}
	a.makes(noon, host(1, 1), 2, 0)
	want(a, noon, shortener.Hours{12: 2}) // before anything is written
	a.keeps()
	a.keeps()
	b.makes(noon.Add(time.Hour), host(1, 1), 3, 0)
	a.makes(noon.Add(12*time.Hour-time.Second), host(1, 2), 1, 0)
	a.makes(noon.Add(12*time.Hour), host(1, 2), 4, 0)
	b.keeps()
	a.keeps()
	first, second := shortener.Hours{12: 2, 13: 3, 23: 1}, shortener.Hours{0: 4}
	for _, s := range []server{a, b, startServer(t, stores[0], quota.Policy{}, &now)} {
		want(s, noon, first)
		want(s, noon.AddDate(0, 0, 1), second)
		want(s, noon.AddDate(0, 0, 2), shortener.Hours{})
	}
	b.makes(noon.AddDate(0, 0, 3), host(1, 1), 1, 0)
	b.keeps()
	want(a, noon, first)
}
