package web

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	t.Parallel()
	english := testCatalogue(t).english()
	for _, row := range []struct {
		every time.Duration
		want  string
	}{
		{0, ""},
		{100 * time.Millisecond, "about 10 every second"},
		{time.Second, "about one every second"},
		{10 * time.Second, "about one every 10 seconds"},
		{10*time.Second + 400*time.Millisecond, "about one every 10 seconds"},
		{90 * time.Second, "about one every 90 seconds"},
		{time.Minute, "about one every minute"},
		{5 * time.Minute, "about one every 5 minutes"},
		{time.Hour, "about one every hour"},
		{24 * time.Hour, "about one every 24 hours"},
	} {
		got := ""
		if m := pace(row.every); m != nil {
			got = english.render(*m)
		}
		if got != row.want {
			t.Errorf("pace(%s) is %q, want %q", row.every, got, row.want)
		}
	}
}

func TestTimeOfDay(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ at, wantISO, wantUTC string }{ // with a blank that no line breaks at
		{"2026-11-30T00:00:00Z", "2026-11-30T00:00:00Z", "00:00\u00a0UTC"},
		{"2026-11-30T00:00:00.9Z", "2026-11-30T00:00:00Z", "00:00\u00a0UTC"},
		{"2026-11-30T00:00:01Z", "2026-11-30T00:01:00Z", "00:01\u00a0UTC"},
		{"2026-11-29T23:59:59Z", "2026-11-30T00:00:00Z", "00:00\u00a0UTC"},
		{"2026-11-30T09:00:00+09:00", "2026-11-30T00:00:00Z", "00:00\u00a0UTC"},
	} {
		at, err := time.Parse(time.RFC3339, row.at)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := timeOfDay(at), (clock{ISO: row.wantISO, UTC: row.wantUTC}); got != want {
			t.Errorf("timeOfDay(%s) = %v, want %v", row.at, got, want)
		}
	}
}

func TestWholeSeconds(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]int64{
		0:                       1,
		time.Nanosecond:         1,
		time.Second:             1,
		time.Second + 1:         2,
		8500 * time.Millisecond: 9,
	} {
		if got := wholeSeconds(wait); got != want {
			t.Errorf("wholeSeconds(%s) = %d, want %d", wait, got, want)
		}
	}
}
