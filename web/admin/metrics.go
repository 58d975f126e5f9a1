package admin

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"snip/quota"
	"snip/shortener"
)

// metrics are read from what is counted anyway, when they are asked for. No label
// takes its values from a request, so their number is bounded.
type metrics struct{ *server }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("snip_"+name, help, labels, nil)
}

var (
	creationsDesc   = desc("creations_total", "Creations by how they ended.", "outcome")
	refusedDesc     = desc("creations_refused_total", "Creations refused for want of quota.", "level")
	wouldRefuseDesc = desc("creations_would_refuse_total", "Creations that a level in a dry run would have refused.", "level")
	throttledDesc   = desc("throttled_total", "Requests refused by a throttle.", "throttle")
	overflowDesc    = desc("throttle_overflow_total", "Requests of clients that found no slot of their own.", "throttle")
	clientsDesc     = desc("throttle_clients", "Clients that have a slot.", "throttle")
	visitsDesc      = desc("visits_total", "Visits of links by how they ended.", "outcome")
	visitsLostDesc  = desc("visits_not_counted_total", "Visits that could not be stored in statistics.")
	connsDesc       = desc("connections", "Open connections of the public listener, by what they do.", "state")
	connLimitDesc   = desc("connections_limit", "Connections of the public listener that may be open.")
	connsEndedDesc  = desc("connections_closed_total", "Connections that the server closed before the client was done, by reason.", "reason")
	connsTurnedDesc = desc("connections_refused_total", "Connections that were closed unserved, by the bound that left no room.", "bound")
	usedDesc        = desc("budget_used_links", "Links made today, of the service.")
	limitDesc       = desc("budget_limit_links", "Links that the service may make a day.")
	readyDesc       = desc("ready", "Whether a link could be made now.")
	bytesDesc       = desc("store_bytes", "Size of the data file.")
	commitsDesc     = desc("store_commits_total", "Commits since the file was opened.")
	operationsDesc  = desc("store_operations_total", "Operations that the commits held.")
	freePagesDesc   = desc("store_free_pages", "Pages of the data file that commits fill before the file grows.")
	commitTimeDesc  = desc("store_commit_seconds_total", "Time that the commits took.")
	waitTimeDesc    = desc("store_wait_seconds_total", "Time that operations waited before their commits began.")
	commitsDurDesc  = desc("store_commit_duration_seconds", "Commits by how long they took.")
	waitsDurDesc    = desc("store_wait_duration_seconds", "Operations by how long they waited before their commits began.")
	requestsDurDesc = desc("http_request_duration_seconds", "Requests to the public listener by how long they took until the answer was written.", "route", "status")
	waitingDesc     = desc("store_waiting_writes", "Writes that are waiting.")
	turnedAwayDesc  = desc("store_turned_away_total", "Writes for which there was no room to wait.")
	troubleDesc     = desc("store_trouble", "Whether nothing can be written.")
	namesDesc       = desc("blocklist_names", "Names in the block lists in use.")
	listErrorsDesc  = desc("blocklists_failing", "Block lists that could not be loaded the last time.")
	deliveredDesc   = desc("alerts_delivered_total", "Alerts that were delivered.")
	failedDesc      = desc("alert_attempts_failed_total", "Attempts to deliver an alert that failed.")
	tokensDesc      = desc("admin_tokens_refused_total", "Admin tokens that were wrong, or were not compared because their peer had shown too many wrong ones.", "reason")
	infoDesc        = desc("build_info", "The program.", "version")
)

// Describe implements [prometheus.Collector]. It names no metric, because some are
// there only while a level is on.
func (metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (m metrics) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	histogram := func(d *prometheus.Desc, c shortener.HistogramCounts, labels ...string) {
		buckets := make(map[float64]uint64, len(c.Within))
		for i, bound := range shortener.HistogramBounds {
			buckets[bound.Seconds()] = uint64(c.Within[i])
		}
		ch <- prometheus.MustNewConstHistogram(d, uint64(c.Count), c.Sum.Seconds(), buckets, labels...)
	}
	m.process.Requests(func(route, class string, times shortener.HistogramCounts) {
		histogram(requestsDurDesc, times, route, class)
	})
	o := m.service.Outcomes()
	for outcome, n := range creations(o) {
		count(creationsDesc, float64(n), outcome)
	}
	var refused int64
	for _, level := range shortener.Levels {
		refused += o.Refused[level]
		count(refusedDesc, float64(o.Refused[level]), string(level))
		count(wouldRefuseDesc, float64(o.WouldRefuse[level]), string(level))
	}
	// With these two, each answer to a creation is in one outcome.
	count(creationsDesc, float64(refused), "refused")
	count(creationsDesc, float64(m.process.Throttle().Refused), "throttled")
	for outcome, n := range map[string]int64{
		"found": o.Followed, "not_found": o.Missing, "ended": o.Ended, "taken_down": o.TakenDown, "failed": o.Failed,
	} {
		count(visitsDesc, float64(n), outcome)
	}
	count(visitsLostDesc, float64(o.VisitsLost))
	for name, stats := range map[string]quota.ThrottleStats{"creations": m.process.Throttle(), "changes": m.process.Changes()} {
		count(throttledDesc, float64(stats.Refused), name)
		count(overflowDesc, float64(stats.Overflowed), name)
		gauge(clientsDesc, float64(stats.Clients), name)
	}
	conns := m.process.Connections()
	gauge(connLimitDesc, float64(conns.Limit))
	for state, n := range conns.Open {
		gauge(connsDesc, float64(n), state)
	}
	for reason, n := range conns.Closed {
		count(connsEndedDesc, float64(n), reason)
	}
	for bound, n := range conns.Refused {
		count(connsTurnedDesc, float64(n), bound)
	}
	ctx := context.Background()
	if u, err := m.service.Budget(ctx); err == nil && u.Level != "" {
		gauge(usedDesc, float64(u.Used))
		gauge(limitDesc, float64(u.Max))
	}
	m.viewReputation(ctx).collect(count, gauge)
	gauge(readyDesc, truth(m.service.Ready(ctx) == nil))
	h := m.service.StoreHealth()
	gauge(bytesDesc, float64(h.Bytes))
	count(commitsDesc, float64(h.Commits))
	count(operationsDesc, float64(h.Operations))
	gauge(freePagesDesc, float64(h.FreePages))
	count(commitTimeDesc, h.CommitTime.Sum.Seconds())
	count(waitTimeDesc, h.WaitTime.Sum.Seconds())
	histogram(commitsDurDesc, h.CommitTime)
	histogram(waitsDurDesc, h.WaitTime)
	gauge(waitingDesc, float64(h.Waiting))
	count(turnedAwayDesc, float64(h.TurnedAway))
	gauge(troubleDesc, truth(h.Trouble != ""))
	names, failing := 0, 0
	for _, list := range m.process.Blocklist() {
		names += list.Names
		if list.Error != "" {
			failing++
		}
	}
	gauge(namesDesc, float64(names))
	gauge(listErrorsDesc, float64(failing))
	alerts := m.process.Alerts()
	count(deliveredDesc, float64(alerts.Delivered))
	count(failedDesc, float64(alerts.Failed))
	count(tokensDesc, float64(m.gate.refused.Wrong.Load()), "wrong")
	count(tokensDesc, float64(m.gate.refused.Throttled.Load()), "throttled")
	gauge(infoDesc, 1, m.process.Version)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// newMetrics returns what Prometheus asks for.
func newMetrics(s *server) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
