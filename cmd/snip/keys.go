package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// keyCommands are the sub-commands about API keys.
type keyCommands struct {
	Create struct {
		Name  string `required:"" help:"What the key is called: 1 to 64 characters."`
		Daily int64  `required:"" placeholder:"LINKS" help:"Links that its holder may make per UTC day."`
		jsonFlag
	} `cmd:"" help:"Make a key and print it, the only time."`
	List struct {
		jsonFlag
	} `cmd:"" help:"List the keys and what they have used today."`
	Change struct {
		Name  string `required:"" help:"The key's name."`
		Daily int64  `required:"" placeholder:"LINKS" help:"Links that its holder may make per UTC day from now on, today's included."`
		jsonFlag
	} `cmd:"" help:"Give a key another limit, at once."`
	Revoke struct {
		Name string `required:"" help:"The key's name."`
	} `cmd:"" help:"Take a key away from its holder, at once. Its links lead on."`
}

// jsonFlag is for scripts.
type jsonFlag struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// apiKey is a key as the admin listener tells it.
type apiKey struct {
	Name      string    `json:"name"`
	ID        string    `json:"id"`
	Daily     int64     `json:"daily"`
	Used      *int64    `json:"used"`
	CreatedAt time.Time `json:"created_at"`
	Override  *int64    `json:"override,omitempty"` // what holds in place of daily for now
	Key       string    `json:"key,omitempty"`      // its text, when it is made
}

const keysPath = "/api/keys"

func createKey(ctx context.Context, c *adminClient, line *commandLine, stdout, stderr io.Writer) error {
	asked := line.Keys.Create
	var made apiKey
	if err := c.call(ctx, http.MethodPost, keysPath, map[string]any{"name": asked.Name, "daily": asked.Daily}, &made); err != nil {
		return err
	}
	if asked.JSON {
		return printJSON(stdout, made)
	}
	// The key alone, so that a script can take it; the rest is for a person.
	fmt.Fprintf(stderr, "The key %q may make %d links a day. This is the only time that it is shown:\n", made.Name, made.Daily)
	fmt.Fprintln(stdout, made.Key)
	return nil
}

func listKeys(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	var answer struct {
		Keys []apiKey `json:"keys"`
	}
	if err := c.call(ctx, http.MethodGet, keysPath, nil, &answer); err != nil {
		return err
	}
	if line.Keys.List.JSON {
		return printJSON(stdout, answer.Keys)
	}
	table := newTable(stdout, "NAME\tUSED TODAY\tDAILY\tMADE\tID")
	for _, key := range answer.Keys {
		used := "unknown"
		if key.Used != nil {
			used = strconv.FormatInt(*key.Used, 10)
		}
		daily := strconv.FormatInt(key.Daily, 10)
		if key.Override != nil {
			daily += " (an override holds)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", key.Name, used, daily, key.CreatedAt.Format(time.DateOnly), key.ID)
	}
	return table.Flush()
}

func changeKey(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	asked := line.Keys.Change
	var changed apiKey
	if err := c.call(ctx, http.MethodPatch, keyPath(asked.Name), map[string]any{"daily": asked.Daily}, &changed); err != nil {
		return err
	}
	if asked.JSON {
		return printJSON(stdout, changed)
	}
	fmt.Fprintf(stdout, "The key %q may make %d links a day.\n", changed.Name, changed.Daily)
	if changed.Override != nil {
		fmt.Fprintf(stdout, "For now an override holds in its place: see snip quota show 'key %s'.\n", changed.Name)
	}
	return nil
}

func revokeKey(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	name := line.Keys.Revoke.Name
	if err := c.call(ctx, http.MethodDelete, keyPath(name), nil, nil); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "The key %q is revoked.\n", name)
	return nil
}

func keyPath(name string) string { return keysPath + "?name=" + url.QueryEscape(name) }

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
