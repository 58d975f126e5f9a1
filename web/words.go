package web

import "time"

// wholeSeconds is a wait rounded up, and at least one, so that whoever waits that
// long is not early.
func wholeSeconds(wait time.Duration) int64 {
	return max(1, int64((wait+time.Second-1)/time.Second))
}

// pace tells how often a link may be made, such as "about one every 10 seconds",
// or nothing when there is no pace. It is rounded and says so: the throttle is
// kept per process and starts anew with it, so that an exact figure would be wrong.
func pace(every time.Duration) *message {
	var m message
	switch {
	case every <= 0:
		return nil
	case every < time.Second:
		m = say("pace.many", "Count", int64((time.Second+every/2)/every))
	case every%time.Hour == 0:
		m = say("pace.hours", "Count", int64(every/time.Hour))
	case every%time.Minute == 0:
		m = say("pace.minutes", "Count", int64(every/time.Minute))
	default:
		m = say("pace.seconds", "Count", int64(every.Round(time.Second)/time.Second))
	}
	return &m
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
func (t *tongue) endOf(end time.Time) *clock {
	if end.IsZero() {
		return nil
	}
	end = end.UTC()
	return &clock{ISO: end.Format(time.RFC3339), UTC: end.Format(t.render(say("layout.instant")))}
}
