package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// which says which links are meant.
type which struct {
	Slug      string `xor:"which" help:"The link of this slug."`
	Host      string `xor:"which" help:"Links whose destination is at this host or below it."`
	CreatorOf string `xor:"which" name:"creator-of" placeholder:"SLUG" help:"Links that the maker of this one made on the same day."`
}

func (w which) body() map[string]any {
	return map[string]any{"slug": w.Slug, "host": w.Host, "creator_of": w.CreatorOf}
}

// linkCommands are the sub-commands about links.
type linkCommands struct {
	List struct {
		which
		Limit int `default:"100" help:"How many at most, up to 10000."`
		jsonFlag
	} `cmd:"" help:"List links, all of them where none of the three is given."`
	Show struct {
		Slug string `required:"" help:"The link's slug."`
	} `cmd:"" help:"Print all that is known of a link, as JSON."`
	Disable struct {
		which
		Reason string `required:"" help:"abuse, legal, malware, phishing, spam or other."`
		Note   string `help:"For other operators; it is in the audit log."`
	} `cmd:"" help:"Take links down: they answer 410 until they are enabled again."`
	Enable struct {
		which
		Note string `help:"For other operators; it is in the audit log."`
	} `cmd:"" help:"Bring links back that were taken down."`
	Delete struct {
		Slug          string `xor:"meant" required:"" help:"The link's slug."`
		ExpiredBefore string `xor:"meant" required:"" name:"expired-before" placeholder:"TIME" help:"All links that expired before this time: 2026-11-29T12:00:00Z, 2026-11-29 (UTC), or how long ago, such as 30d or 12h."`
		DryRun        bool   `name:"dry-run" help:"With --expired-before: count the links and leave them alone."`
		Note          string `help:"For other operators; it is in the audit log."`
	} `cmd:"" help:"Delete links for good. Their slugs are never given to anyone else."`
}

// adminLink is a link as the admin listener tells it.
type adminLink struct {
	Slug      string    `json:"slug"`
	URL       string    `json:"url"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	MaxVisits int64     `json:"max_visits,omitempty"`
	Key       string    `json:"key,omitempty"`
	TakenDown string    `json:"taken_down,omitempty"`
}

func listLinks(ctx context.Context, c *adminClient, line *commandLine, stdout, stderr io.Writer) error {
	asked := line.Links.List
	query := url.Values{"limit": {strconv.Itoa(asked.Limit)}, "slug": {asked.Slug}, "host": {asked.Host}, "creator_of": {asked.CreatorOf}}
	var answer struct {
		Links []adminLink `json:"links"`
		More  bool        `json:"more"`
	}
	if err := c.call(ctx, http.MethodGet, "/api/links?"+query.Encode(), nil, &answer); err != nil {
		return err
	}
	if answer.More {
		fmt.Fprintf(stderr, "There are more; --limit %d raises how many are listed.\n", 10*asked.Limit)
	}
	if asked.JSON {
		return printJSON(stdout, answer.Links)
	}
	table := newTable(stdout, "SLUG\tMADE\tTAKEN DOWN\tLEADS TO")
	for _, link := range answer.Links {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", link.Slug, link.CreatedAt.Format(time.DateOnly), link.TakenDown, printable(link.URL))
	}
	return table.Flush()
}

func showLink(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	var answer map[string]any
	if err := c.call(ctx, http.MethodGet, "/api/link?slug="+url.QueryEscape(line.Links.Show.Slug), nil, &answer); err != nil {
		return err
	}
	return printJSON(stdout, answer)
}

func disableLinks(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	asked := line.Links.Disable
	body := asked.body()
	body["reason"], body["note"] = asked.Reason, asked.Note
	return actOnLinks(ctx, c, "disable", body, stdout, "taken down")
}

func enableLinks(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	asked := line.Links.Enable
	body := asked.body()
	body["note"] = asked.Note
	return actOnLinks(ctx, c, "enable", body, stdout, "brought back")
}

func deleteLink(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	asked := line.Links.Delete
	switch {
	case asked.ExpiredBefore != "":
		return deleteExpired(ctx, c, line, stdout)
	case asked.Slug == "":
		return &settingsError{[]error{errors.New("--slug or --expired-before needs a value; see snip --help")}}
	case asked.DryRun:
		return &settingsError{[]error{errors.New("--dry-run needs --expired-before; see snip --help")}}
	}
	return actOnLinks(ctx, c, "delete", map[string]any{"slug": asked.Slug, "note": asked.Note}, stdout, "deleted")
}

func actOnLinks(ctx context.Context, c *adminClient, act string, body map[string]any, stdout io.Writer, done string) error {
	var answer struct {
		Links int `json:"links"`
	}
	if err := c.call(ctx, http.MethodPost, "/api/links/"+act, body, &answer); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s %s.\n", linksText(answer.Links), done)
	return nil
}

func linksText(n int) string {
	if n == 1 {
		return "1 link"
	}
	return strconv.Itoa(n) + " links"
}

// printable spells out what a terminal would not show, or show in another order.
func printable(text string) string {
	var b strings.Builder
	for _, c := range text {
		if unicode.IsPrint(c) {
			b.WriteRune(c)
		} else {
			fmt.Fprintf(&b, "<%U>", c)
		}
	}
	return b.String()
}

// newTable returns a table with its heading, to be flushed.
func newTable(w io.Writer, heading string) *tabwriter.Writer {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, heading)
	return table
}
