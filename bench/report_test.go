package main

import (
	"strings"
	"testing"
)

func TestParseReport(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, out string
		wrong     string // part of the error; empty is none
	}{
		{"as wanted", "Running 3s test\nprepared 0.25\nsample http://snip.example/aaa\nsample http://snip.example/bbb\nfigures 3000 0 0 0 1500000 250 1500\n", ""},
		{"another status", "figures 2999 1 0 0 1500000 250 1500\n", "1 others"},
		{"a broken connection", "figures 3000 0 2 0 1500000 250 1500\n", "2 broken"},
		{"an answer too late", "figures 3000 0 0 3 1500000 250 1500\n", "3 answers too late"},
		{"no answer", "figures 0 0 0 0 1500000 0 0\n", "0 answers"},
		{"no time", "figures 3000 0 0 0 0 250 1500\n", "3000 answers"},
		{"cut short", "figures 3000 0\n", "its report"},
		{"no time to prepare", "prepared soon\nfigures 3000 0 0 0 1500000 250 1500\n", "its report"},
		{"no report", "unable to connect\n", "reported nothing"},
	} {
		r, err := parseReport(row.out)
		if row.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), row.wrong) {
				t.Errorf("%s: error %v, want one with %q", row.name, err, row.wrong)
			}
			continue
		}
		if err != nil || r.answers != 3000 || r.rate != 2000 || r.p50 != 0.25 || r.p99 != 1.5 || r.prepared != 0.25 || len(r.samples) != 2 {
			t.Errorf("%s: %+v, %v", row.name, r, err)
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		f    figures
		want string
	}{
		{figures{7}, "7 (7-7)"},
		{figures{3, 1, 2}, "2 (1-3)"},
		{figures{40, 10, 20, 30}, "25 (10-40)"},
		{figures{999.6, 1234567, 12345}, "12,345 (1,000-1,234,567)"},
	} {
		if got := row.f.show(whole); got != row.want {
			t.Errorf("%v: %s, want %s", row.f, got, row.want)
		}
	}
}

// A target is about each round's own ratio: here the medians' ratio is 1, and
// every round but one missed it.
func TestTargetComparesRoundByRound(t *testing.T) {
	t.Parallel()
	var got table
	got.target("a to b", figures{10, 20, 30}.over(figures{20, 40, 15}), 0.8)
	got.target("a to b", figures{8, 16, 40}.over(figures{10, 20, 50}), 0.8)
	got.limit("a to b", figures{10, 20, 30}.over(figures{20, 40, 15}), 0.5)
	got.limit("a to b", figures{10, 20, 30}.over(figures{20, 30, 15}), 0.5)
	got.target("a to nothing", figures{0}.over(figures{0}), 0.8)
	got.limit("a to nothing", figures{0}.over(figures{0}), 0.8)
	want := []string{"MISS  a to b: 0.50 (0.50-2.00), at least 0.80 wanted", "PASS  a to b: 0.80 (0.80-0.80), at least 0.80 wanted",
		"PASS  a to b: 0.50 (0.50-2.00), at most 0.50 wanted", "MISS  a to b: 0.67 (0.50-2.00), at most 0.50 wanted",
		"MISS  a to nothing: NaN (NaN-NaN), at least 0.80 wanted", "MISS  a to nothing: NaN (NaN-NaN), at most 0.80 wanted"}
	if strings.Join(got.targets, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got.targets, want)
	}
}
