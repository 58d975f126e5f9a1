package shortener_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"snip/quota"
	"snip/shortener"
)

var someoneElse = netip.MustParseAddr("198.51.100.7")

// wantItems asserts the numbers of the items that are wrong, and why.
func wantItems(t *testing.T, err error, want map[int]error) {
	t.Helper()
	var batch *shortener.BatchError
	if !errors.As(err, &batch) || len(batch.Items) != len(want) {
		t.Fatalf("got error %v, want one of %d items", err, len(want))
	}
	for _, item := range batch.Items {
		if want[item.Index] == nil || !errors.Is(item.Err, want[item.Index]) {
			t.Errorf("item %d: %v, want %v", item.Index, item.Err, want[item.Index])
		}
	}
}

func TestBatchNamesAllThatIsWrong(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	if _, err := f.create(shortener.NewLink{URL: "https://example.org/", Slug: "taken"}); err != nil {
		t.Fatal(err)
	}
	_, err := f.CreateBatch(t.Context(), someone, []shortener.NewLink{
		{URL: "https://example.org/", Slug: "twice"},
		{URL: "ftp://example.org/"},
		{URL: "https://example.org/", Slug: "twice"},
		{URL: "https://example.org/", Slug: "TWICE"},
		{URL: "https://example.org/", Slug: "a b"},
		{URL: "https://example.org/", ExpiresAt: "soon"},
		{URL: "https://example.org/", Slug: "taken"}, // which only the store knows
	}, "")
	wantItems(t, err, map[int]error{
		1: shortener.ErrInvalidURL, 2: shortener.ErrInvalidSlug, 4: shortener.ErrInvalidSlug, 5: shortener.ErrInvalidExpiry,
	})
	_, err = f.CreateBatch(t.Context(), someone, []shortener.NewLink{
		{URL: "https://example.org/"}, {URL: "https://example.org/", Slug: "taken"}, {URL: "https://example.org/", Slug: "free"},
	}, "")
	wantItems(t, err, map[int]error{1: shortener.ErrSlugTaken})
	f.wantUsed(t, 1)
	if _, err := f.Follow(t.Context(), "free"); !errors.Is(err, shortener.ErrNotFound) {
		t.Errorf("a link of a batch that was refused: %v", err)
	}
}

// Who has no room for a batch may have some for a link.
func TestBatchAtTheEdge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, quota.Policy{Client: 5})
	batch := func(n int) error {
		_, err := f.CreateBatch(t.Context(), someone, make([]shortener.NewLink, n), "")
		return err
	}
	links := func(n int) (links []shortener.NewLink) {
		for i := range n {
			links = append(links, shortener.NewLink{URL: fmt.Sprint("https://example.org/", i)})
		}
		return links
	}
	if err := batch(2); !errors.Is(err, shortener.ErrInvalidURL) {
		t.Errorf("of nothing: %v", err)
	}
	for _, row := range []struct {
		n     int
		fits  bool
		after int64
	}{{4, true, 4}, {5, false, 4}, {2, false, 4}, {2, false, 4}, {1, true, 5}, {1, false, 5}, {2, false, 5}} {
		made, err := f.CreateBatch(t.Context(), someone, links(row.n), "")
		if row.fits && (err != nil || len(made) != row.n) || !row.fits && (!errors.Is(err, quota.ErrExceeded) || made != nil) {
			t.Errorf("a batch of %d with %d left: %d were made, %v", row.n, 5-row.after, len(made), err)
		}
		f.wantUsed(t, row.after)
	}
	if got := f.Outcomes(); got.Created != 5 || got.Refused[quota.LevelClient] != 5 {
		t.Errorf("outcomes: %+v", got)
	}
}

// A batch that no day has room for is wrong, and not early: its maker would be told to
// wait until midnight for ever. That costs no look into the store.
func TestBatchLargerThanADay(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		policy quota.Policy
		most   int // of 100; those have room
	}{
		{"client", quota.Policy{Client: 50, Network: 60, Service: 1000}, 50},
		{"network", quota.Policy{Network: 60, Service: 1000}, 60},
		{"service", quota.Policy{Service: 70}, 70},
		{"the part that is not for newcomers", quota.Policy{Client: 80, Service: 100, Newcomers: 20}, 80},
		{"newcomers only", quota.Policy{Client: 80, Service: 100, Newcomers: 100}, 1},
		{"a dry run", quota.Policy{Client: 50, Network: 60, DryRun: map[quota.Level]bool{quota.LevelClient: true}}, 60},
		{"no limit", quota.Policy{}, 100},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, row.policy)
			links := slices.Repeat([]shortener.NewLink{{URL: "https://example.org/"}}, row.most+1)
			if row.most < shortener.MaxBatch {
				_, err := f.CreateBatch(t.Context(), someone, links, "")
				var invalid *shortener.InvalidError
				if !errors.Is(err, shortener.ErrBatchTooLarge) || !errors.As(err, &invalid) || invalid.Reason.Values["Max"] != row.most || invalid.Reason.Values["Links"] != row.most+1 {
					t.Fatalf("%d links: %v", len(links), err)
				}
				if _, err := f.store.Secret(t.Context(), quota.DayOf(f.clock.read()).Label); !errors.Is(err, shortener.ErrNotFound) || f.Outcomes().Invalid != 1 {
					t.Errorf("the store has a secret: %v; %+v", err, f.Outcomes())
				}
			}
			if made, err := f.CreateBatch(t.Context(), someone, links[:row.most], ""); err != nil || len(made) != row.most {
				t.Errorf("%d links: %d, %v", row.most, len(made), err)
			}
		})
	}
}

// Generated slugs that are taken, reserved, or given to another of the batch are
// drawn again; what was chosen stays.
func TestGeneratedSlugsAreDrawnAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	if _, err := f.create(shortener.NewLink{URL: "https://example.org/", Slug: "taken"}); err != nil {
		t.Fatal(err)
	}
	f.store.drawn = []shortener.Slug{"one", "one", "chosen", "api", "taken", "two", "one", "three"}
	made, err := f.CreateBatch(t.Context(), someone, []shortener.NewLink{
		{URL: "https://example.org/"}, {URL: "https://example.org/"}, {URL: "https://example.org/", Slug: "chosen"}, {URL: "https://example.org/"},
	}, aKey)
	if err != nil {
		t.Fatal(err)
	}
	var slugs []shortener.Slug
	for _, m := range made {
		slugs = append(slugs, m.Link.Slug)
	}
	// "taken" fell to the second, and was drawn again when the store had said so.
	if fmt.Sprint(slugs) != "[one three chosen two]" {
		t.Errorf("slugs %q", slugs)
	}
	again, err := f.CreateBatch(t.Context(), someone, []shortener.NewLink{
		{URL: "https://example.org/"}, {URL: "https://example.org/"}, {URL: "https://example.org/", Slug: "chosen"}, {URL: "https://example.org/"},
	}, aKey)
	if err != nil || answered(again...) != answered(made...) {
		t.Errorf("again: %+v, %v, want the slugs that were stored", again, err)
	}
	f.wantUsed(t, 5)
}

// Who leaves is no trouble of the store's, and no alert.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	_, err := f.Create(ctx, someone, shortener.NewLink{URL: "https://example.org/"}, "")
	if o := f.Outcomes(); !errors.Is(err, context.Canceled) || o.Withdrawn != 1 || o.Unavailable != 0 {
		t.Errorf("%v, outcomes %+v", err, o)
	}
}
