package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// quotaCommands are the sub-commands about limits.
type quotaCommands struct {
	Show struct {
		Target string `arg:"" help:"An address, a network such as 203.0.113.0/24, or 'key NAME'."`
		jsonFlag
	} `cmd:"" help:"Show what is used at each level today, and which would refuse next."`
	Override struct {
		Target    string         `arg:"" help:"An address, a network such as 203.0.113.0/24, or 'key NAME'."`
		Limit     *int64         `xor:"what" placeholder:"LINKS" help:"Links per UTC day in place of the limit that holds for all."`
		Unlimited bool           `xor:"what" help:"Any number; wider levels hold all the same."`
		Block     bool           `xor:"what" help:"None at all."`
		Remove    bool           `xor:"what,end" help:"The limit that holds for all, again."`
		For       *time.Duration `xor:"end" placeholder:"TIME" help:"How long it holds, such as 24h or 7d; without it, until it is removed."`
		Note      string         `help:"For other operators."`
	} `cmd:"" help:"Give one address, network or key another limit, at once."`
	Overrides struct {
		jsonFlag
	} `cmd:"" help:"List the overrides."`
	History struct {
		Days int `default:"30" help:"How many days at most, up to 400."`
		jsonFlag
	} `cmd:"" help:"What was made and refused on each day."`
}

// override is an override as the admin listener tells it.
type override struct {
	Target string    `json:"target"`
	Limit  *int64    `json:"limit"` // null is any number
	Until  time.Time `json:"until,omitzero"`
	Note   string    `json:"note,omitempty"`
	SetAt  time.Time `json:"set_at,omitzero"`
}

const overridesPath = "/api/overrides"

func showQuota(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	asked := line.Quota.Show
	var report struct {
		Target string `json:"target"`
		Levels []struct {
			Level    string    `json:"level"`
			Used     int64     `json:"used"`
			Limit    *int64    `json:"limit"`
			ResetsAt time.Time `json:"resets_at"`
			DryRun   bool      `json:"dry_run,omitempty"`
		} `json:"levels"`
		Refuses string    `json:"refuses,omitempty"`
		Blocked bool      `json:"blocked"`
		OpensAt time.Time `json:"opens_at,omitzero"`
	}
	if err := c.call(ctx, http.MethodGet, "/api/quota?target="+url.QueryEscape(asked.Target), nil, &report); err != nil {
		return err
	}
	if asked.JSON {
		return printJSON(stdout, report)
	}
	table := newTable(stdout, "LEVEL\tUSED\tLIMIT\tSTARTS AFRESH")
	for _, l := range report.Levels {
		limit := limitText(l.Limit)
		if l.DryRun {
			limit += " (dry run)"
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", l.Level, l.Used, limit, l.ResetsAt.Format(time.RFC3339))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	switch {
	case report.Blocked:
		fmt.Fprintln(stdout, "It is blocked by an override.")
	case report.Refuses != "":
		fmt.Fprintf(stdout, "The next link is refused by the %s's limit; it opens at %s.\n", report.Refuses, report.OpensAt.Format(time.RFC3339))
	default:
		fmt.Fprintln(stdout, "The next link is admitted.")
	}
	return nil
}

func limitText(limit *int64) string {
	if limit == nil {
		return "any"
	}
	return strconv.FormatInt(*limit, 10)
}

func overrideQuota(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	asked := line.Quota.Override
	wanted := override{Target: asked.Target, Limit: asked.Limit, Note: asked.Note}
	switch {
	case asked.Remove:
		if err := c.call(ctx, http.MethodDelete, overridesPath+"?target="+url.QueryEscape(asked.Target), nil, nil); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "The limit that holds for all holds for %s again.\n", asked.Target)
		return nil
	case asked.Block:
		wanted.Limit = new(int64)
	case asked.Limit == nil && !asked.Unlimited:
		return &settingsError{[]error{errors.New("one of --limit, --unlimited, --block and --remove is needed; see snip --help")}}
	}
	if asked.For != nil {
		wanted.Until = time.Now().Add(*asked.For)
	}
	var set override
	if err := c.call(ctx, http.MethodPut, overridesPath, wanted, &set); err != nil {
		return err
	}
	end := ""
	if !set.Until.IsZero() {
		end = " until " + set.Until.Format(time.RFC3339)
	}
	fmt.Fprintf(stdout, "Links per day for %s: %s%s.\n", set.Target, limitText(set.Limit), end)
	return nil
}

func listOverrides(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	var answer struct {
		Overrides []override `json:"overrides"`
	}
	if err := c.call(ctx, http.MethodGet, overridesPath, nil, &answer); err != nil {
		return err
	}
	if line.Quota.Overrides.JSON {
		return printJSON(stdout, answer.Overrides)
	}
	table := newTable(stdout, "TARGET\tLIMIT\tUNTIL\tNOTE")
	for _, o := range answer.Overrides {
		until := "it is removed"
		if !o.Until.IsZero() {
			until = o.Until.Format(time.RFC3339)
		}
		if !o.Until.IsZero() && o.Until.Before(time.Now()) {
			until += " (over)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%q\n", o.Target, limitText(o.Limit), until, o.Note)
	}
	return table.Flush()
}
