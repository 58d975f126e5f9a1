package web

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"snip/shortener"
)

// RequestTimes holds how long requests took, from their headers to the end of their answers,
// by route and by class of status. It is safe for concurrent use once [New] has returned; the
// zero value is to be given to [New].
type RequestTimes struct {
	routes map[string]*classTimes // by [routeName]
}

// classTimes are the times of one route, by the first digit of the status.
type classTimes [6]shortener.Histogram

// Each calls f with what was counted of each route and class, such as "2xx", of which there
// was any, in the order of their names.
func (t *RequestTimes) Each(f func(route, class string, times shortener.HistogramCounts)) {
	for _, route := range slices.Sorted(maps.Keys(t.routes)) {
		for digit := range t.routes[route] {
			if times := t.routes[route][digit].Counts(); times.Count > 0 {
				f(route, string(rune('0'+digit))+"xx", times)
			}
		}
	}
}

func (t *RequestTimes) of(path string) *classTimes {
	if t.routes == nil {
		t.routes = make(map[string]*classTimes)
	}
	times := new(classTimes)
	t.routes[routeName(path)] = times
	return times
}

// routeName writes a path in the notation of OpenAPI.
func routeName(path string) string {
	switch {
	case path == anySlug:
		return "/{slug}"
	case strings.HasSuffix(path, "/*"):
		path = strings.TrimSuffix(path, "*") + "{rest}"
	}
	return strings.ReplaceAll(path, ":slug", "{slug}")
}

// timed measures a handler together with the answer that its error becomes.
func (s *server) timed(times *classTimes, handle echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		begun := time.Now() // real time: it is about the processor and the disk
		if err := handle(c); err != nil {
			s.refuse(err, c)
		}
		if digit := c.Response().Status / 100; digit < len(times) {
			times[digit].Observe(time.Since(begun))
		}
		return nil
	}
}
