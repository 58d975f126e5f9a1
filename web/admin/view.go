package admin

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"snip/quota"
	"snip/shortener"
)

// How much of each the page shows.
const (
	mostFound   = 100
	mostBusiest = 10
	mostLines   = 20
	mostNotices = 20
	shownDays   = 14
)

// view is the page.
type view struct {
	FormToken string
	Said      flash
	Query     string // what was searched for
	faulty    faulty

	Now      time.Time
	Uptime   string
	Status   status
	Settings Settings
	Chart    chart
	Levels   []levelView
	Busiest  []busiestView
	Newest   []linkView
	Found    []linkView
	More     bool   // whether there are others
	Host     string // what was found leads there

	Keys      []key
	Overrides []override
	Blocks    []shortener.Block
	Notices   []shortener.Notice
	Lines     []shortener.AuditLine
	Days      []shortener.DayRecord
	Written   []string

	Unread []string // what could not be read, and why
}

// faulty is a form that was refused.
type faulty struct {
	form  string // its name
	text  string
	typed url.Values
}

// Wrong is what is wrong with a form; empty where nothing is.
func (v view) Wrong(form string) string {
	if v.faulty.form != form {
		return ""
	}
	return v.faulty.text
}

// Typed is what was typed into a field of a form that was refused.
func (v view) Typed(form, field string) string {
	if v.faulty.form != form {
		return ""
	}
	return v.faulty.typed.Get(field)
}

// ReasonsOf is the choice of a reason in a form, with what was typed there.
func (v view) ReasonsOf(form string) reasonsView {
	return reasonsView{form, shortener.Reasons, v.Typed(form, "reason"), v.Typed(form, "note")}
}

type reasonsView struct {
	Form         string
	Reasons      []string
	Reason, Note string
}

// levelView is a level's limit and what has become of it.
type levelView struct {
	Level                quota.Level
	Limit, Used          int64 // Limit is 0 where the level is off; Used is that of the busiest
	Refused, WouldRefuse int64
	DryRun               bool
}

// busiestView is who has made most at a level.
type busiestView struct {
	Level  quota.Level
	Counts []countView
}

// countView is a client or a network by the name of a keyed hash.
type countView struct {
	Name string
	Used int64
}

// linkView is a link in a list.
type linkView struct {
	Slug        shortener.Slug
	Destination string // as it is sent, which is ASCII
	CreatedAt   time.Time
	Maker       string // a key's name, or a short name of that day
	TakenDown   string
	HasMaker    bool
}

// shortName names a subject. It holds for a day, as the subject does.
func shortName(s quota.Subject) string {
	name := strings.ToLower(base32.StdEncoding.EncodeToString([]byte(s)))
	return name[:min(6, len(name))]
}

// view reads what the page shows. What cannot be read is left out and named: the
// page is wanted most when something is wrong.
func (s *server) view(ctx context.Context, query string) view {
	now := s.now().UTC()
	v := view{
		Query:    query,
		Now:      now,
		Uptime:   since(s.process.Started, now),
		Status:   s.status(ctx),
		Settings: s.process.Settings,
		Written:  written(s.process.Settings),
	}
	failed := func(what string, err error) bool {
		if err != nil {
			v.Unread = append(v.Unread, fmt.Sprintf("%s: %v", what, err))
		}
		return err != nil
	}
	var err error
	keys, err := s.service.Keys(ctx)
	failed("keys", err)
	names := make(map[quota.KeyID]string, len(keys))
	for _, k := range keys {
		names[k.ID] = k.Name
		v.Keys = append(v.Keys, s.viewKey(ctx, k))
	}
	overrides, err := s.service.Overrides(ctx)
	failed("overrides", err)
	for _, o := range overrides {
		v.Overrides = append(v.Overrides, viewOverride(o))
	}
	v.Blocks, err = s.service.Blocks(ctx)
	failed("blocks", err)
	v.Notices, err = s.service.Notices(ctx, mostNotices)
	failed("notices", err)
	v.Lines, err = s.service.Audit(ctx, 0, mostLines)
	failed("audit log", err)
	v.Days, err = s.service.History(ctx, shownDays)
	failed("history", err)
	newest, err := s.service.Newest(ctx)
	failed("newest links", err)
	for _, l := range newest {
		v.Newest = append(v.Newest, viewInList(l, names))
	}
	failed("today", s.viewToday(ctx, &v))
	failed("search", s.search(ctx, &v, names))
	return v
}

