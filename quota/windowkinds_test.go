package quota_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snip/quota"
)

// kinds are the ways to reckon a window, with how long one can be.
var kinds = []struct {
	name              string
	of                func(time.Time) quota.Window
	shortest, longest time.Duration
}{
	{"hour", quota.HourOf, time.Hour, time.Hour},
	{"day", quota.DayOf, 24 * time.Hour, 24 * time.Hour},
	{"month", quota.MonthOf, 28 * 24 * time.Hour, 31 * 24 * time.Hour},
}

func TestHoursAndMonths(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name, zone, instant string
		of                  func(time.Time) quota.Window
		label, start, end   string
	}{
		{"an hour opens", "UTC", "2026-11-29T13:00:00Z", quota.HourOf, "2026-11-29T13", "2026-11-29T13:00:00Z", "2026-11-29T14:00:00Z"},
		{"its last nanosecond", "UTC", "2026-11-29T13:59:59.999999999Z", quota.HourOf, "2026-11-29T13", "2026-11-29T13:00:00Z", "2026-11-29T14:00:00Z"},
		{"the last hour of a year", "UTC", "2026-12-31T23:30:00Z", quota.HourOf, "2026-12-31T23", "2026-12-31T23:00:00Z", "2027-01-01T00:00:00Z"},
		{"the hour before a leap day", "UTC", "2028-02-28T23:30:00Z", quota.HourOf, "2028-02-28T23", "2028-02-28T23:00:00Z", "2028-02-29T00:00:00Z"},
		{"an hour of UTC in a zone of half hours", "America/St_Johns", "2026-11-29T13:45:00Z", quota.HourOf, "2026-11-29T13", "2026-11-29T13:00:00Z", "2026-11-29T14:00:00Z"},
		{"an hour of UTC in a zone of quarter hours", "Asia/Kathmandu", "2026-11-29T13:10:00Z", quota.HourOf, "2026-11-29T13", "2026-11-29T13:00:00Z", "2026-11-29T14:00:00Z"},
		{"the hour that clocks skip", "Europe/Berlin", "2026-03-29T01:30:00Z", quota.HourOf, "2026-03-29T01", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"},
		{"the hour that clocks show twice, first", "Europe/Berlin", "2026-10-25T00:30:00Z", quota.HourOf, "2026-10-25T00", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"},
		{"the hour that clocks show twice, second", "Europe/Berlin", "2026-10-25T01:30:00Z", quota.HourOf, "2026-10-25T01", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"},

		{"a month opens", "UTC", "2026-11-01T00:00:00Z", quota.MonthOf, "2026-11", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"},
		{"its last nanosecond", "UTC", "2026-11-30T23:59:59.999999999Z", quota.MonthOf, "2026-11", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"},
		{"the 31st, whose next month has 30 days", "UTC", "2026-10-31T12:00:00Z", quota.MonthOf, "2026-10", "2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z"},
		{"the 31st, whose next month has 28", "UTC", "2026-01-31T12:00:00Z", quota.MonthOf, "2026-01", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"},
		{"December", "UTC", "2026-12-31T23:59:59Z", quota.MonthOf, "2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"a leap day", "UTC", "2028-02-29T12:00:00Z", quota.MonthOf, "2028-02", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"no leap day in 2100", "UTC", "2100-02-28T23:59:59Z", quota.MonthOf, "2100-02", "2100-02-01T00:00:00Z", "2100-03-01T00:00:00Z"},
		{"the first of the month in Seoul is the month before", "Asia/Seoul", "2026-10-31T23:59:59Z", quota.MonthOf, "2026-10", "2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(row.zone)
			if err != nil {
				t.Fatal(err)
			}
			instant, err := time.Parse(time.RFC3339Nano, row.instant)
			if err != nil {
				t.Fatal(err)
			}
			w := row.of(instant.In(zone))
			got := [3]string{w.Label, w.Start.Format(time.RFC3339Nano), w.End.Format(time.RFC3339Nano)}
			if want := [3]string{row.label, row.start, row.end}; got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestParseWindow(t *testing.T) {
	t.Parallel()
	for label, of := range map[string]func(time.Time) quota.Window{
		"2026-11-29T13": quota.HourOf, "2026-11-29T00": quota.HourOf, "2026-11-29": quota.DayOf, "2028-02-29": quota.DayOf, "2026-11": quota.MonthOf,
	} {
		w, err := quota.ParseWindow(label)
		if err != nil || w.Label != label || w != of(w.Start) {
			t.Errorf("%s: got %v and %v", label, w, err)
		}
	}
	for _, label := range []string{
		"", "2026", "2026-13", "2026-00", "2026-1", "2026-02-29", "2026-11-31", "2026-11-29T24", "2026-11-29T3", "2026-11-29t13", "2026-11-29 13",
		"2026-11-29T13:00", "2026-11-29T13Z", " 2026-11", "2026-11 ", "2026-W48", "20261129", "12026-11", "today",
	} {
		if w, err := quota.ParseWindow(label); err == nil || w != (quota.Window{}) {
			t.Errorf("%q: got %v and %v, want an error", label, w, err)
		}
	}
}

// TestWindowProperties holds for every instant that has a label of four digits for
// its year, wherever the clock hangs that shows it.
func TestWindowProperties(t *testing.T) {
	t.Parallel()
	first, last := time.Date(0, 2, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(9999, 11, 30, 0, 0, 0, 0, time.UTC).Unix()
	instants := rapid.Custom(func(t *rapid.T) time.Time {
		zone := time.FixedZone("", rapid.IntRange(-14*60, 14*60).Draw(t, "minutes east")*60)
		return time.Unix(rapid.Int64Range(first, last).Draw(t, "second"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanosecond")).In(zone)
	})
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				instant := instants.Draw(t, "instant")
				w := kind.of(instant)
				if instant.Before(w.Start) || !instant.Before(w.End) {
					t.Fatalf("%v does not hold %v", w, instant)
				}
				if d := w.End.Sub(w.Start); d < kind.shortest || d > kind.longest {
					t.Fatalf("%v lasts %v", w, d)
				}
				if kind.of(w.Start) != w || kind.of(w.End.Add(-1)) != w {
					t.Fatalf("the first and the last instant of %v are of others", w)
				}
				next := kind.of(w.End)
				if next.Start != w.End || next.Label <= w.Label {
					t.Fatalf("after %v comes %v", w, next)
				}
				if parsed, err := quota.ParseWindow(w.Label); err != nil || parsed != w {
					t.Fatalf("%q names %v, %v, want %v", w.Label, parsed, err, w)
				}
				other := kind.of(instants.Draw(t, "other instant"))
				if strings.Compare(w.Label, other.Label) != w.Start.Compare(other.Start) {
					t.Fatalf("%v and %v do not sort as their labels do", w, other)
				}
			})
		})
	}
}

// FuzzParseWindow accepts no label that is not the one of its window.
func FuzzParseWindow(f *testing.F) {
	for _, label := range []string{"2026-11-29T13", "2026-11-29T3", "2026-11-29", "2028-02-29", "2026-11", "0000-01", "9999-12-31T23", "2026-1", ""} {
		f.Add(label)
	}
	f.Fuzz(func(t *testing.T, label string) {
		w, err := quota.ParseWindow(label)
		if err != nil {
			return
		}
		if w.Label != label || !w.Start.Before(w.End) {
			t.Fatalf("%q names %v", label, w)
		}
	})
}
