package quota

import (
	"fmt"
	"time"
)

// Window is a calendar interval in UTC, half-open, named by its label as ISO 8601
// has it. Labels of one kind sort as their windows do, from the year 0 to 9999.
type Window struct {
	Label string // such as "2026-11-29" for a day
	Start time.Time
	End   time.Time // the first instant after it
}

// DayOf returns the UTC day that holds the instant t, whatever t's location.
func DayOf(t time.Time) Window {
	y, m, d := t.UTC().Date()
	start := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	return Window{Label: start.Format(time.DateOnly), Start: start, End: start.AddDate(0, 0, 1)}
}

// HourOf returns the hour of UTC that holds the instant t, such as "2026-11-29T13".
func HourOf(t time.Time) Window {
	t = t.UTC()
	y, m, d := t.Date()
	start := time.Date(y, m, d, t.Hour(), 0, 0, 0, time.UTC)
	return Window{Label: start.Format(hourLabel), Start: start, End: start.Add(time.Hour)}
}

// MonthOf returns the month of UTC that holds the instant t, such as "2026-11".
func MonthOf(t time.Time) Window {
	y, m, _ := t.UTC().Date()
	start := time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	return Window{Label: start.Format(monthLabel), Start: start, End: start.AddDate(0, 1, 0)}
}

const (
	hourLabel  = "2006-01-02T15"
	monthLabel = "2006-01"
)

// ParseWindow returns the window that has the label, of any of the three kinds.
func ParseWindow(label string) (Window, error) {
	for _, kind := range []struct {
		layout string
		of     func(time.Time) Window
	}{{time.DateOnly, DayOf}, {hourLabel, HourOf}, {monthLabel, MonthOf}} {
		t, err := time.Parse(kind.layout, label)
		if err != nil {
			continue
		}
		if w := kind.of(t); w.Label == label { // Parse reads an hour of one digit too
			return w, nil
		}
	}
	return Window{}, fmt.Errorf("%q is the label of no hour, day or month", label)
}

// IsDay reports whether a label is that of a day.
func IsDay(label string) bool {
	_, err := time.Parse(time.DateOnly, label)
	return err == nil
}

// PreviousDay returns the day before the one that has the label.
func PreviousDay(label string) (Window, error) {
	before, err := DayBefore(label)
	if err != nil {
		return Window{}, err
	}
	return ParseWindow(before)
}

// DayBefore returns the label of the day before the given day label.
func DayBefore(label string) (string, error) { return DaysBefore(label, 1) }

// DaysBefore returns the label of the day that lies n days before the given label's.
func DaysBefore(label string, n int) (string, error) {
	t, err := time.Parse(time.DateOnly, label)
	if err != nil {
		return "", fmt.Errorf("day label %q: %w", label, err)
	}
	return DayOf(t.AddDate(0, 0, -n)).Label, nil
}

// CheckClock compares the day a clock shows with the newest day that has a
// counted demand. A clock that lies more than a day behind has lost its time,
// and counting under old labels would forgive everyone: the error wraps
// [ErrClock]. An empty newest day means that nothing was counted yet, and an empty
// day that nothing is to be counted.
func CheckClock(day, newest string) error {
	if day == "" || newest == "" {
		return nil
	}
	oldest, err := DayBefore(newest)
	if err != nil {
		return fmt.Errorf("%w: newest %w", ErrCannotCount, err)
	}
	if day < oldest {
		return fmt.Errorf("%w: it shows %s, but %s was counted already", ErrClock, day, newest)
	}
	return nil
}
