package admin

import (
	"fmt"
	"strings"
	"time"

	"snip/shortener"
)

// The chart is as wide as a day of minutes, and as high as this.
const chartHeight = 300

// course is how a day's links came about.
type course struct {
	total int64 // exact, from the counter; less than what was made where it is not counted
	hours shortener.Hours
	until time.Time // of the day, or now
}

func dayStart(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// most is how many there were at the end.
func (c course) most() int64 {
	var made int64
	for _, n := range c.hours {
		made += n
	}
	return max(c.total, made)
}

// each calls use with every hour that has begun, and with how many there were at its end.
func (c course) each(use func(hour int, made, inAll int64)) {
	n := c.before()
	for hour := 0; hour <= c.last(); hour++ {
		n += c.hours[hour]
		use(hour, c.hours[hour], n)
	}
}

// before is what is in no hour: it counts as made before the first.
func (c course) before() int64 {
	n := c.most()
	for _, made := range c.hours {
		n -= made
	}
	return n
}

// last is the hour that has begun last.
func (c course) last() int { return c.until.UTC().Hour() }

// points are those of a line from the first hour to the end, where most is as high
// as the chart.
func (c course) points(most int64) string {
	var line []string
	add := func(minute int, n int64) { line = append(line, fmt.Sprintf("%d,%.1f", minute, heightOf(n, most))) }
	add(0, c.before())
	c.each(func(hour int, _, inAll int64) {
		minute := 60 * (hour + 1)
		if hour == c.last() {
			minute = 60*hour + c.until.UTC().Minute() + 1
		}
		add(minute, inAll)
	})
	return strings.Join(line, " ")
}

// heightOf counts from the top, as SVG does.
func heightOf(n, most int64) float64 {
	return chartHeight * (1 - float64(n)/float64(most))
}

// chart is a day as hours, with the day before behind it and the limit above.
type chart struct {
	Today, Yesterday string  // the points of lines
	Limit, Open      float64 // how high; Open is where newcomers' part begins
	Limited, Parted  bool    // whether there are such lines
	Made             int64
	Rows             []chartRow // what the lines say, as numbers
}

// chartRow is an hour; empty is unknown.
type chartRow struct {
	Hour                      int
	Made, InAll               string
	MadeBefore, InAllByBefore string
}

func newChart(today, yesterday course, limit, newcomers int64) chart {
	most := max(limit, today.most(), yesterday.most(), 1)
	v := chart{
		Today:     today.points(most),
		Yesterday: yesterday.points(most),
		Limit:     heightOf(limit, most),
		Open:      heightOf(limit-newcomers, most),
		Limited:   limit > 0,
		Parted:    limit > 0 && newcomers > 0,
		Made:      today.most(),
		Rows:      make([]chartRow, 24),
	}
	for hour := range v.Rows {
		v.Rows[hour].Hour = hour
	}
	today.each(func(hour int, made, inAll int64) {
		v.Rows[hour].Made, v.Rows[hour].InAll = grouped(made), grouped(inAll)
	})
	yesterday.each(func(hour int, made, inAll int64) {
		v.Rows[hour].MadeBefore, v.Rows[hour].InAllByBefore = grouped(made), grouped(inAll)
	})
	return v
}
