package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

// entryOf returns an entry of a test.
func entryOf(name, value string) shortener.Entry {
	return shortener.Entry{Kind: shortener.EntryKey, Name: name, Value: value}
}

// wantAudit asserts the actions in the audit log, the latest first.
func wantAudit(t *testing.T, stores []shortener.Store, actions ...string) {
	t.Helper()
	for i, s := range stores {
		lines, err := s.Audit(t.Context(), 0, 100)
		var got []string
		for _, line := range lines {
			got = append(got, line.Action)
		}
		if err != nil || !slices.Equal(got, actions) {
			t.Errorf("handle %d: the audit log has %q, %v, want %q", i, got, err, actions)
		}
	}
}

// testActIf bases acts on entries as they were, or are no longer.
func testActIf(t *testing.T, stores []shortener.Store) {
	first, other := stores[0], stores[len(stores)-1]
	act := func(s shortener.Store, action string, based shortener.Entry, changes ...shortener.EntryChange) error {
		a := shortener.Act{Line: shortener.AuditLine{At: noon, Action: action}, Entries: changes}
		if based.Name != "" {
			a.If = []shortener.Entry{based}
		}
		_, err := s.Act(t.Context(), a)
		return err
	}
	put := func(e shortener.Entry) shortener.EntryChange { return shortener.EntryChange{Entry: e} }
	remove := func(name string) shortener.EntryChange {
		return shortener.EntryChange{Entry: entryOf(name, ""), Verb: shortener.RemoveEntry}
	}
	drop := func(name string) shortener.EntryChange {
		return shortener.EntryChange{Entry: entryOf(name, ""), Verb: shortener.DropEntry}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, act(first, "x", entryOf("script", ""), put(entryOf("script", "0"))), shortener.ErrChanged)
	must(act(first, "make", shortener.Entry{}, put(entryOf("script", "1"))))
	for _, value := range []string{"", "0", "11"} {
		wantError(t, act(other, "x", entryOf("script", value), put(entryOf("script", "2"))), shortener.ErrChanged)
	}
	must(act(other, "change", entryOf("script", "1"), put(entryOf("script", "2"))))
	wantError(t, act(first, "x", entryOf("script", "1"), remove("script")), shortener.ErrChanged)
	// Of another kind it is another entry.
	block := shortener.Entry{Kind: shortener.EntryBlock, Name: "script", Value: "2"}
	wantError(t, act(first, "x", block, remove("script")), shortener.ErrChanged)
	must(act(first, "revoke", entryOf("script", "2"), remove("script"), drop("script's")))
	must(act(first, "make", shortener.Entry{}, put(entryOf("script", "3")), put(entryOf("script's", "4"))))
	must(act(other, "revoke", entryOf("script", "3"), remove("script"), drop("script's")))
	for i, s := range stores {
		if got, err := s.Entries(t.Context(), shortener.EntryKey); len(got) > 0 || err != nil {
			t.Errorf("handle %d: %v, %v are left", i, got, err)
		}
	}
	wantAudit(t, stores, "revoke", "make", "revoke", "change", "make")
}

