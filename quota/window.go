package quota

import (
	"fmt"
	"time"
)

// Window is a calendar interval in UTC, half-open, named by its ISO label.
type Window struct {
	Label string    // "2026-11-29" for a day
	End   time.Time // the first instant after it
}

// DayOf returns the UTC day that holds the instant t, whatever t's location.
func DayOf(t time.Time) Window {
	y, m, d := t.UTC().Date()
	return Window{
		Label: time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Format(time.DateOnly),
		End:   time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC),
	}
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
