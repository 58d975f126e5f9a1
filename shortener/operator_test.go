package shortener_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

// make makes a link that the test knows to be valid.
func (f fixture) make(t *testing.T, who quota.Client, url, slug string) shortener.Link {
	t.Helper()
	made, err := f.Create(t.Context(), who, shortener.NewLink{URL: url, Slug: slug}, "")
	link := made.Link
	if err != nil {
		t.Fatal(err)
	}
	return link
}

func (f fixture) wantVisit(t *testing.T, slug shortener.Slug, want error) {
	t.Helper()
	if _, err := f.Follow(t.Context(), slug); !errors.Is(err, want) {
		t.Errorf("a visit of %s: %v, want %v", slug, err, want)
	}
	if _, err := f.Link(t.Context(), slug); !errors.Is(err, want) {
		t.Errorf("a look at %s: %v, want %v", slug, err, want)
	}
}

// What operators do through one program is in force in another once that has looked.
func TestRenewOperatorSet(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	other := newService(f, standard)
	f.make(t, someone, "https://evil.example/", "evil")
	renew := func(want error) {
		t.Helper()
		if err := other.RenewOperatorSet(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Follow(t.Context(), "evil"); !errors.Is(err, want) {
			t.Errorf("a visit: %v, want %v", err, want)
		}
	}
	renew(nil)
	for range 2 {
		if _, err := f.AddBlock(t.Context(), "evil.example", ""); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Follow(t.Context(), "evil"); err != nil {
			t.Errorf("a visit before it has looked: %v", err)
		}
		renew(shortener.ErrTakenDown)
		renew(shortener.ErrTakenDown)
		if err := f.RemoveBlock(t.Context(), "evil.example", ""); err != nil {
			t.Fatal(err)
		}
		renew(nil)
	}
}

// A blocked host takes its links down with it, those of its subdomains too, however
// they are written, and gives them back.
func TestBlock(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	rows := map[shortener.Slug]string{
		"plain": "https://evil.example/", "below": "https://www.EVIL.example./x", "port": "http://evil.example:8080",
		"beside": "https://notevil.example/", "wide": "https://ｅｖｉｌ.example/",
		"address": "https://8.8.8.8/", "octal": "http://010.8.0x808/",
	}
	for slug, url := range rows {
		f.make(t, someone, url, string(slug))
	}
	blocked := map[string][]shortener.Slug{"Evil.Example": {"plain", "below", "port", "wide"}, "8.8.8.8": {"address", "octal"}}
	want := func(hosts ...string) {
		t.Helper()
		down := map[shortener.Slug]bool{}
		for _, host := range hosts {
			for _, slug := range blocked[host] {
				down[slug] = true
			}
		}
		for slug, url := range rows {
			if !down[slug] {
				f.wantVisit(t, slug, nil)
				continue
			}
			f.wantVisit(t, slug, shortener.ErrTakenDown)
			if _, err := f.create(shortener.NewLink{URL: url}); !errors.Is(err, shortener.ErrBlockedDestination) {
				t.Errorf("a new link to %s: %v", url, err)
			}
		}
	}
	want()
	for host := range blocked {
		if _, err := f.AddBlock(t.Context(), host, ""); err != nil {
			t.Fatal(err)
		}
		want(host)
		if _, err := f.AddBlock(t.Context(), host, ""); !errors.Is(err, shortener.ErrEntryExists) {
			t.Errorf("blocked again: %v", err)
		}
		if err := f.RemoveBlock(t.Context(), host, ""); err != nil {
			t.Fatal(err)
		}
		want()
	}
	for _, host := range []string{"", "com", "a b", "https://evil.example/", "evil..example"} {
		if _, err := f.AddBlock(t.Context(), host, ""); !errors.Is(err, shortener.ErrInvalidBlock) {
			t.Errorf("a block of %q: %v", host, err)
		}
	}
	// A change to a blocked host is refused as a new link is.
	made, err := f.Create(t.Context(), someone, shortener.NewLink{URL: "https://good.example/"}, "")
	link, token := made.Link, made.Token
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.AddBlock(t.Context(), "evil.example", ""); err != nil {
		t.Fatal(err)
	}
	to := "https://evil.example/"
	if _, err := f.Change(t.Context(), link.Slug, shortener.Holder{Token: token}, shortener.Changed{URL: &to}); !errors.Is(err, shortener.ErrBlockedDestination) {
		t.Errorf("a change: %v", err)
	}
	again := newService(f, standard)
	if err := again.LoadOperatorSet(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Follow(t.Context(), "plain"); !errors.Is(err, shortener.ErrTakenDown) {
		t.Errorf("after a restart: %v", err)
	}
}

func TestTakeDown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, quota.Policy{})
	stranger := quota.ClientOf(someone.Network().Addr().Next().Next())
	made, err := f.Create(t.Context(), stranger, shortener.NewLink{URL: "https://a.example/", Slug: "a-1"}, "")
	token := made.Token
	if err != nil {
		t.Fatal(err)
	}
	f.make(t, stranger, "https://b.example/", "b-1")
	f.make(t, someone, "https://www.a.example/", "a-2")
	f.clock.set(f.clock.read().AddDate(0, 0, 1))
	f.make(t, stranger, "https://a.example/", "a-3")
	for i := range 1100 { // more than are looked at in one go
		f.make(t, someone, "https://c.example/", fmt.Sprintf("c-%04d", i))
	}
	all := []shortener.Slug{"a-1", "b-1", "a-2", "a-3", "c-0000", "c-1099"}
	for _, row := range []struct {
		sel  shortener.Selection
		n    int
		down []shortener.Slug
	}{
		{shortener.Selection{Slug: "b-1"}, 1, []shortener.Slug{"b-1"}},
		{shortener.Selection{Host: "A.example."}, 3, []shortener.Slug{"a-1", "a-2", "a-3"}},
		{shortener.Selection{Host: "www.a.example"}, 1, []shortener.Slug{"a-2"}},
		{shortener.Selection{Host: "d.example"}, 0, nil},
		{shortener.Selection{Host: "c.example"}, 1100, []shortener.Slug{"c-0000", "c-1099"}},
		{shortener.Selection{CreatorOf: "b-1"}, 2, []shortener.Slug{"a-1", "b-1"}}, // of that day
	} {
		if n, err := f.TakeDown(t.Context(), row.sel, "spam", "a note"); n != row.n || err != nil {
			t.Errorf("%v: %d links, %v, want %d", row.sel, n, err, row.n)
		}
		down := map[shortener.Slug]bool{}
		for _, slug := range row.down {
			down[slug] = true
		}
		for _, slug := range all {
			f.wantVisit(t, slug, map[bool]error{true: shortener.ErrTakenDown}[down[slug]])
		}
		if n, err := f.TakeDown(t.Context(), row.sel, "spam", ""); n != 0 || err != nil {
			t.Errorf("%v again: %d links, %v", row.sel, n, err)
		}
		if n, err := f.BringBack(t.Context(), row.sel, ""); n != row.n || err != nil {
			t.Errorf("%v brought back: %d links, %v, want %d", row.sel, n, err, row.n)
		}
		for _, slug := range all {
			f.wantVisit(t, slug, nil)
		}
	}
	for _, row := range []struct {
		sel    shortener.Selection
		reason string
		want   error
	}{
		{shortener.Selection{}, "spam", shortener.ErrInvalidSelection},
		{shortener.Selection{Slug: "a-1"}, "", shortener.ErrInvalidSelection},
		{shortener.Selection{Slug: "a-1"}, "boredom", shortener.ErrInvalidSelection},
		{shortener.Selection{Host: "a", CreatorOf: "a-1"}, "spam", shortener.ErrInvalidSelection},
		{shortener.Selection{Host: "a b"}, "spam", shortener.ErrInvalidSelection},
		{shortener.Selection{Slug: "unknown"}, "spam", shortener.ErrNotFound},
		{shortener.Selection{CreatorOf: "unknown"}, "spam", shortener.ErrNotFound},
	} {
		if n, err := f.TakeDown(t.Context(), row.sel, row.reason, ""); n != 0 || !errors.Is(err, row.want) {
			t.Errorf("%+v for %q: %d, %v, want %v", row.sel, row.reason, n, err, row.want)
		}
	}

	for _, note := range []string{strings.Repeat("ö", 501), "two\nlines", "no text: \xff"} {
		if n, err := f.TakeDown(t.Context(), shortener.Selection{Slug: "a-1"}, "spam", note); n != 0 || !errors.Is(err, shortener.ErrInvalidSelection) {
			t.Errorf("with the note %.9q: %d, %v", note, n, err)
		}
	}
	if _, err := f.TakeDown(t.Context(), shortener.Selection{Host: "example"}, "spam", ""); !errors.Is(err, shortener.ErrInvalidSelection) {
		t.Errorf("of a whole top-level domain: %v", err)
	}

	// Its holder sees a link that was taken down and cannot change it.
	holder := shortener.Holder{Token: token}
	if _, err := f.TakeDown(t.Context(), shortener.Selection{Slug: "a-1"}, "legal", "case 7"); err != nil {
		t.Fatal(err)
	}
	if m, err := f.Manage(t.Context(), "a-1", holder); err != nil || m.Link.TakenDown != "legal" {
		t.Errorf("its holder sees %+v, %v", m.Link, err)
	}
	if _, err := f.Change(t.Context(), "a-1", holder, shortener.Changed{}); !errors.Is(err, shortener.ErrLocked) {
		t.Errorf("a change: %v", err)
	}
	if err := f.Delete(t.Context(), "a-1", holder); !errors.Is(err, shortener.ErrLocked) {
		t.Errorf("deleting it: %v", err)
	}
	lines, err := f.Audit(t.Context(), 0, 1)
	if err != nil || len(lines) != 1 || lines[0].Action != "disable" || lines[0].Target != "a-1" || lines[0].Reason != "legal" || lines[0].Note != "case 7" || !lines[0].At.Equal(f.clock.read().Truncate(time.Microsecond)) {
		t.Errorf("the audit log ends with %+v, %v", lines, err)
	}
	if err := f.Remove(t.Context(), "a-1", ""); err != nil {
		t.Error(err)
	}
	f.wantVisit(t, "a-1", shortener.ErrGone)
	if err := f.Remove(t.Context(), "a-1", ""); !errors.Is(err, shortener.ErrGone) {
		t.Errorf("deleted again: %v", err)
	}
}

