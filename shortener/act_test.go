package shortener_test

import (
	"errors"
	"testing"

	"snip/quota"
	"snip/shortener"
)

// An act whose line cannot be written is not done, whatever it is about.
func TestNoActWithoutItsLine(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	f.make(t, someone, "https://evil.example/", "evil")
	f.makeKey(t, "script", 5)
	if _, err := f.AddBlock(t.Context(), "blocked.example", ""); err != nil {
		t.Fatal(err)
	}
	lines, err := f.Audit(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	before := f.clock.read()
	f.clock.set(before.AddDate(0, 0, 9))
	f.make(t, someone, "https://example.org/", "ahead")
	f.clock.set(before)

	f.store.fail["act"] = errors.New("the disk is full")
	_, _, errMake := f.CreateKey(t.Context(), "new", 5)
	_, errChange := f.ChangeKey(t.Context(), "script", 0, 6)
	_, errOverride := f.PutOverride(t.Context(), shortener.Override{Target: "192.0.2.1", Limit: 1})
	_, errBlock := f.AddBlock(t.Context(), "evil.example", "")
	_, errDown := f.TakeDown(t.Context(), shortener.Selection{Host: "evil.example"}, "spam", "")
	_, errClock := f.AcceptClock(t.Context())
	_, errImport := f.Import(t.Context(), []shortener.Managed{imported("imported", nil)}, 0)
	for i, err := range []error{
		errMake, errChange, errOverride, errBlock, errDown, errClock, errImport,
		f.RevokeKey(t.Context(), "script", 0), f.RemoveBlock(t.Context(), "blocked.example", ""), f.Remove(t.Context(), "evil", ""),
		f.Record(t.Context(), "export", "csv"),
	} {
		if !errors.Is(err, shortener.ErrUnavailable) {
			t.Errorf("act %d: %v, want unavailable", i, err)
		}
	}
	delete(f.store.fail, "act")

	if err := f.Ready(t.Context()); !errors.Is(err, quota.ErrClock) {
		t.Errorf("the clock was accepted: %v", err)
	}
	f.wantVisit(t, "evil", nil)
	f.wantVisit(t, "imported", shortener.ErrNotFound)
	keys, err := f.Keys(t.Context())
	if err != nil || len(keys) != 1 || keys[0].Name != "script" || keys[0].Daily != 5 {
		t.Errorf("the keys are %+v, %v", keys, err)
	}
	if now, err := f.Audit(t.Context(), 0, 100); err != nil || len(now) != len(lines) {
		t.Errorf("the audit log has %d lines, %v, want %d", len(now), err, len(lines))
	}
	if day, err := f.AcceptClock(t.Context()); err != nil || day == "" {
		t.Errorf("accepted later: %q, %v", day, err)
	}
	if now, err := f.Audit(t.Context(), 0, 1); err != nil || len(now) != 1 || now[0].Action != "accept clock" || now[0].Note == "" {
		t.Errorf("the audit log ends with %+v, %v", now, err)
	}
}
