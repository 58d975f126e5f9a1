package main

import "strings"

// watching are mutants of what the operator is told: alerts and metrics.
func watching() []mutant {
	const (
		alerts  = "cmd/snip/alerts.go"
		metrics = "web/admin/metrics.go"
		checks  = "web/admin/reputation.go"
	)
	var all []mutant
	for _, m := range []struct{ kind, from string }{
		{"store", `a.raise(ctx, kind, fmt.Sprintf("Links cannot be made: %v.", err))`},
		{"count", `a.raise(ctx, "count", fmt.Sprintf("%d links could not be counted, so they were not made.", n-a.unavailable))`},
		{"queue", `a.raise(ctx, "queue", fmt.Sprintf("%d writes found no room to wait.", n-a.turnedAway))`},
		{"token", `a.raise(ctx, "token", fmt.Sprintf("%d wrong tokens were shown to the admin listener.", n-a.refusedTokens))`},
	} {
		all = append(all, mutant{fault: "no alert of the kind " + m.kind, file: alerts, test: "TestEachFaultRaisesItsAlert",
			from: m.from, to: strings.Replace(m.from, "a.raise(ctx, ", "_ = fmt.Sprint(", 1)})
	}
	all = append(all,
		mutant{fault: "a broken clock is told of as the store", file: alerts, test: "TestEachFaultRaisesItsAlert",
			from: "\t\t\tkind = \"clock\"\n", to: "\t\t\tkind = \"store\"\n"},
		mutant{fault: "no alert of the kind reputation", file: alerts, test: "TestEachFaultRaisesItsAlert",
			from: `a.raise(ctx, "reputation", `, to: `_ = fmt.Sprint("reputation", `},
		mutant{fault: "no alert of the kind blocklist", file: alerts, test: "TestEachFaultRaisesItsAlert",
			from: `a.raise(ctx, "blocklist", `, to: `_ = fmt.Sprint("blocklist", `},
		mutant{fault: "an alert is repeated each second", file: alerts, test: "TestEachFaultRaisesItsAlert",
			from: "\tif !a.due(kind, alertPause) {\n", to: "\tif !a.due(kind, 0) {\n"},
	)
	for _, m := range []struct{ file, from, to string }{
		{metrics, "float64(o.Refused[level]), string(level)", "0*float64(o.Refused[level]), string(level)"},
		{metrics, "float64(o.WouldRefuse[level])", "0*float64(o.WouldRefuse[level])"},
		{metrics, `float64(refused), "refused"`, `0*float64(refused), "refused"`},
		{metrics, `float64(m.process.Throttle().Refused), "throttled"`, `0*float64(m.process.Throttle().Refused), "throttled"`},
		{metrics, "count(creationsDesc, float64(n), outcome)", "count(creationsDesc, 0*float64(n), outcome)"},
		{metrics, "count(visitsDesc, float64(n), outcome)", "count(visitsDesc, 0*float64(n), outcome)"},
		{metrics, "float64(o.VisitsLost)", "0*float64(o.VisitsLost)"},
		{metrics, "float64(stats.Refused)", "0*float64(stats.Refused)"},
		{metrics, "float64(stats.Overflowed)", "0*float64(stats.Overflowed)"},
		{metrics, "float64(stats.Clients)", "0*float64(stats.Clients)"},
		{metrics, "float64(conns.Limit)", "0*float64(conns.Limit)"},
		{metrics, "gauge(connsDesc, float64(n), state)", "gauge(connsDesc, 0*float64(n), state)"},
		{metrics, "count(connsEndedDesc, float64(n), reason)", "count(connsEndedDesc, 0*float64(n), reason)"},
		{metrics, "count(connsTurnedDesc, float64(n), bound)", "count(connsTurnedDesc, 0*float64(n), bound)"},
		{metrics, "float64(u.Used)", "0*float64(u.Used)"},
		{metrics, "float64(u.Max)", "0*float64(u.Max)"},
		{metrics, "truth(m.service.Ready(ctx) == nil)", "0*truth(m.service.Ready(ctx) == nil)"},
		{metrics, "float64(h.Bytes)", "0*float64(h.Bytes)"},
		{metrics, "float64(h.Commits)", "0*float64(h.Commits)"},
		{metrics, "float64(h.Operations)", "0*float64(h.Operations)"},
		{metrics, "float64(h.FreePages)", "0*float64(h.FreePages)"},
		{metrics, "h.CommitTime.Sum.Seconds()", "0*h.CommitTime.Sum.Seconds()"},
		{metrics, "h.WaitTime.Sum.Seconds()", "0*h.WaitTime.Sum.Seconds()"},
		{metrics, "histogram(commitsDurDesc, h.CommitTime)", "histogram(commitsDurDesc, h.WaitTime)"},
		{metrics, "histogram(waitsDurDesc, h.WaitTime)", "histogram(waitsDurDesc, h.CommitTime)"},
		{metrics, "histogram(requestsDurDesc, times, route, class)", "histogram(requestsDurDesc, shortener.HistogramCounts{}, route, class)"},
		{metrics, "float64(h.Waiting)", "0*float64(h.Waiting)"},
		{metrics, "float64(h.TurnedAway)", "0*float64(h.TurnedAway)"},
		{metrics, `truth(h.Trouble != "")`, `0*truth(h.Trouble != "")`},
		{metrics, "float64(names)", "0*float64(names)"},
		{metrics, "float64(failing)", "0*float64(failing)"},
		{metrics, "float64(alerts.Delivered)", "0*float64(alerts.Delivered)"},
		{metrics, "float64(alerts.Failed)", "0*float64(alerts.Failed)"},
		{metrics, "float64(m.gate.refused.Wrong.Load())", "0*float64(m.gate.refused.Wrong.Load())"},
		{metrics, "float64(m.gate.refused.Throttled.Load())", "0*float64(m.gate.refused.Throttled.Load())"},
		{checks, "count(checksDesc, float64(n), string(outcome))", "count(checksDesc, 0*float64(n), string(outcome))"},
		{checks, "float64(r.Cached)", "0*float64(r.Cached)"},
		{checks, "float64(r.Unchecked)", "0*float64(r.Unchecked)"},
		{checks, "float64(r.Held)", "0*float64(r.Held)"},
		{checks, "truth(!r.PausedUntil.IsZero())", "0*truth(!r.PausedUntil.IsZero())"},
		{checks, "float64(r.Spent)", "0*float64(r.Spent)"},
		{checks, "float64(r.DayAtMost)", "0*float64(r.DayAtMost)"},
		{checks, "float64(r.Calls)", "0*float64(r.Calls)"},
		{checks, "float64(r.Limit)", "0*float64(r.Limit)"},
	} {
		all = append(all, mutant{fault: "a metric is wrong: " + m.from, file: m.file, test: "TestEveryMetric", room: "./web", from: m.from, to: m.to})
	}
	return all
}