// testActRace lets many change one entry on the base of what they have read.
func testActRace(t *testing.T, stores []shortener.Store) {
	const callers, tries = 8, 5
	number := func(n int64) shortener.EntryChange {
		return shortener.EntryChange{Entry: entryOf("number", fmt.Sprint(n))}
	}
	count := func(s shortener.Store, n int64, based []shortener.Entry) error {
		_, err := s.Act(t.Context(), shortener.Act{Line: shortener.AuditLine{At: noon}, If: based, Entries: []shortener.EntryChange{number(n)}})
		return err
	}
	if err := count(stores[0], 0, nil); err != nil {
		t.Fatal(err)
	}
	var done atomic.Int64
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			s := stores[i%len(stores)]
			for range tries {
				found, err := s.Entries(t.Context(), shortener.EntryKey)
				if err != nil || len(found) != 1 {
					t.Error(found, err)
					return
				}
				var n int64
				if _, err := fmt.Sscan(found[0].Value, &n); err != nil {
					t.Error(err)
				}
				switch err := count(s, n+1, found); {
				case err == nil:
					done.Add(1)
				case !errors.Is(err, shortener.ErrChanged):
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	want := entryOf("number", fmt.Sprint(done.Load()))
	found, err := stores[0].Entries(t.Context(), shortener.EntryKey)
	if err != nil || !slices.Equal(found, []shortener.Entry{want}) || done.Load() == 0 {
		t.Errorf("%d changes were done, and it is %v, %v", done.Load(), found, err)
	}
}

// testActMeant changes links between the choice and the act.
func testActMeant(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	if err := m.create(host(1, 1), noon, "stays", "moved", "deleted"); err != nil {
		t.Fatal(err)
	}
	meant := func(l shortener.Link) bool { return shortener.HostOf(l.Destination) == "example.org" && !l.Deleted }
	elsewhere := "https://elsewhere.example/"
	if _, err := m.store.Change(t.Context(), "moved", shortener.Change{Destination: &elsewhere}); err != nil {
		t.Fatal(err)
	}
	if err := m.store.Delete(t.Context(), "deleted"); err != nil {
		t.Fatal(err)
	}
	act := func(action string, remove bool) int {
		t.Helper()
		done, err := stores[len(stores)-1].Act(t.Context(), shortener.Act{
			Line:  shortener.AuditLine{At: noon, Action: action},
			Links: []shortener.Slug{"stays", "moved", "deleted", "unknown"}, Meant: meant, Reason: "spam", Delete: remove,
		})
		if err != nil {
			t.Fatal(err)
		}
		return done.Links
	}
	disabled, deleted, again := act("disable", false), act("delete", true), act("delete", true)
	if disabled != 1 || deleted != 1 || again != 0 {
		t.Errorf("%d, %d and %d links were meant, want 1, 1 and none", disabled, deleted, again)
	}
	for i, s := range stores {
		moved, err := s.Get(t.Context(), "moved")
		if err != nil || moved.TakenDown != "" || moved.Deleted {
			t.Errorf("handle %d: what was moved is %+v, %v", i, moved, err)
		}
		if stays, err := s.Get(t.Context(), "stays"); err != nil || !stays.Deleted {
			t.Errorf("handle %d: what was meant is %+v, %v", i, stays, err)
		}
		if lines, err := s.Audit(t.Context(), 0, 9); err != nil || len(lines) != 2 || lines[0].Links != 1 {
			t.Errorf("handle %d: the audit log has %+v, %v, want a line for each act that changed links", i, lines, err)
		}
	}
}

// testAcceptClock accepts a clock with its line, or not at all.
func testAcceptClock(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	if err := m.create(host(1, 1), noon.AddDate(0, 0, 9), "ahead"); err != nil {
		t.Fatal(err)
	}
	today, ahead := quota.DayOf(noon).Label, quota.DayOf(noon.AddDate(0, 0, 9)).Label
	accept := shortener.Act{Line: shortener.AuditLine{At: noon, Action: "accept clock", Target: today}, AcceptClock: today}
	right := accept
	right.AcceptClock = ahead
	if done, err := stores[0].Act(t.Context(), right); done.Forgotten != "" || err != nil {
		t.Errorf("a clock that is right: %+v, %v", done, err)
	}
	refused := accept
	refused.If = []shortener.Entry{entryOf("nothing", "")}
	last := stores[len(stores)-1]
	_, err := last.Act(t.Context(), refused)
	wantError(t, err, shortener.ErrChanged)
	for _, s := range stores {
		wantError(t, s.Ready(t.Context(), today), quota.ErrClock)
	}
	wantAudit(t, stores)
	if done, err := last.Act(t.Context(), accept); done.Forgotten != ahead || err != nil {
		t.Errorf("accepted: %+v, %v", done, err)
	}
	if done, err := last.Act(t.Context(), accept); done.Forgotten != "" || err != nil {
		t.Errorf("accepted again: %+v, %v", done, err)
	}
	line := accept.Line
	line.Number, line.Note = 1, "although "+ahead+" was counted"
	for i, s := range stores {
		if err := s.Ready(t.Context(), today); err != nil {
			t.Errorf("handle %d: %v", i, err)
		}
		if lines, err := s.Audit(t.Context(), 0, 9); err != nil || !slices.Equal(lines, []shortener.AuditLine{line}) {
			t.Errorf("handle %d: the audit log has %+v, %v", i, lines, err)
		}
	}
}

// between runs a function once, before the next act: after what the act is based on
// was read.
type between struct {
	shortener.Store
	run func()
}

func (s *between) Act(ctx context.Context, act shortener.Act) (shortener.Done, error) {
	if run := s.run; run != nil {
		s.run = nil
		run()
	}
	return s.Store.Act(ctx, act)
}

// testKeyMeanwhile lets another program do something between what an operator's act
// reads and the act itself.
func testKeyMeanwhile(t *testing.T, stores []shortener.Store) {
	first := &between{Store: stores[0]}
	newService := func(s shortener.Store) *shortener.Service {
		return shortener.New(shortener.Config{Store: s, Policy: policy, Now: func() time.Time { return noon }})
	}
	mine, others := newService(first), newService(stores[len(stores)-1])
	replace := func(name string) {
		_, _, err := others.CreateKey(t.Context(), name, 7)
		if err == nil {
			t.Errorf("%s was made twice", name)
		}
		if err = others.RevokeKey(t.Context(), name, 0); err == nil {
			_, _, err = others.CreateKey(t.Context(), name, 7)
		}
		if err != nil {
			t.Error(err)
		}
	}
	for _, row := range []struct {
		name      string
		act       func(name string) error
		meanwhile func(name string)
		want      error
		daily     int64 // of the key that is there afterwards; 0 is none
	}{
		{"a limit for one that was replaced", func(name string) error {
			_, err := mine.ChangeKey(t.Context(), name, 0, 20)
			return err
		}, replace, shortener.ErrChanged, 7},
		{"revoking one that was replaced", func(name string) error {
			return mine.RevokeKey(t.Context(), name, 0)
		}, replace, shortener.ErrChanged, 7},
		{"an override for one that was replaced", func(name string) error {
			_, err := mine.PutOverride(t.Context(), shortener.Override{Target: "key " + name, Limit: 1})
			return err
		}, replace, shortener.ErrChanged, 7},
		{"a limit for one that was revoked", func(name string) error {
			_, err := mine.ChangeKey(t.Context(), name, 0, 20)
			return err
		}, func(name string) {
			if err := others.RevokeKey(t.Context(), name, 0); err != nil {
				t.Error(err)
			}
		}, shortener.ErrNoEntry, 0},
		{"a limit for one that got another limit", func(name string) error {
			_, err := mine.ChangeKey(t.Context(), name, 0, 20)
			return err
		}, func(name string) {
			if _, err := others.ChangeKey(t.Context(), name, 0, 30); err != nil {
				t.Error(err)
			}
		}, nil, 20},
		{"revoking one that got an override", func(name string) error {
			return mine.RevokeKey(t.Context(), name, 0)
		}, func(name string) {
			if _, err := others.PutOverride(t.Context(), shortener.Override{Target: "key " + name, Limit: 1}); err != nil {
				t.Error(err)
			}
		}, nil, 0},
	} {
		_, old, err := mine.CreateKey(t.Context(), row.name, 10)
		if err != nil {
			t.Fatal(err)
		}
		first.run = func() { row.meanwhile(row.name) }
		if err := row.act(row.name); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.name, err, row.want)
		}
		if err := mine.LoadOperatorSet(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, ok := mine.FindKey(old); ok != (row.want == nil && row.daily > 0) {
			t.Errorf("%s: whether the old secret is known is %v", row.name, ok)
		}
		keys, err := mine.Keys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var daily int64
		for _, key := range keys {
			if key.Name == row.name {
				daily = key.Daily
			}
		}
		if daily != row.daily {
			t.Errorf("%s: the key's limit is %d, want %d", row.name, daily, row.daily)
		}
	}
	if overrides, err := mine.Overrides(t.Context()); len(overrides) > 0 || err != nil {
		t.Errorf("%+v, %v are left of keys that are gone", overrides, err)
	}
}
