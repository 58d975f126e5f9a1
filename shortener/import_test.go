package shortener_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// imported returns a link that may be imported, with a change.
func imported(slug shortener.Slug, change func(*shortener.Managed)) shortener.Managed {
	m := shortener.Managed{Link: shortener.Link{
		Slug: slug, Destination: "https://example.org/" + string(slug), CreatedAt: noon.AddDate(-3, 0, 0),
	}}
	if change != nil {
		change(&m)
	}
	return m
}

// What would be refused as a new link, or could not be kept as it is, is refused
// with the field, and its neighbours are stored.
func TestImportRules(t *testing.T) {
	t.Parallel()
	link := func(change func(*shortener.Link)) func(*shortener.Managed) {
		return func(m *shortener.Managed) { change(&m.Link) }
	}
	days := map[string]int64{}
	hosts := map[string]int64{shortener.OtherReferrers: 1}
	for i := range 401 {
		days[noon.AddDate(0, 0, -i).Format(time.DateOnly)] = 1
	}
	for i := range 51 {
		hosts[fmt.Sprintf("host-%d.example", i)] = 1
	}
	for name, row := range map[string]struct {
		change func(*shortener.Managed)
		field  string // empty where it is stored
	}{
		"as it is":                    {nil, ""},
		"an expiry that has passed":   {link(func(l *shortener.Link) { l.ExpiresAt = l.CreatedAt.Add(time.Microsecond) }), ""},
		"all visits used":             {func(m *shortener.Managed) { m.Link.MaxVisits, m.Visited = 5, 5 }, ""},
		"a limit below the visits":    {func(m *shortener.Managed) { m.Link.MaxVisits, m.Visited = 5, 10_000 }, ""},
		"taken down":                  {link(func(l *shortener.Link) { l.TakenDown = "spam" }), ""},
		"deleted":                     {link(func(l *shortener.Link) { *l = l.Tombstone() }), ""},
		"made in the year 1970":       {link(func(l *shortener.Link) { l.CreatedAt = time.Unix(0, 0).UTC() }), ""},
		"no slug":                     {link(func(l *shortener.Link) { l.Slug = "" }), "slug"},
		"a slug that is none":         {link(func(l *shortener.Link) { l.Slug = "a/b" }), "slug"},
		"a slug for the operator":     {link(func(l *shortener.Link) { l.Slug = "support" }), ""},
		"a slug that is a route":      {link(func(l *shortener.Link) { l.Slug = "API" }), "slug"},
		"no destination":              {link(func(l *shortener.Link) { l.Destination = "" }), "url"},
		"a blank before":              {link(func(l *shortener.Link) { l.Destination = " https://example.org/" }), "url"},
		"no scheme":                   {link(func(l *shortener.Link) { l.Destination = "example.org/" }), "url"},
		"a private destination":       {link(func(l *shortener.Link) { l.Destination = "http://127.0.0.1/" }), "url"},
		"made never":                  {link(func(l *shortener.Link) { l.CreatedAt = time.Time{} }), "created_at"},
		"made before 1970":            {link(func(l *shortener.Link) { l.CreatedAt = time.Unix(-1, 0).UTC() }), "created_at"},
		"made in parts of a µs":       {link(func(l *shortener.Link) { l.CreatedAt = noon.Add(1) }), "created_at"},
		"ends when it begins":         {link(func(l *shortener.Link) { l.ExpiresAt = l.CreatedAt }), "expires_at"},
		"ends in parts of a µs":       {link(func(l *shortener.Link) { l.ExpiresAt = noon.Add(1) }), "expires_at"},
		"ends in the year 10000":      {link(func(l *shortener.Link) { l.ExpiresAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }), "expires_at"},
		"too many visits to allow":    {link(func(l *shortener.Link) { l.MaxVisits = 10_001 }), "max_visits"},
		"fewer visits than none":      {link(func(l *shortener.Link) { l.MaxVisits = -1 }), "max_visits"},
		"too many visits":             {func(m *shortener.Managed) { m.Visited = 10_001 }, "visits"},
		"a reason that is a sentence": {link(func(l *shortener.Link) { l.TakenDown = "it is spam" }), "taken_down"},
		"a long reason":               {link(func(l *shortener.Link) { l.TakenDown = strings.Repeat("x", 65) }), "taken_down"},
		"deleted with a destination":  {link(func(l *shortener.Link) { l.Deleted = true }), "deleted"},
		"deleted with visits":         {func(m *shortener.Managed) { m.Link, m.Visited = m.Link.Tombstone(), 1 }, "deleted"},
		"deleted with statistics":     {func(m *shortener.Managed) { m.Link, m.Visits.Kinds[0] = m.Link.Tombstone(), 1 }, "deleted"},
		"a day too many":              {func(m *shortener.Managed) { m.Visits.Days = days }, "statistics"},
		"a host too many":             {func(m *shortener.Managed) { m.Visits.Referrers = hosts }, "statistics"},
		"a day that is none":          {func(m *shortener.Managed) { m.Visits.Days = map[string]int64{"today": 1} }, "statistics"},
		"a day without visits":        {func(m *shortener.Managed) { m.Visits.Days = map[string]int64{"2026-11-29": 0} }, "statistics"},
		"a host without visits":       {func(m *shortener.Managed) { m.Visits.Referrers = map[string]int64{"a.example": 0} }, "statistics"},
		"fewer previews than none":    {func(m *shortener.Managed) { m.Visits.Kinds[shortener.Fetcher] = -1 }, "statistics"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, standard)
			m := imported("the-link", row.change)
			said, err := s.Import(t.Context(), []shortener.Managed{imported("before", nil), m, imported("behind", nil)}, 0)
			if err != nil || len(said) != 3 || said[0] != nil || said[2] != nil {
				t.Fatalf("%v, %v", said, err)
			}
			if row.field == "" {
				got, _, err := s.Export(t.Context(), "", 10)
				if said[1] != nil || err != nil || len(got) != 3 || fmt.Sprint(got[2]) != fmt.Sprint(m) {
					t.Errorf("%v; exported %+v, %v, want %+v", said[1], got, err, m)
				}
				return
			}
			field := ""
			if invalid, ok := errors.AsType[*shortener.InvalidError](said[1]); ok {
				field = invalid.Field
			} else if invalid, ok := errors.AsType[*shortener.ImportError](said[1]); ok {
				field = invalid.Field
			}
			if field != row.field {
				t.Errorf("got error %v, want one about %s", said[1], row.field)
			}
		})
	}
}

