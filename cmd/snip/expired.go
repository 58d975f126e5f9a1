package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"snip/shortener"
)

// deleteExpired asks again until the server has looked at every link.
func deleteExpired(ctx context.Context, c *adminClient, line *commandLine, stdout io.Writer) error {
	asked := line.Links.Delete
	before, err := parseBefore(asked.ExpiredBefore, time.Now())
	if err != nil {
		return &settingsError{[]error{fmt.Errorf("--expired-before %q: %w", asked.ExpiredBefore, err)}}
	}
	all, mark := 0, ""
	for {
		var answer struct {
			Links int    `json:"links"`
			Next  string `json:"next"`
		}
		body := map[string]any{"expired_before": before, "dry_run": asked.DryRun, "note": asked.Note, "mark": mark}
		if err := c.call(ctx, http.MethodPost, "/api/links/delete-expired", body, &answer); err != nil {
			return fmt.Errorf("after %s: %w", linksText(all), err)
		}
		all += answer.Links
		if mark = answer.Next; mark == "" {
			break
		}
	}
	did := "deleted"
	if asked.DryRun {
		did = "to be deleted"
	}
	fmt.Fprintf(stdout, "%s %s that expired before %s.\n", linksText(all), did, before.Format(time.RFC3339))
	return nil
}

// parseBefore reads an instant, a date in UTC, or how long before now.
func parseBefore(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UTC(), nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	if d, err := parseLength(text); err == nil && d >= 0 {
		return now.UTC().Add(-d), nil
	}
	return time.Time{}, errors.New("a time such as 2026-11-29T12:00:00Z, a date such as 2026-11-29, " +
		"or how long ago, such as 30d or 12h, is needed")
}

// parseLength reads a length of time in days, or as [time.ParseDuration] does.
func parseLength(text string) (time.Duration, error) {
	if number, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.Atoi(number); err == nil && days >= 0 && days <= mostDays {
			return time.Duration(days) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		err = fmt.Errorf("%q: a length of time such as 90m, 24h or 7d is needed", text)
	}
	return d, err
}

// mostDays bounds how many days after its expiry a link is kept.
const mostDays = 36_500

// expiredEvery is how often links are looked for that expired long ago.
const expiredEvery = time.Hour

// clearExpired deletes links some days after their expiry, again and again, until it is
// told to end. Of several servers the leader does it.
func clearExpired(service *shortener.Service, days int64, leads func() bool, log *slog.Logger) (end func()) {
	if days == 0 {
		return func() {}
	}
	return repeat(expiredEvery, func(ctx context.Context) {
		before, err := clearBefore(ctx, service, time.Now(), int(days))
		n := 0
		if err == nil && !before.IsZero() {
			n, err = clearOnce(ctx, service, before, days, leads)
		}
		if n > 0 {
			log.Info("links were deleted that had expired long ago", "links", n, "days", days)
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("links that expired long ago could not be deleted; the next try follows",
				"err", err, "in", expiredEvery.String())
		}
	})
}

// clearBefore returns before which instant links must have expired to be deleted: that is
// some days ago, and no later than the newest day of the history that is as long ago. A
// clock that jumps ahead leaves those days out, so it takes no link that is alive for
// expired until as many days have passed. The zero time stands for no link.
func clearBefore(ctx context.Context, service *shortener.Service, now time.Time, days int) (time.Time, error) {
	records, err := service.History(ctx, shortener.HistoryDays)
	if err != nil {
		return time.Time{}, err
	}
	before := now.UTC().AddDate(0, 0, -days)
	confirmed := now.UTC().AddDate(0, 0, -min(days, shortener.HistoryDays/2)).Format(time.DateOnly)
	for _, r := range records {
		if r.Day > confirmed {
			continue
		}
		day, err := time.Parse(time.DateOnly, r.Day)
		if day.Before(before) {
			before = day
		}
		return before, err
	}
	return time.Time{}, nil
}

// clearOnce looks at every link once. It ends with the context and with the lead.
func clearOnce(
	ctx context.Context, service *shortener.Service, before time.Time, days int64, leads func() bool,
) (all int, err error) {
	e := shortener.Expired{Before: before.Truncate(time.Second), Note: fmt.Sprintf("--delete-expired-after %d", days)}
	for ctx.Err() == nil && leads() {
		n, next, err := service.DeleteExpired(ctx, e)
		if all += n; err != nil {
			return all, err
		}
		if e.Mark = next; next == "" {
			break
		}
	}
	return all, nil
}
