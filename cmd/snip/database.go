package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"snip/shortener/pgstore"
)

const (
	// startPatience is how long a database may be out of reach at the start, such as
	// when both are started at once.
	startPatience = 15 * time.Second
	// startPause is between two attempts to reach it.
	startPause = 250 * time.Millisecond
)

// location is where the data is: in a file, or in a PostgreSQL database.
type location struct {
	file     string
	database string // a URL, which may hold a password
}

// String returns what may be shown: of a URL the hosts and the name, and not even
// those where a password could have been taken for one.
func (l location) String() string {
	if l.database == "" {
		return l.file
	}
	scheme, _, _ := strings.Cut(l.database, "://")
	hidden := scheme + "://..."
	u, err := url.Parse(l.database)
	if err != nil {
		return hidden
	}
	if hasStrayMark(l.database, u) {
		return hidden
	}
	return scheme + "://" + u.Host + u.Path
}

func parseStore(text string) (location, error) {
	scheme, _, isURL := strings.Cut(text, "://")
	switch {
	case text == "" || isURL && scheme != "postgres" && scheme != "postgresql":
		return location{}, errors.New("the path of a file, such as snip.db, or a postgres:// URL is needed")
	case !isURL && meansDatabase(text):
		return location{}, errors.New("a database is named by a URL that begins with postgres://")
	case !isURL:
		return location{file: text}, nil
	}
	u, err := url.Parse(text)
	if err != nil || hasStrayMark(text, u) {
		return location{}, errors.New("it cannot be read as a URL; what is no letter or digit in a password must be percent-encoded")
	}
	if err := pgstore.CheckURL(text); err != nil {
		return location{}, err
	}
	return location{database: text}, nil
}

// openDatabase waits for a database that cannot be reached, for a while.
func openDatabase(ctx context.Context, at location, log *slog.Logger) (store, error) {
	var s *pgstore.Store
	err := whenReached(ctx, log, func(ctx context.Context) (err error) {
		s, err = pgstore.Open(ctx, at.database, pgstore.Options{Log: log})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the database cannot be used: %w", err)
	}
	return s, nil
}

// whenReached tries until the database is reached or has refused, or time is up.
func whenReached(ctx context.Context, log *slog.Logger, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	again := time.NewTicker(startPause)
	defer again.Stop()
	for told := false; ; told = true {
		err := try(ctx)
		if err == nil || !pgstore.MayPass(err) {
			return err
		}
		if !told {
			log.Warn("the database cannot be reached yet", "err", err, "at_most", startPatience.String())
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

// migrate is the command of that name.
func migrate(ctx context.Context, a asked, stdout, stderr io.Writer) error {
	r := reader{given: a.settings}
	at := readStore(&r)
	if len(r.problems) > 0 {
		return &settingsError{r.problems}
	}
	if at.database == "" {
		return fmt.Errorf("%s is a data file, which is migrated when it is opened; name a database with --store", at)
	}
	err := whenReached(ctx, newLog(stderr), func(ctx context.Context) error { return pgstore.Migrate(ctx, at.database) })
	if err != nil {
		return fmt.Errorf("%s was not migrated: %w", at, err)
	}
	fmt.Fprintf(stdout, "%s has the tables of this version.\n", at)
	return nil
}

// hasStrayMark reports whether a URL has an @ but for the one behind its user: then a
// part of the password stands where another part of the URL is read.
func hasStrayMark(text string, u *url.URL) bool {
	marks := 0
	if u.User != nil {
		marks = 1
	}
	return strings.Count(text, "@") != marks
}

// meansDatabase reports whether what is no URL was meant for a database, in libpq's
// other notation or by a slip. As a file's name it would show the password.
func meansDatabase(text string) bool {
	return strings.HasPrefix(text, "postgres:") || strings.HasPrefix(text, "postgresql:") ||
		strings.HasPrefix(text, "host=") || strings.Contains(text, "password=")
}

// shownStore returns what of a setting that cannot be read may be shown.
func shownStore(text string) string {
	switch {
	case strings.Contains(text, "://"):
		return location{database: text}.String()
	case meansDatabase(text):
		return "..."
	}
	return text
}
