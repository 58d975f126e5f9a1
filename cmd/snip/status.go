package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"snip/shortener"
)

// statusCommand is the sub-command that prints how a server is.
type statusCommand struct{ jsonFlag }

// clockCommands are the sub-commands about the clock.
type clockCommands struct {
	Accept struct{} `cmd:"" help:"Say that the clock is right, although links of later days were counted."`
}

func acceptClock(ctx context.Context, c *adminClient, _ *commandLine, stdout, _ io.Writer) error {
	var answer struct {
		Forgotten string `json:"forgotten"`
	}
	if err := c.call(ctx, http.MethodPost, "/api/clock", nil, &answer); err != nil {
		return err
	}
	if answer.Forgotten == "" {
		fmt.Fprintln(stdout, "The clock needs no such word: no later day was counted.")
		return nil
	}
	fmt.Fprintf(stdout, "The clock is accepted, although links of %s were counted.\n", answer.Forgotten)
	return nil
}

// serverStatus is what the admin listener tells of it, as far as it is printed for
// a person.
type serverStatus struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Ready   bool      `json:"ready"`
	Reason  string    `json:"reason"`
	Day     string    `json:"day"`
	Budget  *struct {
		Used     int64     `json:"used"`
		Limit    int64     `json:"limit"`
		ResetsAt time.Time `json:"resets_at"`
	} `json:"budget"`
	DryRun     []string `json:"dry_run"`
	Reputation *struct {
		OnFailure   string           `json:"on_failure"`
		DayAtMost   int64            `json:"day_at_most_micros"`
		Spent       int64            `json:"spent_micros"`
		Held        int64            `json:"held_micros"`
		Calls       int64            `json:"calls"`
		Limit       int64            `json:"calls_limit"`
		Ended       map[string]int64 `json:"ended"`
		Cached      int64            `json:"cached"`
		Unchecked   int64            `json:"unchecked"`
		PausedUntil time.Time        `json:"paused_until"`
	} `json:"reputation"`
	Creations   map[string]int64 `json:"creations"`
	Visits      map[string]int64 `json:"visits"`
	Throttled   int64            `json:"throttled"`
	Connections struct {
		Limit   int64            `json:"limit"`
		Open    map[string]int64 `json:"open"`
		Closed  map[string]int64 `json:"closed"`
		Refused map[string]int64 `json:"refused"`
	} `json:"connections"`
	Store struct {
		Bytes      int64   `json:"bytes"`
		LastCommit float64 `json:"last_commit_seconds"`
		Waiting    int     `json:"waiting"`
		Trouble    string  `json:"trouble"`
	} `json:"store"`
	Blocklists []struct {
		Path  string `json:"path"`
		Names int    `json:"names"`
		Error string `json:"error"`
	} `json:"blocklists"`
	Keys      int `json:"keys"`
	Overrides int `json:"overrides"`
	Blocks    int `json:"blocks"`
	Notices   int `json:"notices_waiting"`
}

func printStatus(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	if line.Status.JSON {
		var answer map[string]any
		if err := c.call(ctx, http.MethodGet, "/api/status", nil, &answer); err != nil {
			return err
		}
		return printJSON(stdout, answer)
	}
	var s serverStatus
	if err := c.call(ctx, http.MethodGet, "/api/status", nil, &s); err != nil {
		return err
	}
	table := newTable(stdout, "SNIP\t"+strings.TrimPrefix(s.Version, "snip "))
	row := func(name, format string, args ...any) { fmt.Fprintf(table, name+"\t"+format+"\n", args...) }
	row("up since", "%s", s.Started.Format(time.RFC3339))
	if s.Ready {
		row("links can be made", "yes")
	} else {
		row("links can be made", "no: %s", s.Reason)
	}
	if s.Budget != nil {
		row("links of "+s.Day, "%d of %d, until %s", s.Budget.Used, s.Budget.Limit, s.Budget.ResetsAt.Format(time.RFC3339))
	}
	if len(s.DryRun) > 0 {
		row("levels that refuse nothing", "%s", strings.Join(s.DryRun, ", "))
	}
	if r := s.Reputation; r != nil {
		row("spent on checks of "+s.Day, "%s of %s at most, %s held", shortener.Units(r.Spent), shortener.Units(r.DayAtMost), shortener.Units(r.Held))
		row("calls of "+s.Day, "%d of %d", r.Calls, r.Limit)
		row("calls since then", "%s; %d answered from memory", counts(r.Ended), r.Cached)
		row("when nobody can be asked", "%s; %d destinations were not checked", r.OnFailure, r.Unchecked)
		if !r.PausedUntil.IsZero() {
			row("nobody is asked before", "%s, because calls have failed", r.PausedUntil.Format(time.RFC3339))
		}
	}
	row("creations since then", "%s", counts(s.Creations))
	row("refused by the throttle", "%d", s.Throttled)
	row("visits since then", "%s", counts(s.Visits))
	row("connections", "%s, of %d that may be open", counts(s.Connections.Open), s.Connections.Limit)
	row("connections closed", "%s", counts(s.Connections.Closed))
	row("connections refused", "%s", counts(s.Connections.Refused))
	if s.Store.Bytes > 0 { // of a database it is not known
		row("data file", "%d bytes", s.Store.Bytes)
	}
	row("store", "last commit %.1f ms, %d writes waiting", 1000*s.Store.LastCommit, s.Store.Waiting)
	if s.Store.Trouble != "" {
		row("trouble", "%s", s.Store.Trouble)
	}
	for _, list := range s.Blocklists {
		row("block list", "%s: %d names %s", list.Path, list.Names, list.Error)
	}
	row("set by operators", "%d keys, %d overrides, %d blocked hosts", s.Keys, s.Overrides, s.Blocks)
	row("alerts waiting", "%d", s.Notices)
	return table.Flush()
}

// counts lists what is not zero.
func counts(numbers map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		if numbers[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", numbers[name], strings.ReplaceAll(name, "_", " ")))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func printHistory(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	asked := line.Quota.History
	if asked.Days < 1 || asked.Days > shortener.HistoryDays {
		return &settingsError{[]error{fmt.Errorf("--days must be a whole number from 1 to %d", shortener.HistoryDays)}}
	}
	var answer struct {
		Days []struct {
			Day     string           `json:"day"`
			Created int64            `json:"created"`
			Clients int64            `json:"clients"`
			Busiest int64            `json:"busiest"`
			Refused map[string]int64 `json:"refused"`
		} `json:"days"`
	}
	if err := c.call(ctx, http.MethodGet, fmt.Sprintf("/api/history?limit=%d", asked.Days), nil, &answer); err != nil {
		return err
	}
	if asked.JSON {
		return printJSON(stdout, answer.Days)
	}
	table := newTable(stdout, "DAY\tCREATED\tCLIENTS\tBUSIEST\tREFUSED BY SERVICE\tNETWORK\tCLIENT")
	for _, d := range answer.Days {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", d.Day, d.Created, d.Clients, d.Busiest,
			d.Refused["service"], d.Refused["network"], d.Refused["client"])
	}
	return table.Flush()
}
