package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"snip/shortener/blocklist"
	"snip/web/admin"
)

// blocklistsEvery is how often the files are looked at.
const blocklistsEvery = 5 * time.Second

// openBlocklists reads the lists. One that cannot be read does not keep the program
// from starting: its redirects must go on. But no links are made until it is there. The second result
// reads them anew as they change, until its context ends.
func openBlocklists(c config, log *slog.Logger) (*blocklist.Files, func(context.Context)) {
	var always []*blocklist.List
	if !c.shorteners {
		always = append(always, blocklist.Shorteners())
	}
	files := blocklist.NewFiles(blocklist.Config{Paths: c.blocklists, Always: always, Now: time.Now, Log: log})
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGHUP) // before the first reading, or a signal meanwhile would end the process
	if err := files.Reload(context.Background()); err != nil {
		log.Error("block lists could not be loaded", "err", err)
	}
	return files, func(ctx context.Context) {
		defer signal.Stop(told)
		files.Watch(ctx, blocklistsEvery, told)
	}
}

// viewBlocklists is what the operator sees of the lists.
func viewBlocklists(lists []blocklist.Status) []admin.Blocklist {
	view := make([]admin.Blocklist, len(lists))
	for i, list := range lists {
		view[i] = admin.Blocklist{Path: list.Path, Names: list.Names, Loaded: list.Loaded}
		if list.Err != nil {
			view[i].Error = list.Err.Error()
		}
	}
	return view
}
