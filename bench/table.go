package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// figures are one measurement of each round, in order.
type figures []float64

// median is that of the values, between the middle two when they are even.
func (f figures) median() float64 {
	sorted := slices.Sorted(slices.Values(f))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// over returns the ratios round by round, which a change of the machine's speed
// between rounds leaves alone.
func (f figures) over(g figures) figures {
	ratios := make(figures, len(f))
	for i := range f {
		ratios[i] = f[i] / g[i]
	}
	return ratios
}

// show writes median (least-most), with format for each.
func (f figures) show(format func(float64) string) string {
	return fmt.Sprintf("%s (%s-%s)", format(f.median()), format(slices.Min(f)), format(slices.Max(f)))
}

// whole writes 12345.6 as 12,346.
func whole(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func hundredths(v float64) string { return fmt.Sprintf("%.2f", v) }

// table is what a series prints.
type table struct {
	rows    []string // columns are separated by tabs
	notes   []string
	targets []string
}

// series begins a block; ratio is the heading of its second column of figures.
func (t *table) series(name, ratio string) {
	t.block(name, "per second", ratio, "p50 ms", "p99 ms", "CPU µs")
}

// block begins a block with six columns of any kind.
func (t *table) block(headings ...string) {
	t.rows = append(t.rows, "\t\t\t\t\t", strings.Join(headings, "\t"))
}

// row adds a cell, with its ratio to another one unless that is nil.
func (t *table) row(c, to *cell) {
	ratio, cpu := "", ""
	if to != nil {
		ratio = c.rate.over(to.rate).show(hundredths)
	}
	if c.cpu.median() > 0 {
		cpu = fmt.Sprintf("%.1f", c.cpu.median())
	}
	if c.busy.median() > 0.9 {
		t.note("%s: wrk was at the limit of its core, so the figure is a floor", c.name)
	}
	if share := slices.Max(c.disk); share > 0.001 {
		t.note("%s: in some round %.1f %% of the answers had to wait for a page of the file to be read, so the figures are the disk's as well", c.name, 100*share)
	}
	t.rows = append(t.rows, strings.Join([]string{"  " + c.name, c.rate.show(whole), ratio,
		hundredths(c.p50.median()), hundredths(c.p99.median()), cpu}, "\t"))
}

// note adds a finding that is not a figure of a cell, unless it is there already.
func (t *table) note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(t.notes, note) {
		t.notes = append(t.notes, note)
	}
}

// target compares the median with the least that is aimed at.
func (t *table) target(what string, f figures, least float64) {
	t.verdict(f.median() >= least, "%s: %s, at least %.2f wanted", what, f.show(hundredths), least)
}

// limit compares the median with the most that is aimed at.
func (t *table) limit(what string, f figures, most float64) {
	t.verdict(f.median() <= most, "%s: %s, at most %.2f wanted", what, f.show(hundredths), most)
}

func (t *table) verdict(met bool, format string, args ...any) {
	word := "MISS"
	if met {
		word = "PASS"
	}
	t.targets = append(t.targets, word+"  "+fmt.Sprintf(format, args...))
}

func (t *table) print(w io.Writer) error {
	var aligned strings.Builder
	columns := tabwriter.NewWriter(&aligned, 0, 0, 3, ' ', 0)
	for _, row := range t.rows {
		fmt.Fprintln(columns, row)
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(aligned.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
	for _, lines := range [][]string{t.notes, t.targets} {
		if len(lines) > 0 {
			fmt.Fprintf(w, "\n%s\n", strings.Join(lines, "\n"))
		}
	}
	return nil
}
