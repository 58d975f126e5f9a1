package admin

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"snip/quota"
	"snip/shortener"
)

const secondsADay = 24 * 60 * 60

// written is the arithmetic of docs/limits.md with the limits as they are set, in
// sentences.
func written(s Settings) []string {
	p := s.Policy
	var said []string
	say := func(format string, values ...any) { said = append(said, fmt.Sprintf(format, values...)) }

	mostByPace := int64(math.MaxInt64)
	if s.Every > 0 {
		seconds := s.Every.Seconds()
		aDay := int64(secondsADay / seconds)
		mostByPace = aDay + int64(s.Burst)
		say("One link per %s is %s a day for each client, and %s more for the burst.", spell(seconds), grouped(aDay), grouped(int64(s.Burst)))
		if p.Service > 0 && aDay >= p.Service {
			say("That is no less than the day's budget of %s: at that pace one client would use it up in %s. The throttle alone does not protect the day.",
				grouped(p.Service), spell(float64(p.Service)*seconds))
		}
	} else {
		say("The throttle is off: a client may come as fast as it likes.")
	}
	if p.Service > 0 {
		say("%s links a day as a rate would be one per %s: a rate cannot stand in for a budget.", grouped(p.Service), spell(secondsADay/float64(p.Service)))
	} else {
		say("The service level is off: all clients together may make any number of links.")
	}
	if s.KeysOnly {
		say("Links are made by holders of keys only, each with a limit of its own.")
	} else {
		said = append(said, writtenCallers(p, mostByPace)...)
	}
	if s.Checks != nil {
		said = append(said, writtenChecks(*s.Checks)...)
	}
	for _, level := range shortener.Levels {
		if p.DryRun[level] {
			say("The %s level is in a dry run: it counts and refuses nothing, so nothing above stops at it.", level)
		}
	}
	return said
}

// writtenChecks says what the checks of destinations can cost.
func writtenChecks(c shortener.Checks) []string {
	failing := "links to it are refused"
	if c.AllowOnFailure {
		failing = "links to it are made all the same"
	}
	return []string{
		fmt.Sprintf("A check of a destination costs %s, and all of a day %s at most: %s, the last %s for networks that have had none. A client stops at %s, a network at %s.",
			shortener.Units(c.Price), shortener.Units(c.DayAtMost()), several(c.DayCalls(), "call"), grouped(c.Newcomers()), grouped(c.ClientCalls), grouped(c.NetworkCalls)),
		fmt.Sprintf("Where a destination cannot be checked, or those calls are used up, %s.", failing),
	}
}

// writtenCallers says where callers without keys stop, and how many of them use up
// the day when the throttle lets a client make no more than mostByPace.
func writtenCallers(p quota.Policy, mostByPace int64) []string {
	var said []string
	say := func(format string, values ...any) { said = append(said, fmt.Sprintf(format, values...)) }
	if p.Client > 0 {
		say("A client, which is an IPv4 address or an IPv6 /64, stops at %s.", grouped(p.Client))
	} else {
		say("The client level is off: a client stops where its network does, or the service.")
	}
	if p.Network > 0 {
		say("A network, which is an IPv4 /24 or an IPv6 /48, stops at %s.", grouped(p.Network))
		if p.Client > 0 {
			say("That is as much as %s make.", several(ceil(p.Network, p.Client), "full client"))
		}
	} else {
		say("The network level is off: any number of clients of one network may make links.")
	}
	if p.Service == 0 {
		return said
	}
	// Newcomers are told by what is counted, in a dry run too.
	open := p.Service
	if p.Network > 0 || p.Client > 0 {
		open -= p.Newcomers
	}
	clientStops := p.Client > 0 && !p.DryRun[quota.LevelClient]
	networkStops := p.Network > 0 && !p.DryRun[quota.LevelNetwork]
	reach := mostByPace
	if clientStops {
		reach = min(reach, p.Client)
	}
	var callers []string
	if clientStops || !networkStops {
		callers = append(callers, several(ceil(open, reach), "client"))
	}
	if networkStops {
		callers = append(callers, several(ceil(open, p.Network), "network"))
	}
	say("%s of the day's %s links are open to all: %s can use them up.", grouped(open), grouped(p.Service), strings.Join(callers, " or "))
	switch {
	case open == p.Service:
		say("Nothing is kept for newcomers.")
	case p.Network > 0:
		say("The last %s are for newcomers: a first link of the day by a client whose network has made none, one at a time. It takes %s more to use them up.",
			grouped(p.Newcomers), several(p.Newcomers, "network"))
	default:
		say("The last %s are for newcomers: a client's first link of the day, one at a time. It takes %s more to use them up.",
			grouped(p.Newcomers), several(p.Newcomers, "client"))
	}
	return said
}

func ceil(n, by int64) int64 { return (n-1)/by + 1 }

func several(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return grouped(n) + " " + what
}

// grouped writes a number with its thousands apart.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// spell writes a span of seconds, and of long ones the hours.
func spell(seconds float64) string {
	if seconds < 120 {
		return strconv.FormatFloat(math.Round(seconds*1000)/1000, 'f', -1, 64) + " s"
	}
	whole := int64(min(math.Round(seconds), math.MaxInt32*1000))
	var parts []string
	for _, unit := range []struct {
		seconds int64
		name    string
	}{{3600, "h"}, {60, "min"}, {1, "s"}} {
		if n := whole / unit.seconds; n > 0 {
			parts = append(parts, grouped(n)+" "+unit.name)
		}
		whole %= unit.seconds
	}
	return strings.Join(parts, " ")
}

// since is how long ago an instant was, in whole minutes.
func since(then, now time.Time) string {
	return spell(math.Max(0, now.Sub(then).Truncate(time.Minute).Seconds()))
}
