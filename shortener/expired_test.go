package shortener_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

// Links that expired before an instant are deleted in parts, each with its line, and
// others are left alone.
func TestDeleteExpired(t *testing.T) {
	t.Parallel()
	f := newFixture(t, quota.Policy{Client: 5000})
	start := f.clock.read().Truncate(time.Microsecond)
	before := start.Add(time.Hour)
	at := func(instant time.Time) string { return instant.Format(time.RFC3339Nano) }
	for slug, expiry := range map[string]string{
		"never": "", "just-before": at(before.Add(-time.Microsecond)), "just-then": at(before), "later": at(before.Add(time.Hour)),
		"disabled": at(before.Add(-time.Minute)),
	} {
		if _, err := f.Create(t.Context(), someone, shortener.NewLink{URL: "https://example.org/", Slug: slug, ExpiresAt: expiry}, ""); err != nil {
			t.Fatal(err)
		}
	}
	const many = 1100 // more than a page, and several commits
	for i := range many {
		l := shortener.NewLink{URL: "https://example.org/", Slug: fmt.Sprintf("old-%04d", i), ExpiresAt: at(start.Add(time.Minute))}
		if _, err := f.Create(t.Context(), someone, l, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.TakeDown(t.Context(), shortener.Selection{Slug: "disabled"}, "spam", ""); err != nil {
		t.Fatal(err)
	}
	f.clock.set(start.Add(90 * time.Minute))
	all := func(dry bool) (n, calls int) {
		t.Helper()
		e := shortener.Expired{Before: before, DryRun: dry, Note: "a note"}
		for {
			links, next, err := f.DeleteExpired(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			n, calls = n+links, calls+1
			if e.Mark = next; next == "" {
				return n, calls
			}
		}
	}
	lines := func() []shortener.AuditLine {
		t.Helper()
		lines, err := f.Audit(t.Context(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		return lines[:len(lines)-1] // but for the one that was disabled
	}
	if n, calls := all(true); n != many+2 || calls != 2 || len(lines()) != 0 {
		t.Errorf("a dry run finds %d links in %d calls, and writes %+v", n, calls, lines())
	}
	f.wantUsed(t, many+5)
	if n, _ := all(false); n != many+2 {
		t.Errorf("%d links were deleted", n)
	}
	var logged int64
	for _, line := range lines() {
		logged += line.Links
		if line.Action != "delete" || line.Target != "expired before "+before.Format(time.RFC3339) || line.Note != "a note" || line.Links > 250 {
			t.Errorf("the audit log has %+v", line)
		}
	}
	if logged != many+2 || len(lines()) < 5 {
		t.Errorf("the audit log has %d links in %d lines", logged, len(lines()))
	}
	f.wantUsed(t, many+5) // tombstones are what was paid for
	for slug, deleted := range map[shortener.Slug]bool{
		"never": false, "just-before": true, "just-then": false, "later": false, "disabled": true, "old-0000": true, "old-1099": true,
	} {
		if l, err := f.store.Get(t.Context(), slug); err != nil || l.Deleted != deleted {
			t.Errorf("%s: deleted %t, %v, want %t", slug, l.Deleted, err, deleted)
		}
	}
	if _, err := f.Create(t.Context(), someone, shortener.NewLink{URL: "https://example.org/", Slug: "old-0000"}, ""); !errors.Is(err, shortener.ErrSlugTaken) {
		t.Errorf("its slug again: %v", err)
	}
	if n, _ := all(false); n != 0 {
		t.Errorf("again, %d links were deleted", n)
	}
	for _, wrong := range []shortener.Expired{
		{}, {Before: f.clock.read().Add(time.Minute)}, {Before: before, Note: strings.Repeat("x", 501)},
	} {
		f.make(t, someone, "https://example.org/", "") // something to look at
		if n, _, err := f.DeleteExpired(t.Context(), wrong); n != 0 || err != nil && !errors.Is(err, shortener.ErrInvalidSelection) {
			t.Errorf("before %s: %d, %v", wrong.Before, n, err)
		}
	}
	if _, _, err := f.DeleteExpired(t.Context(), shortener.Expired{Before: f.clock.read().Add(time.Minute)}); !errors.Is(err, shortener.ErrInvalidSelection) {
		t.Errorf("links that have not expired yet: %v", err)
	}
}

// A link that got another expiry between the look and the commit is kept.
func TestDeleteExpiredMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	soon := f.clock.read().Add(time.Minute)
	made, err := f.Create(t.Context(), someone, shortener.NewLink{URL: "https://example.org/", Slug: "kept", ExpiresAt: soon.Format(time.RFC3339Nano)}, "")
	if err != nil {
		t.Fatal(err)
	}
	f.clock.set(soon.Add(time.Hour))
	f.store.meanwhile = func() {
		never := ""
		if _, err := f.Change(t.Context(), "kept", shortener.Holder{Token: made.Token}, shortener.Changed{ExpiresAt: &never}); err != nil {
			t.Error(err)
		}
	}
	if n, _, err := f.DeleteExpired(t.Context(), shortener.Expired{Before: f.clock.read()}); n != 0 || err != nil {
		t.Errorf("%d links were deleted, %v", n, err)
	}
	f.wantVisit(t, "kept", nil)
}
