package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"snip/quota"
	"snip/shortener/boltstore"
)

// check is the command of that name.
func check(a asked, stdout io.Writer) error {
	path := a.line.Check.File
	if err := needFile(path, "check looks at"); err != nil {
		return err
	}
	found, err := boltstore.Check(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s: %s\n", path, summary(found))
	printDays(stdout, found)
	printDoubts(stdout, found)
	for _, problem := range found.Problems {
		fmt.Fprintf(stdout, "problem: %s\n", problem)
	}
	if found.Hidden > 0 {
		fmt.Fprintf(stdout, "problem: and %d more\n", found.Hidden)
	}
	switch wrong := len(found.Problems) + found.Hidden; {
	case wrong > 0:
		return fmt.Errorf("%s is damaged: %d problems", path, wrong)
	case len(found.Doubts) > 0:
		return fmt.Errorf("%s can be used, but look at %d doubts", path, len(found.Doubts))
	}
	fmt.Fprintln(stdout, "sound")
	return nil
}

// restore is the command of that name.
func restore(a asked, stdout io.Writer) error {
	r := reader{given: a.settings}
	at := read(&r, "store", parseStore)
	if len(r.problems) > 0 {
		return &settingsError{r.problems}
	}
	for _, path := range []string{a.line.Restore.File, cmp.Or(at.file, at.database)} {
		if err := needFile(path, "restore works on"); err != nil {
			return err
		}
	}
	store := at.file
	if file, err := filepath.EvalSymlinks(store); err == nil {
		store = file // so that it is the file that is replaced, and not a link to it
	}
	from, aside := a.line.Restore.File, ""
	if a.line.Restore.Force {
		aside = store + ".before-" + time.Now().UTC().Format("20060102T150405Z")
	}
	found, err := boltstore.Restore(from, store, aside)
	if errors.Is(err, fs.ErrExist) && aside == "" {
		return fmt.Errorf("%w; --force moves it aside", err)
	}
	if err != nil {
		return fmt.Errorf("%s was not restored: %w", from, err)
	}
	fmt.Fprintf(stdout, "%s: %s\n", store, summary(found))
	printDays(stdout, found)
	printDoubts(stdout, found)
	if _, err := os.Lstat(aside); err == nil {
		fmt.Fprintf(stdout, "what was there is %s now\n", aside)
	}
	return nil
}

// needFile returns what to do where the command is for files and this is a database.
func needFile(path, what string) error {
	if !strings.Contains(path, "://") {
		return nil
	}
	return errors.New(what + " data files: a PostgreSQL database has pg_amcheck, pg_dump and pg_restore")
}

// summary says in a line what a file holds.
func summary(r boltstore.Report) string {
	parts := []string{
		fmt.Sprintf("format %d", r.Format),
		fmt.Sprintf("%d links (%d deleted, %d taken down)", r.Links, r.Deleted, r.TakenDown),
		fmt.Sprintf("visits counted of %d", r.Limited),
		fmt.Sprintf("statistics of %d", r.Visited),
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Entries)) {
		parts = append(parts, fmt.Sprintf("%d entries of the kind %s", r.Entries[kind], kind))
	}
	if r.Answers > 0 {
		parts = append(parts, fmt.Sprintf("%d answers", r.Answers))
	}
	if r.Reservations > 0 {
		parts = append(parts, fmt.Sprintf("%d reservations (%d pending)", r.Reservations, r.Pending))
	}
	return strings.Join(append(parts, fmt.Sprintf("%d lines of the audit log", r.Acts)), ", ")
}

func printDays(w io.Writer, r boltstore.Report) {
	for _, day := range r.Days {
		fmt.Fprintf(w, "%s: %d links, %d of them by API keys; paid for: service %d, networks %d, clients %d\n", day.Day, day.Links, day.Keys,
			day.Used[quota.LevelService], day.Used[quota.LevelNetwork], day.Used[quota.LevelClient])
	}
}

func printDoubts(w io.Writer, r boltstore.Report) {
	for _, doubt := range r.Doubts {
		fmt.Fprintf(w, "doubt: %s\n", doubt)
	}
}
