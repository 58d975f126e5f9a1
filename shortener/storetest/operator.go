package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"snip/shortener"
)

// testEntries adds, replaces and removes entries, and lets ten want the same one.
func testEntries(t *testing.T, stores []shortener.Store) {
	first, other := stores[0], stores[len(stores)-1]
	entry := func(name, value string) shortener.Entry {
		return shortener.Entry{Kind: shortener.EntryKey, Name: name, Value: value}
	}
	do := func(s shortener.Store, verb shortener.EntryVerb, entries ...shortener.Entry) error {
		act := shortener.Act{Line: shortener.AuditLine{At: noon, Action: "test"}}
		for _, e := range entries {
			act.Entries = append(act.Entries, shortener.EntryChange{Entry: e, Verb: verb})
		}
		_, err := s.Act(t.Context(), act)
		return err
	}
	want := func(kind shortener.EntryKind, entries ...shortener.Entry) {
		t.Helper()
		for i, s := range stores {
			if got, err := s.Entries(t.Context(), kind); err != nil || !slices.Equal(got, entries) {
				t.Errorf("handle %d: the entries are %v, %v, want %v", i, got, err, entries)
			}
		}
	}
	want(shortener.EntryKey)
	wantError(t, do(first, shortener.ReplaceEntry, entry("script", "1")), shortener.ErrNoEntry)
	wantError(t, do(first, shortener.RemoveEntry, entry("script", "")), shortener.ErrNoEntry)

	script, letter := entry("script", "1"), entry("Rundbrief für Ölmühlen", "\x00\xff")
	longer := entry("script 2", "") // the name of one begins with the other's
	for _, err := range []error{
		do(first, shortener.AddEntry, script, letter), do(first, shortener.PutEntry, longer),
		do(other, shortener.PutEntry, shortener.Entry{Kind: shortener.EntryBlock, Name: "script", Value: "block"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want(shortener.EntryKey, letter, script, longer)
	want(shortener.EntryBlock, shortener.Entry{Kind: shortener.EntryBlock, Name: "script", Value: "block"})
	want(shortener.EntryOverride)
	wantError(t, do(other, shortener.AddEntry, entry("new", ""), script), shortener.ErrEntryExists)
	want(shortener.EntryKey, letter, script, longer) // nothing of an act that is refused
	script.Value = "2"
	if err := do(other, shortener.ReplaceEntry, script); err != nil {
		t.Fatal(err)
	}
	want(shortener.EntryKey, letter, script, longer)
	if err := do(other, shortener.RemoveEntry, letter, longer); err != nil {
		t.Fatal(err)
	}
	want(shortener.EntryKey, script)

	var group sync.WaitGroup
	var made atomic.Int64
	for i := range 10 {
		group.Go(func() {
			switch err := do(stores[i%len(stores)], shortener.AddEntry, entry("wanted by ten", "")); {
			case err == nil:
				made.Add(1)
			case !errors.Is(err, shortener.ErrEntryExists):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if made.Load() != 1 {
		t.Errorf("%d entries of one name were added", made.Load())
	}
}

// testTakeDown takes links down and brings them back.
func testTakeDown(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	c := m.creation(host(1, 1), noon, "limited", "plain", "deleted", "left-alone")
	c.Links[0].MaxVisits = 5
	if err := errors.Join(m.store.Create(t.Context(), c), m.store.Delete(t.Context(), "deleted")); err != nil {
		t.Fatal(err)
	}
	act := func(reason string) {
		t.Helper()
		done, err := stores[len(stores)-1].Act(t.Context(), shortener.Act{
			Line:  shortener.AuditLine{At: noon, Action: "disable"},
			Links: []shortener.Slug{"limited", "plain", "deleted", "unknown"}, Reason: reason,
		})
		if done.Links != 2 || err != nil {
			t.Fatal(done, err)
		}
	}
	follow := func(slug shortener.Slug, takenDown bool) {
		t.Helper()
		for i, s := range stores {
			link, err := s.Get(t.Context(), slug)
			target, followErr := s.Follow(t.Context(), slug)
			if err != nil || followErr != nil || target.TakenDown != takenDown || (link.TakenDown != "") != takenDown || link.Destination == "" {
				t.Errorf("handle %d: %+v, %v; a visit finds %+v, %v", i, link, err, target, followErr)
			}
		}
	}
	for _, slug := range []shortener.Slug{"limited", "plain", "left-alone"} { // so that whoever keeps what is visited has it
		follow(slug, false)
	}
	act("phishing")
	follow("limited", true)
	follow("plain", true)
	follow("left-alone", false)
	for _, s := range stores {
		for _, slug := range []shortener.Slug{"limited", "plain"} {
			_, visitErr := s.Visit(t.Context(), slug)
			_, changeErr := s.Change(t.Context(), slug, shortener.Change{})
			for _, err := range []error{visitErr, changeErr, s.Delete(t.Context(), slug)} {
				wantError(t, err, shortener.ErrTakenDown)
			}
		}
	}
	wantVisited(t, stores, "limited", 0)
	if link, err := m.store.Get(t.Context(), "deleted"); err != nil || link != c.Links[2].Tombstone() {
		t.Errorf("what was deleted is %+v, %v", link, err)
	}
	act("")
	follow("limited", false)
	follow("plain", false)
	if _, err := m.store.Visit(t.Context(), "limited"); err != nil {
		t.Error(err)
	}
	wantVisited(t, stores, "limited", 1)
	// An operator deletes what is taken down, too.
	act("spam")
	_, err := m.store.Act(t.Context(), shortener.Act{Line: shortener.AuditLine{At: noon}, Links: []shortener.Slug{"limited", "left-alone", "deleted", "unknown"}, Delete: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range stores {
		for _, n := range []int{0, 2, 3} {
			if link, err := s.Get(t.Context(), c.Links[n].Slug); err != nil || link != c.Links[n].Tombstone() {
				t.Errorf("handle %d: %+v, %v", i, link, err)
			}
		}
	}
	wantVisited(t, stores, "limited", 0)
	m.wantUsed(host(1, 1), noon, 4, 4, 4)
}

func testAudit(t *testing.T, stores []shortener.Store) {
	var want []shortener.AuditLine
	for i := range 10 {
		line := shortener.AuditLine{At: noon.AddDate(0, 0, i), Action: "disable", Target: fmt.Sprint(i), Reason: "spam", Note: strings.Repeat("ö", i)}
		if _, err := stores[i%len(stores)].Act(t.Context(), shortener.Act{Line: line}); err != nil {
			t.Fatal(err)
		}
		line.Number = uint64(i + 1)
		want = append([]shortener.AuditLine{line}, want...)
	}
	for i, s := range stores {
		for _, row := range []struct {
			before uint64
			n      int
			want   []shortener.AuditLine
		}{{0, 100, want}, {0, 3, want[:3]}, {8, 3, want[3:6]}, {2, 3, want[9:]}, {1, 3, nil}, {99, 2, want[:2]}} {
			if got, err := s.Audit(t.Context(), row.before, row.n); err != nil || !slices.Equal(got, row.want) {
				t.Errorf("handle %d: %d lines before %d are %v, %v, want %v", i, row.n, row.before, got, err, row.want)
			}
		}
	}
}

func testScan(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	slugs := append(names("scan", 20), "2345678", "zzzzzzz", "abc")
	if err := m.create(host(1, 1), noon, slugs...); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := m.create(host(1, 2), noon, string(m.store.NewSlug())); err != nil {
			t.Fatal(err)
		}
	}
	limited := m.creation(host(1, 3), noon, "limited")
	limited.Links[0].MaxVisits = 5
	visits := map[shortener.Slug]shortener.Visits{"2345678": {Kinds: [5]int64{shortener.Person: 5}}, "abc": {Kinds: [5]int64{shortener.Person: 9}}}
	err := errors.Join(m.store.Create(t.Context(), limited), m.store.AddVisits(t.Context(), visits), m.store.Delete(t.Context(), "abc"))
	for range 2 {
		_, visitErr := m.store.Visit(t.Context(), "limited")
		err = errors.Join(err, visitErr)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range stores {
		for _, n := range []int{1, 7, 44, 100} {
			met := map[shortener.Slug]bool{}
			visitsMet := int64(0)
			mark := ""
			for range 100 {
				links, next, err := s.Scan(t.Context(), mark, n)
				if err != nil || len(links) > n {
					t.Fatalf("handle %d: %d links, %v", i, len(links), err)
				}
				for _, m := range links {
					slug := m.Link.Slug
					if met[slug] || m.Link.Deleted != (slug == "abc") {
						t.Errorf("handle %d: %+v is met", i, m.Link)
					}
					met[slug] = true
					visited, visitedErr := s.Visited(t.Context(), slug)
					visits, visitsErr := s.Visits(t.Context(), slug)
					if err := errors.Join(visitedErr, visitsErr); err != nil || m.Visited != visited || fmt.Sprint(m.Visits) != fmt.Sprint(visits) {
						t.Errorf("handle %d: %s is met with %d and %v, %v, want %d and %v", i, slug, m.Visited, m.Visits, err, visited, visits)
					}
					visitsMet += m.Visited + m.Visits.Total()
				}
				if mark = next; mark == "" {
					break
				}
			}
			if len(met) != 44 || mark != "" || visitsMet != 7 {
				t.Errorf("handle %d, %d a call: %d links and %d visits were met, and then %q", i, n, len(met), visitsMet, mark)
			}
		}
	}
	if _, next, err := stores[0].Scan(t.Context(), "", 1); err != nil || next == "" {
		t.Errorf("%q, %v", next, err)
	}
}