// An import may be repeated, and takes no slug from anybody.
func TestImportAgain(t *testing.T) {
	t.Parallel()
	s := newFixture(t, standard)
	rows := []shortener.Managed{imported("one", nil), imported("two", nil), imported("one", nil), imported("one", func(m *shortener.Managed) { m.Link.ForwardQuery = true })}
	want := func(wanted ...error) {
		t.Helper()
		said, err := s.Import(t.Context(), rows, 0)
		if err != nil || len(said) != len(wanted) {
			t.Fatalf("%v, %v", said, err)
		}
		for i := range said {
			if !errors.Is(said[i], wanted[i]) {
				t.Errorf("row %d: got error %v, want %v", i, said[i], wanted[i])
			}
		}
	}
	want(nil, nil, shortener.ErrPresent, shortener.ErrSlugTaken)
	want(shortener.ErrPresent, shortener.ErrPresent, shortener.ErrPresent, shortener.ErrSlugTaken)
	s.wantUsed(t, 0)

	// A link of our own that was charged is the same link.
	made, err := s.Create(t.Context(), someone, shortener.NewLink{URL: "https://example.org/own", Slug: "own"}, "")
	own := made.Link
	if err != nil {
		t.Fatal(err)
	}
	own.Day = ""
	rows = []shortener.Managed{{Link: own}}
	want(shortener.ErrPresent)
}

// thief takes a slug of the first import just before it is stored.
type thief struct {
	shortener.Store
	done bool
}

func (s *thief) Act(ctx context.Context, act shortener.Act) (shortener.Done, error) {
	if !s.done {
		s.done = true
		link := shortener.Link{Slug: act.Import[0].Link.Slug, Destination: "https://example.org/other", CreatedAt: noon}
		if err := s.Store.Create(ctx, shortener.Creation{Day: "2026-11-29", Links: []shortener.Link{link}}); err != nil {
			return shortener.Done{}, err
		}
	}
	return s.Store.Act(ctx, act)
}

func TestImportRacesWithACreation(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	f.store.Store = &thief{Store: f.store.Store}
	s := newService(f, standard)
	said, err := s.Import(t.Context(), []shortener.Managed{imported("stolen", nil), imported("kept", nil)}, 0)
	if err != nil || !errors.Is(said[0], shortener.ErrSlugTaken) || said[1] != nil {
		t.Errorf("%v, %v", said, err)
	}
	if lines, err := s.Audit(t.Context(), 0, 9); err != nil || len(lines) != 1 || lines[0].Links != 1 || lines[0].Note != "present 0, refused 1" {
		t.Errorf("the audit log has %+v, %v", lines, err)
	}
}

// reads counts what is read of links.
type reads struct {
	shortener.Store
	n int
}

func (s *reads) Scan(ctx context.Context, mark string, n int) ([]shortener.Managed, string, error) {
	s.n++
	return s.Store.Scan(ctx, mark, n)
}

func (s *reads) Get(ctx context.Context, slug shortener.Slug) (shortener.Link, error) {
	s.n++
	return s.Store.Get(ctx, slug)
}

func (s *reads) Visited(ctx context.Context, slug shortener.Slug) (int64, error) {
	s.n++
	return s.Store.Visited(ctx, slug)
}

func (s *reads) Visits(ctx context.Context, slug shortener.Slug) (shortener.Visits, error) {
	s.n++
	return s.Store.Visits(ctx, slug)
}

// An export reads pages, however many links and visits are on them.
func TestExportReadsPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t, quota.Policy{})
	for i := range 95 {
		f.make(t, someone, "https://example.org/", fmt.Sprintf("link-%d", i))
	}
	store := &reads{Store: f.store.Store}
	f.store.Store = store
	s := newService(f, standard)
	exported, pages := 0, 0
	for mark := ""; ; pages++ {
		links, next, err := s.Export(t.Context(), mark, 20)
		if err != nil {
			t.Fatal(err)
		}
		exported += len(links)
		if mark = next; mark == "" {
			break
		}
	}
	if exported != 95 || pages != 4 || store.n != 5 {
		t.Errorf("%d links were exported in %d reads, want 95 in 5", exported, store.n)
	}
}
