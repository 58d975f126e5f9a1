package admin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

func TestWritten(t *testing.T) {
	t.Parallel()
	standard := Settings{Policy: quota.Policy{Client: 50, Network: 250, Service: 1000, Newcomers: 100}, Every: 10 * time.Second, Burst: 3}
	with := func(change func(*Settings)) Settings {
		s := standard
		change(&s)
		return s
	}
	const (
		pace     = "One link per 10 s is 8,640 a day for each client, and 3 more for the burst."
		alone    = "That is no less than the day's budget of 1,000: at that pace one client would use it up in 2 h 46 min 40 s. The throttle alone does not protect the day."
		rate     = "1,000 links a day as a rate would be one per 86.4 s: a rate cannot stand in for a budget."
		client   = "A client, which is an IPv4 address or an IPv6 /64, stops at 50."
		network  = "A network, which is an IPv4 /24 or an IPv6 /48, stops at 250."
		full     = "That is as much as 5 full clients make."
		open     = "900 of the day's 1,000 links are open to all: 18 clients or 4 networks can use them up."
		last     = "The last 100 are for newcomers: a first link of the day by a client whose network has made none, one at a time. It takes 100 networks more to use them up."
		off      = "The throttle is off: a client may come as fast as it likes."
		anyone   = "The service level is off: all clients together may make any number of links."
		noClient = "The client level is off: a client stops where its network does, or the service."
		noNet    = "The network level is off: any number of clients of one network may make links."
	)
	for name, row := range map[string]struct {
		settings Settings
		want     []string
	}{
		"as they are": {standard, []string{pace, alone, rate, client, network, full, open, last}},
		"a slow pace": {with(func(s *Settings) { s.Every = 5 * time.Minute }), []string{
			"One link per 5 min is 288 a day for each client, and 3 more for the burst.", rate, client, network, full, open, last}},
		"checks": {with(func(s *Settings) {
			s.Checks = &shortener.Checks{Price: 500, Budget: 1_000_499, Calls: 90_000, NetworkCalls: 1500, ClientCalls: 100}
		}), []string{pace, alone, rate, client, network, full, open, last,
			"A check of a destination costs 0.0005, and all of a day 1 at most: 2,000 calls, the last 200 for networks that have had none. A client stops at 100, a network at 1,500.",
			"Where a destination cannot be checked, or those calls are used up, links to it are refused."}},
		"free checks": {with(func(s *Settings) {
			s.Checks = &shortener.Checks{Budget: 1, Calls: 3, NetworkCalls: 2, ClientCalls: 1, AllowOnFailure: true}
		}), []string{pace, alone, rate, client, network, full, open, last,
			"A check of a destination costs 0, and all of a day 0 at most: 3 calls, the last 0 for networks that have had none. A client stops at 1, a network at 2.",
			"Where a destination cannot be checked, or those calls are used up, links to it are made all the same."}},
		"no throttle": {with(func(s *Settings) { s.Every = 0 }), []string{off, rate, client, network, full, open, last}},
		"no service":  {with(func(s *Settings) { s.Policy.Service = 0 }), []string{pace, anyone, client, network, full}},
		"no network": {with(func(s *Settings) { s.Policy.Network = 0 }), []string{pace, alone, rate, client, noNet,
			"900 of the day's 1,000 links are open to all: 18 clients can use them up.",
			"The last 100 are for newcomers: a client's first link of the day, one at a time. It takes 100 clients more to use them up."}},
		"no client": {with(func(s *Settings) { s.Policy.Client = 0 }), []string{pace, alone, rate, noClient, network,
			"900 of the day's 1,000 links are open to all: 4 networks can use them up.", last}},
		"service alone": {with(func(s *Settings) { s.Policy.Client, s.Policy.Network = 0, 0 }), []string{pace, alone, rate, noClient, noNet,
			"1,000 of the day's 1,000 links are open to all: 1 client can use them up.", "Nothing is kept for newcomers."}},
		"no newcomers": {with(func(s *Settings) { s.Policy.Newcomers = 0 }), []string{pace, alone, rate, client, network, full,
			"1,000 of the day's 1,000 links are open to all: 20 clients or 4 networks can use them up.", "Nothing is kept for newcomers."}},
		"all off":   {Settings{}, []string{off, anyone, noClient, noNet}},
		"keys only": {with(func(s *Settings) { s.KeysOnly = true }), []string{pace, alone, rate, "Links are made by holders of keys only, each with a limit of its own."}},
		"a dry run": {with(func(s *Settings) { s.Policy.DryRun = map[quota.Level]bool{quota.LevelNetwork: true} }), []string{pace, alone, rate, client, network, full,
			"900 of the day's 1,000 links are open to all: 18 clients can use them up.", last,
			"The network level is in a dry run: it counts and refuses nothing, so nothing above stops at it."}},
		"huge": {Settings{Policy: quota.Policy{Service: 1 << 62}, Every: 24 * time.Hour, Burst: 1}, []string{
			"One link per 24 h is 1 a day for each client, and 1 more for the burst.",
			"4,611,686,018,427,387,904 links a day as a rate would be one per 0 s: a rate cannot stand in for a budget.",
			noClient, noNet, "4,611,686,018,427,387,904 of the day's 4,611,686,018,427,387,904 links are open to all: 2,305,843,009,213,693,952 clients can use them up.", "Nothing is kept for newcomers."}},
	} {
		if got := written(row.settings); !slices.Equal(got, row.want) {
			t.Errorf("%s:\n%s\nwant:\n%s", name, strings.Join(got, "\n"), strings.Join(row.want, "\n"))
		}
	}
}

