package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed *.lua
var scripts embed.FS

// writeScripts puts the scripts where wrk can read them, each with the report
// that they share.
func (b *bench) writeScripts() error {
	report, err := scripts.ReadFile("report.lua")
	if err != nil {
		return err
	}
	for _, name := range []string{"follow.lua", "create.lua", "refuse.lua", "mix.lua"} {
		script, err := scripts.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(b.dir, name), append(script, report...), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// load is one run of wrk.
type load struct {
	script      string
	server      *server
	path        string
	connections int
	args        []string // for the script
}

// result is what one measurement found.
type result struct {
	rate     float64 // per second
	p50, p99 float64 // milliseconds
	cpu      float64 // microseconds of the server's processor for one answer; 0 without a server
	busy     float64 // the part of its core that wrk used, of 1
	prepared float64 // seconds that wrk had used before it began
	disk     float64 // how often the server waited for a page of its file, for one answer
	answers  int
	samples  []string // locations of some of the links that were made
}

// run puts the load on for d. Any answer but the one that the script wants is an
// error, and so is a connection that breaks.
func (b *bench) run(ctx context.Context, l load, d time.Duration) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, d+30*time.Second)
	defer cancel()
	args := append([]string{"-t", "1", "-c", strconv.Itoa(l.connections), "-d", strconv.Itoa(int(d.Seconds())) + "s",
		"--timeout", "10s", "-s", filepath.Join(b.dir, l.script), l.server.url + l.path, "--"}, l.args...)
	cmd := b.command(ctx, loadCore, "wrk", args...)
	before, err := l.server.spent()
	if err != nil {
		return result{}, err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return result{}, fmt.Errorf("wrk: %w\n%s", cmp.Or(ctx.Err(), err), out)
	}
	r, err := parseReport(string(out))
	if err != nil {
		return result{}, fmt.Errorf("wrk with %s: %w\n%s", l.script, err, out)
	}
	after, err := l.server.spent()
	if err != nil {
		return result{}, err
	}
	r.cpu = float64((after.cpu - before.cpu).Microseconds()) / float64(r.answers)
	r.disk = float64(after.disk-before.disk) / float64(r.answers)
	used := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	r.busy = (used - r.prepared) / d.Seconds()
	return r, nil
}

// parseReport reads what a script printed among wrk's own words.
func parseReport(out string) (result, error) {
	var r result
	for line := range strings.Lines(out) {
		if location, ok := strings.CutPrefix(line, "sample "); ok {
			r.samples = append(r.samples, strings.TrimSpace(location))
			continue
		}
		if prepared, ok := strings.CutPrefix(line, "prepared "); ok {
			if _, err := fmt.Sscan(prepared, &r.prepared); err != nil {
				return result{}, fmt.Errorf("its report: %w", err)
			}
			continue
		}
		figures, ok := strings.CutPrefix(line, "figures ")
		if !ok {
			continue
		}
		var other, broken, late, duration, p50, p99 int
		if _, err := fmt.Sscan(figures, &r.answers, &other, &broken, &late, &duration, &p50, &p99); err != nil {
			return result{}, fmt.Errorf("its report: %w", err)
		}
		if other+broken+late > 0 || r.answers == 0 || duration <= 0 {
			return result{}, fmt.Errorf("%d answers as expected, %d others, %d broken connections, %d answers too late",
				r.answers, other, broken, late)
		}
		r.rate = float64(r.answers) / (float64(duration) / 1e6)
		r.p50, r.p99 = float64(p50)/1e3, float64(p99)/1e3
		return r, nil
	}
	return result{}, errors.New("it reported nothing")
}