// viewToday adds what has been made and refused today.
func (s *server) viewToday(ctx context.Context, v *view) error {
	yesterday := dayStart(v.Now).Add(-time.Microsecond)
	today, err := s.service.BudgetOf(ctx, quota.DayOf(v.Now))
	before, errBefore := s.service.BudgetOf(ctx, quota.DayOf(yesterday))
	hours, errHours := s.service.MadeByHour(ctx, v.Now)
	hoursBefore, errHoursBefore := s.service.MadeByHour(ctx, yesterday)
	err = errors.Join(err, errHours, errHoursBefore)
	p := s.process.Settings.Policy
	v.Chart = newChart(course{today.Used, hours, v.Now}, course{before.Used, hoursBefore, yesterday}, p.Service, p.Newcomers)

	outcomes, limits := s.service.Outcomes(), map[quota.Level]int64{quota.LevelService: p.Service, quota.LevelNetwork: p.Network, quota.LevelClient: p.Client}
	for _, level := range shortener.Levels {
		counts, errBusiest := s.service.Busiest(ctx, level, mostBusiest)
		err = errors.Join(err, errBusiest)
		row := levelView{
			Level:       level,
			Limit:       limits[level],
			Refused:     outcomes.Refused[level],
			WouldRefuse: outcomes.WouldRefuse[level],
			DryRun:      p.DryRun[level],
		}
		busiest := busiestView{Level: level}
		for _, c := range counts {
			busiest.Counts = append(busiest.Counts, countView{shortName(c.Subject), c.Used})
			row.Used = max(row.Used, c.Used)
		}
		v.Levels = append(v.Levels, row)
		if level != quota.LevelService {
			v.Busiest = append(v.Busiest, busiest)
		}
	}
	return errors.Join(err, errBefore)
}

func viewInList(l shortener.Link, keys map[quota.KeyID]string) linkView {
	v := linkView{
		Slug:        l.Slug,
		Destination: shortener.Location(l.Destination),
		CreatedAt:   l.CreatedAt,
		TakenDown:   l.TakenDown,
		HasMaker:    l.Creator != "",
	}
	switch {
	case l.Key == 0:
		v.Maker = shortName(l.Creator)
	case keys[l.Key] != "":
		v.Maker = "key " + keys[l.Key]
	default:
		v.Maker = "key " + l.Key.String()
	}
	return v
}

// search finds links by a slug, or by a host: slugs have neither dots nor colons.
func (s *server) search(ctx context.Context, v *view, keys map[quota.KeyID]string) error {
	if v.Query == "" {
		return nil
	}
	sel := shortener.Selection{Slug: shortener.Slug(v.Query)}
	if strings.ContainsAny(v.Query, ".:") {
		sel = shortener.Selection{Host: v.Query}
		v.Host = v.Query
	}
	err := s.service.Select(ctx, sel, func(l shortener.Link) bool {
		if v.More = len(v.Found) == mostFound; !v.More {
			v.Found = append(v.Found, viewInList(l, keys))
		}
		return !v.More
	})
	if isAny(err, shortener.ErrNotFound, shortener.ErrGone, shortener.ErrInvalidSelection) {
		v.faulty = faulty{form: "search", text: sentence(err)}
		return nil
	}
	return err
}

// refusedInAll are the refusals of a day, by the levels that refused.
func refusedInAll(refused map[quota.Level]int64) string {
	var parts []string
	for _, level := range shortener.Levels {
		if n := refused[level]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", level, grouped(n)))
		}
	}
	if parts == nil {
		return "0"
	}
	return strings.Join(parts, ", ")
}

// limitText is an override's limit; nil is any number.
func limitText(limit *int64) string {
	switch {
	case limit == nil:
		return "any number a day"
	case *limit == 0:
		return "none"
	}
	return several(*limit, "link") + " a day"
}
