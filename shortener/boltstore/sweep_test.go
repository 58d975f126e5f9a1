package boltstore

import (
	"fmt"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
	"snip/shortener"
)

// days returns the labels of the days that are in the file.
func days(t *testing.T, s *Store) (labels []string) {
	t.Helper()
	err := s.view(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("days")).ForEach(func(label, _ []byte) error {
			labels = append(labels, string(label))
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return labels
}

// swept returns the labels once the writer has nothing left to sweep: two
// operations in a row are separated by whatever it does when its queue is empty.
func swept(t *testing.T, s *Store, want ...string) {
	t.Helper()
	const enough = 10 // times in a row: sweeping may pass through what is wanted
	var got string
	seen := 0
	for range 1000 {
		if err := s.submit(t.Context(), func(*bbolt.Tx) error { return errNothingToCommit }); err == nil {
			t.Fatal("the probe was committed")
		}
		if got = fmt.Sprint(days(t, s)); got != fmt.Sprint(want) {
			seen = 0
		} else if seen++; seen == enough {
			return
		}
	}
	t.Errorf("days in the file: %s, want %v", got, want)
}

func TestSweep(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "snip.db")
	s := openAt(t, path, Options{})
	mustCreate(t, s, noon, 1, "day-0")
	// Far more counters than one transaction removes.
	err := s.db.Update(func(tx *bbolt.Tx) error {
		for i := range 3*sweepChunk + 1 {
			charge := quota.Charge{Cost: 1, Max: 1, Counter: quota.Counter{
				Level: quota.LevelClient, Subject: quota.Subject(fmt.Sprint(i)), Period: "2026-11-29",
			}}
			if _, err := boltquota.Apply(tx, []quota.Charge{charge}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustCreate(t, s, noon.AddDate(0, 0, 1), 1, "day-1")
	swept(t, s, "2026-11-29", "2026-11-30")
	// What counts is the newest day with a link, not a clock: a secret made for a
	// later day moves nothing.
	if _, err := s.EnsureSecret(t.Context(), "2026-12-24"); err != nil {
		t.Fatal(err)
	}
	swept(t, s, "2026-11-29", "2026-11-30", "2026-12-24")
	mustCreate(t, s, noon.AddDate(0, 0, 2), 1, "day-2")
	swept(t, s, "2026-11-30", "2026-12-01", "2026-12-24")
	wantCounted(t, s, "2026-11-30", 1)
	wantCounted(t, s, "2026-12-01", 1)
	for _, slug := range []string{"day-0", "day-1", "day-2"} {
		if _, err := s.Get(t.Context(), creation(t, s, noon.AddDate(0, 0, 2), 1, slug).Links[0].Slug); err != nil {
			t.Errorf("sweeping took the link %s: %v", slug, err)
		}
	}
}

func TestAcceptClock(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	nextYear := noon.AddDate(1, 0, 0)
	mustCreate(t, s, nextYear, 1, "from-the-future")
	if _, err := s.EnsureSecret(t.Context(), "2026-11-29"); err == nil {
		t.Fatal("a clock a year behind was trusted")
	}
	accept := shortener.Act{Line: shortener.AuditLine{At: noon, Action: "accept clock"}, AcceptClock: "2026-11-29"}
	if done, err := s.Act(t.Context(), accept); err != nil || done.Forgotten != "2027-11-29" {
		t.Fatalf("an accepted clock: %+v, %v", done, err)
	}
	mustCreate(t, s, noon, 1, "today")
	if done, err := s.Act(t.Context(), accept); err != nil || done.Forgotten != "" {
		t.Errorf("a clock that is right: %+v, %v", done, err)
	}
	wantCounted(t, s, "2026-11-29", 1)
	// When the later day comes, its count goes on.
	mustCreate(t, s, nextYear, 1, "in-time")
	wantCounted(t, s, "2027-11-29", 2)
}