func TestNumbersAndSpans(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 12345678: "12,345,678", -1000: "-1,000", -999: "-999"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	for seconds, want := range map[float64]string{0: "0 s", 0.0864: "0.086 s", 86.4: "86.4 s", 119.9: "119.9 s", 120: "2 min", 10000: "2 h 46 min 40 s", 86400: "24 h", 1e30: "596,523,235 h 16 min 40 s"} {
		if got := spell(seconds); got != want {
			t.Errorf("%v: %s, want %s", seconds, got, want)
		}
	}
}

// A day's line begins where the process did, and ends with the exact total now.
func TestChart(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 10, 29, 30, 0, time.UTC)
	today, yesterday := shortener.Hours{8: 3, 10: 2}, shortener.Hours{23: 4}
	endOfYesterday := dayStart(now).Add(-time.Microsecond)
	until8 := func(height string) (points string) {
		for hour := range 9 {
			points += fmt.Sprintf("%d,%s ", 60*hour, height)
		}
		return points
	}
	for name, row := range map[string]struct {
		total, before int64
		limit         int64
		today         string
		yesterday     string // its end
		first         string // in all, after the first hour
	}{
		"every link has its hour": {5, 4, 10, until8("300.0") + "540,210.0 600,210.0 630,150.0", "1380,300.0 1440,180.0", "0"},
		"some have none":          {8, 9, 10, until8("210.0") + "540,120.0 600,120.0 630,60.0", "1380,150.0 1440,30.0", "3"},
		"without a counter":       {0, 0, 0, until8("300.0") + "540,120.0 600,120.0 630,0.0", "1380,300.0 1440,60.0", "0"},
		"over its limit":          {20, 0, 10, until8("75.0") + "540,30.0 600,30.0 630,0.0", "1380,300.0 1440,240.0", "15"},
	} {
		c := newChart(course{row.total, today, now}, course{row.before, yesterday, endOfYesterday}, row.limit, 0)
		if c.Today != row.today || !strings.HasSuffix(c.Yesterday, row.yesterday) {
			t.Errorf("%s:\n%s\n%s", name, c.Today, c.Yesterday)
		}
		for hour, got := range c.Rows {
			if known := hour <= 10; known != (got.Made != "") || hour < 8 && got.InAll != row.first || got.MadeBefore == "" {
				t.Errorf("%s: hour %d: %+v", name, hour, got)
			}
		}
		if last := c.Rows[10]; last.Made != "2" || last.InAll != grouped(c.Made) {
			t.Errorf("%s: the last hour: %+v of %d", name, last, c.Made)
		}
	}
}