// An override holds at once, also for who was refused before, and its end gives
// back what was.
func TestOverride(t *testing.T) {
	t.Parallel()
	f := newFixture(t, quota.Policy{Client: 2, Network: 4, Service: 100})
	made := 0
	create := func(want error) {
		t.Helper()
		_, err := f.create(shortener.NewLink{URL: "https://example.org/"})
		if !errors.Is(err, want) {
			t.Errorf("link %d: %v, want %v", made+1, err, want)
		}
		if err == nil {
			made++
		}
	}
	put := func(target string, limit int64, until time.Time) {
		t.Helper()
		if _, err := f.PutOverride(t.Context(), shortener.Override{Target: target, Limit: limit, Until: until}); err != nil {
			t.Fatal(err)
		}
	}
	create(nil)
	create(nil)
	create(quota.ErrExceeded)
	put("192.0.2.1", 3, f.clock.read().Add(time.Hour))
	create(nil)
	create(quota.ErrExceeded)
	put("192.0.2.0/24", 3, time.Time{})
	put("192.0.2.1", quota.Unlimited, f.clock.read().Add(time.Hour))
	create(quota.ErrExceeded) // the network
	report, err := f.QuotaOf(t.Context(), "192.0.2.1")
	if err != nil || report.Refuses != quota.LevelNetwork || len(report.Usages) != 3 || report.Usages[2].Max != quota.Unlimited || report.Usages[1].Max != 3 {
		t.Errorf("%+v, %v", report, err)
	}
	if report, err = f.QuotaOf(t.Context(), "192.0.2.0/24"); err != nil || len(report.Usages) != 2 || report.Refuses != quota.LevelNetwork {
		t.Errorf("%+v, %v", report, err)
	}
	if err := f.RemoveOverride(t.Context(), "192.0.2.0/24"); err != nil {
		t.Fatal(err)
	}
	create(nil)
	put("192.0.2.1", 0, f.clock.read().Add(time.Minute))
	create(shortener.ErrBlocked)
	f.clock.set(f.clock.read().Add(time.Minute)) // its end; the client's own limit holds again
	create(quota.ErrExceeded)
	put("192.0.2.0/24", 9, time.Time{})
	put("192.0.2.1", 5, time.Time{})
	create(nil)
	f.wantUsed(t, 5)

	// A lower limit that has ended is not remembered either.
	put("198.51.100.1", 1, f.clock.read().Add(time.Minute))
	other := quota.ClientOf(netip.MustParseAddr("198.51.100.1"))
	for _, want := range []error{nil, quota.ErrExceeded, quota.ErrExceeded} {
		if _, err := f.Create(t.Context(), other, shortener.NewLink{URL: "https://example.org/"}, ""); !errors.Is(err, want) {
			t.Errorf("under a lower limit: %v, want %v", err, want)
		}
	}
	f.clock.set(f.clock.read().Add(time.Minute))
	if _, err := f.Create(t.Context(), other, shortener.NewLink{URL: "https://example.org/"}, ""); err != nil {
		t.Errorf("after a lower limit has ended: %v", err)
	}

	for _, o := range []shortener.Override{
		{Target: "192.0.2.1", Limit: -1}, {Target: "nobody", Limit: 1}, {Target: "192.0.2.0/23", Limit: 1},
		{Target: "192.0.2.1", Limit: 1, Until: f.clock.read()},
	} {
		if _, err := f.PutOverride(t.Context(), o); !errors.Is(err, shortener.ErrInvalidOverride) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	// One that was set before, of what no longer stands for one client, can be removed.
	const stored = "2002:cb00:7109::/64" // in 6to4, which is the IPv4 address within
	old := shortener.EntryChange{Entry: shortener.Entry{Kind: shortener.EntryOverride, Name: stored, Value: `{"limit":0}`}}
	if _, err := f.store.Act(t.Context(), shortener.Act{Line: shortener.AuditLine{Action: "set override"}, Entries: []shortener.EntryChange{old}}); err != nil {
		t.Fatal(err)
	}
	put("203.0.113.9", 1, time.Time{}) // the same host
	for _, want := range []error{nil, shortener.ErrInvalidOverride} {
		if err := f.RemoveOverride(t.Context(), stored); !errors.Is(err, want) {
			t.Errorf("of a prefix in 6to4: %v, want %v", err, want)
		}
	}
	if overrides, err := f.Overrides(t.Context()); err != nil || len(overrides) != 4 {
		t.Errorf("the overrides are %+v, %v", overrides, err)
	}
	if _, err := f.PutOverride(t.Context(), shortener.Override{Target: "key nobody's", Limit: 1}); !errors.Is(err, shortener.ErrNoEntry) {
		t.Errorf("of an unknown key: %v", err)
	}

	// A key's override goes with the key.
	key, _ := f.makeKey(t, "script", 5)
	put("key script", 0, time.Time{})
	if _, err := f.Create(t.Context(), key.Client(), shortener.NewLink{URL: "https://example.org/"}, ""); !errors.Is(err, shortener.ErrBlocked) {
		t.Errorf("a blocked key: %v", err)
	}
	if err := f.RevokeKey(t.Context(), "script", 0); err != nil {
		t.Fatal(err)
	}
	key, _ = f.makeKey(t, "script", 5)
	if _, err := f.Create(t.Context(), key.Client(), shortener.NewLink{URL: "https://example.org/"}, ""); err != nil {
		t.Errorf("a new key of that name: %v", err)
	}
}

// Whoever hangs up while a creation waits raises no alarm; a store that fails does.
func TestHangingUpIsNoFault(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	for i, fault := range []error{context.Canceled, errors.New("the disk")} {
		f.store.fail["create"] = fault
		if _, err := f.create(shortener.NewLink{URL: "https://example.org/"}); !errors.Is(err, fault) {
			t.Errorf("got error %v, want %v", err, fault)
		}
		if o := f.Outcomes(); o.Unavailable != int64(i) {
			t.Errorf("after %v, %d could not be counted", fault, o.Unavailable)
		}
	}
}

// A level in a dry run refuses nothing, and what it would have refused is counted.
func TestDryRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, quota.Policy{Client: 2, Network: 250, Service: 1000, DryRun: map[quota.Level]bool{quota.LevelClient: true}})
	for range 5 {
		if _, err := f.create(shortener.NewLink{URL: "https://example.org/"}); err != nil {
			t.Fatal(err)
		}
	}
	f.wantUsed(t, 5)
	o := f.Outcomes()
	if o.Created != 5 || o.WouldRefuse[quota.LevelClient] != 3 || o.WouldRefuse[quota.LevelNetwork] != 0 || o.Refused[quota.LevelClient] != 0 {
		t.Errorf("%+v", o)
	}
}
