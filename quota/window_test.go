package quota_test

import (
	"errors"
	"testing"
	"time"
	_ "time/tzdata" // the zones below, wherever the test runs

	"snip/quota"
)

func TestDayOf(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, zone, instant, label, end string }{
		{"midnight opens the day", "UTC", "2026-11-29T00:00:00Z", "2026-11-29", "2026-11-30"},
		{"its last microsecond", "UTC", "2026-11-29T23:59:59.999999Z", "2026-11-29", "2026-11-30"},
		{"its last nanosecond", "UTC", "2026-11-29T23:59:59.999999999Z", "2026-11-29", "2026-11-30"},
		{"the next midnight is the next day", "UTC", "2026-11-30T00:00:00Z", "2026-11-30", "2026-12-01"},
		{"the end of a year", "UTC", "2026-12-31T23:59:59Z", "2026-12-31", "2027-01-01"},
		{"a February of 28 days", "UTC", "2026-02-28T12:00:00Z", "2026-02-28", "2026-03-01"},
		{"before a leap day", "UTC", "2028-02-28T12:00:00Z", "2028-02-28", "2028-02-29"},
		{"a leap day", "UTC", "2028-02-29T12:00:00Z", "2028-02-29", "2028-03-01"},
		{"no leap day in 2100", "UTC", "2100-02-28T12:00:00Z", "2100-02-28", "2100-03-01"},
		{"morning in Seoul is yesterday's day", "Asia/Seoul", "2026-11-29T23:59:59Z", "2026-11-29", "2026-11-30"},
		{"nine in Seoul opens it", "Asia/Seoul", "2026-11-30T00:00:00Z", "2026-11-30", "2026-12-01"},
		{"evening in St. John's is tomorrow's day", "America/St_Johns", "2026-11-30T00:00:00Z", "2026-11-30", "2026-12-01"},
		{"St. John's, clocks go forward", "America/St_Johns", "2026-03-08T05:30:00Z", "2026-03-08", "2026-03-09"},
		{"St. John's, clocks go back", "America/St_Johns", "2026-11-01T04:30:00Z", "2026-11-01", "2026-11-02"},
		{"in summer time", "America/St_Johns", "2026-07-01T23:59:59.999999Z", "2026-07-01", "2026-07-02"},
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
			got := quota.DayOf(instant.In(zone))
			if got.Label != row.label || got.End.Format(time.RFC3339Nano) != row.end+"T00:00:00Z" {
				t.Errorf("got %s until %s, want %s until %s", got.Label, got.End, row.label, row.end)
			}
			if !got.End.After(instant) || quota.DayOf(got.End).Label != row.end {
				t.Errorf("the window ends at %s, which is not the first instant of the next", got.End)
			}
		})
	}
}

func TestDayBefore(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ label, want string }{
		{"2026-11-29", "2026-11-28"},
		{"2026-12-01", "2026-11-30"},
		{"2027-01-01", "2026-12-31"},
		{"2026-03-01", "2026-02-28"},
		{"2028-03-01", "2028-02-29"},
		{"2100-03-01", "2100-02-28"},
	} {
		if got, err := quota.DayBefore(row.label); err != nil || got != row.want {
			t.Errorf("before %s: got %q and %v, want %s", row.label, got, err, row.want)
		}
	}
	for _, label := range []string{"", "2026-11", "2026-02-29", "2026-13-01", "2026-1-2", "29.11.2026", "2026-11-29T00:00:00Z", " 2026-11-29"} {
		if got, err := quota.DayBefore(label); err == nil {
			t.Errorf("before %q: got %q, want an error", label, got)
		}
	}
}

func TestCheckClock(t *testing.T) {
	t.Parallel()
	var sane error
	rows := []struct {
		name, day, newest string
		want              error
	}{
		{"nothing counted yet", "1970-01-01", "", sane},
		{"today", "2026-11-29", "2026-11-29", sane},
		{"a new day", "2026-11-30", "2026-11-29", sane},
		{"a long pause", "2028-01-01", "2026-11-29", sane},
		{"back across midnight", "2026-11-28", "2026-11-29", sane},
		{"back across a month", "2026-11-30", "2026-12-01", sane},
		{"two days back", "2026-11-27", "2026-11-29", quota.ErrClock},
		{"two days back across a month", "2026-02-27", "2026-03-01", quota.ErrClock},
		{"one day back across a leap day", "2028-02-29", "2028-03-01", sane},
		{"two days back across a leap day", "2028-02-28", "2028-03-01", quota.ErrClock},
		{"a board without a battery", "1970-01-01", "2026-11-29", quota.ErrClock},
		{"a record that cannot be read", "2026-11-29", "garbage", quota.ErrCannotCount},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			err := quota.CheckClock(row.day, row.newest)
			if !errors.Is(err, row.want) {
				t.Errorf("got %v, want %v", err, row.want)
			}
			if err != nil && !errors.Is(err, quota.ErrCannotCount) {
				t.Errorf("%v is not a kind of ErrCannotCount", err)
			}
			if row.want != quota.ErrClock && errors.Is(err, quota.ErrClock) {
				t.Errorf("%v blames the clock", err)
			}
		})
	}
}

// FuzzDayBefore holds the two ways to reckon a day against each other.
func FuzzDayBefore(f *testing.F) {
	for _, label := range []string{"2026-11-29", "2026-03-01", "2028-03-01", "2100-03-01", "0000-01-01", "0001-01-01", "9999-12-31", "2026-02-29", "2026-1-2", ""} {
		f.Add(label)
	}
	f.Fuzz(func(t *testing.T, label string) {
		before, err := quota.DayBefore(label)
		if err != nil {
			return
		}
		start, err := time.Parse(time.DateOnly, label)
		if err != nil {
			t.Fatalf("%q was taken for a day: %v", label, err)
		}
		if got := quota.DayOf(start).Label; got != label {
			t.Fatalf("%q names the day %s", label, got)
		}
		if last := quota.DayOf(start.Add(-time.Nanosecond)); last.Label != before || !last.End.Equal(start) {
			t.Fatalf("before %s: %s, but a moment earlier it was %s until %s", label, before, last.Label, last.End)
		}
		if before >= label {
			t.Fatalf("%s does not sort before %s, and labels are compared as text", before, label)
		}
	})
}
