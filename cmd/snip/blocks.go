package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

// blockCommands are the sub-commands about hosts that links may not lead to.
type blockCommands struct {
	Add struct {
		Host string `arg:"" help:"The host; its subdomains are blocked with it."`
		Note string `help:"For other operators."`
	} `cmd:"" help:"Block a host: no link can be made that leads there, and those that do answer 410."`
	Remove struct {
		Host string `arg:"" help:"The host."`
		Note string `help:"For other operators."`
	} `cmd:"" help:"Let links lead to a host again."`
	List struct {
		jsonFlag
	} `cmd:"" help:"List the hosts that are blocked here, without those of --blocklists."`
}

// auditCommand is the sub-command that prints what operators did.
type auditCommand struct {
	Limit  int    `default:"20" help:"How many lines at most, up to 1000."`
	Before uint64 `placeholder:"NUMBER" help:"Begin before the line with this number."`
	jsonFlag
}

// blockedHost is a block as the admin listener tells it.
type blockedHost struct {
	Host  string    `json:"host"`
	Note  string    `json:"note"`
	SetAt time.Time `json:"set_at"`
}

const blocksPath = "/api/blocks"

func addBlock(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	asked := line.Blocks.Add
	var added blockedHost
	if err := c.call(ctx, http.MethodPost, blocksPath, map[string]any{"host": asked.Host, "note": asked.Note}, &added); err != nil {
		return err
	}
	if _, err := netip.ParseAddr(added.Host); err == nil {
		fmt.Fprintf(stdout, "%s is blocked.\n", added.Host)
		return nil
	}
	fmt.Fprintf(stdout, "%s and its subdomains are blocked.\n", added.Host)
	return nil
}

func removeBlock(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	asked := line.Blocks.Remove
	query := url.Values{"host": {asked.Host}, "note": {asked.Note}}
	if err := c.call(ctx, http.MethodDelete, blocksPath+"?"+query.Encode(), nil, nil); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s is blocked no more.\n", asked.Host)
	return nil
}

func listBlocks(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	var answer struct {
		Blocks []blockedHost `json:"blocks"`
	}
	if err := c.call(ctx, http.MethodGet, blocksPath, nil, &answer); err != nil {
		return err
	}
	if line.Blocks.List.JSON {
		return printJSON(stdout, answer.Blocks)
	}
	table := newTable(stdout, "HOST\tSINCE\tNOTE")
	for _, b := range answer.Blocks {
		fmt.Fprintf(table, "%s\t%s\t%q\n", b.Host, b.SetAt.Format(time.DateOnly), b.Note)
	}
	return table.Flush()
}

func printAudit(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	query := url.Values{"limit": {strconv.Itoa(line.Audit.Limit)}}
	if line.Audit.Before > 0 {
		query.Set("before", strconv.FormatUint(line.Audit.Before, 10))
	}
	var answer struct {
		Lines []struct {
			Number uint64    `json:"number"`
			At     time.Time `json:"at"`
			Action string    `json:"action"`
			Target string    `json:"target"`
			Reason string    `json:"reason,omitempty"`
			Note   string    `json:"note,omitempty"`
			Links  int64     `json:"links,omitempty"`
		} `json:"lines"`
	}
	if err := c.call(ctx, http.MethodGet, "/api/audit?"+query.Encode(), nil, &answer); err != nil {
		return err
	}
	if line.Audit.JSON {
		return printJSON(stdout, answer.Lines)
	}
	table := newTable(stdout, "NUMBER\tWHEN\tACTION\tTARGET\tLINKS\tREASON\tNOTE")
	for _, l := range answer.Lines {
		links := ""
		if l.Links > 0 {
			links = strconv.FormatInt(l.Links, 10)
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%q\n", l.Number, l.At.Format(time.RFC3339), l.Action, l.Target, links, l.Reason, l.Note)
	}
	return table.Flush()
}
