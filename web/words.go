package web

import (
	"fmt"
	"time"
)

// count returns a number with its noun, which forms its plural with an s.
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// wholeSeconds is a wait rounded up, and at least one, so that whoever waits that
// long is not early.
func wholeSeconds(wait time.Duration) int64 {
	return max(1, int64((wait+time.Second-1)/time.Second))
}

// pace tells how often a link may be made, such as "about one every 10 seconds",
// or nothing when there is no pace. It is rounded and says so: the throttle is
// kept per process and starts anew with it, so that an exact figure would be wrong.
func pace(every time.Duration) string {
	switch {
	case every <= 0:
		return ""
	case every < time.Second:
		return fmt.Sprintf("about %d every second", (time.Second+every/2)/every)
	}
	unit, noun := time.Second, "second"
	switch {
	case every%time.Hour == 0:
		unit, noun = time.Hour, "hour"
	case every%time.Minute == 0:
		unit, noun = time.Minute, "minute"
	}
	n := int64(every.Round(unit) / unit)
	if n == 1 {
		return "about one every " + noun
	}
	return "about one every " + count(n, noun)
}

// clock is an instant as a page shows it. The script adds the visitor's own zone,
// which nobody but the browser knows.
type clock struct {
	ISO string
	UTC string
}

func timeOfDay(t time.Time) clock {
	// Rounded up, so that nobody comes too early, but for the second that the wait
	// itself may have been rounded up by: midnight is not 00:01.
	t = t.UTC().Add(time.Minute - time.Second).Truncate(time.Minute)
	return clock{ISO: t.Format(time.RFC3339), UTC: t.Format("15:04\u00a0UTC")}
}

// endOf is an instant with its day, or nil for the zero time, which is never.
func endOf(t time.Time) *clock {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &clock{ISO: t.Format(time.RFC3339), UTC: t.Format("2 January 2006 at 15:04\u00a0UTC")}
}
