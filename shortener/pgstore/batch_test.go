package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"snip/quota"
	"snip/quota/pgquota/pgtest"
	"snip/shortener"
)

// TestNeighbours has one batch in which some are refused, each for another reason.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	s := openClosing(t, pgtest.Database(t))
	mustCreate(t, s, "taken")
	full, stale, invalid := creation(t, s, 2, "full"), creation(t, s, 2, "stale"), creation(t, s, 2, "invalid")
	full.Charges[2].Max, stale.Day, invalid.Charges[1].Cost = 0, "2026-11-27", -1
	ref := shortener.AnswerRef{Day: "2026-11-29", ID: shortener.AnswerID{1}}
	keyed := func(slug string) shortener.Creation {
		c := creation(t, s, 3, slug)
		c.Answer, c.Replays = &shortener.Answer{AnswerRef: ref, At: noon, Sealed: []byte(slug)}, []shortener.AnswerRef{ref}
		return c
	}
	commits := s.Health().Commits
	var operations []operation
	want := []error{nil, quota.ErrExceeded, shortener.ErrSlugTaken, nil, shortener.ErrSlugTaken, quota.ErrClock, quota.ErrInvalidCharge, nil, nil, nil}
	for _, c := range []shortener.Creation{
		creation(t, s, 1, "one"), full, creation(t, s, 4, "taken"), keyed("keyed"), creation(t, s, 5, "keyed"), stale, invalid,
		creation(t, s, 6, "full"), creation(t, s, 7, "stale"), creation(t, s, 8, "last"),
	} {
		operations = append(operations, creating(c))
	}
	results, err := s.commit(append(operations, creating(keyed("again"))))
	if err != nil || len(results) != len(want)+1 {
		t.Fatalf("%v, %v", results, err)
	}
	for i, err := range want {
		if !errors.Is(results[i], err) {
			t.Errorf("number %d: got error %v, want %v", i, results[i], err)
		}
	}
	if replay, ok := errors.AsType[*shortener.ReplayError](results[len(want)]); !ok || string(replay.Answer.Sealed) != "keyed" {
		t.Errorf("the same demand again: %v", results[len(want)])
	}
	wantCounted(t, s, 6)
	if n := s.Health().Commits - commits; n != 1 {
		t.Errorf("it took %d commits", n)
	}
	// Nothing but refusals is no commit at all.
	if results, err := s.commit([]operation{creating(full)}); err != nil || !errors.Is(results[0], quota.ErrExceeded) {
		t.Errorf("%v, %v", results, err)
	}
	if n := s.Health().Commits - commits; n != 1 {
		t.Errorf("a refusal was committed")
	}
}

// TestLimitsOverPrograms has three programs asked at once for more than there is.
func TestLimitsOverPrograms(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	stores := []*Store{openClosing(t, url), openClosing(t, url), openClosing(t, url)}
	ask := func(callers int, change func(i int, c *shortener.Creation)) (made int64) {
		var passed atomic.Int64
		var group sync.WaitGroup
		for i := range callers {
			c := creation(t, stores[i%3], 1, fmt.Sprintf("link-%d-%d", callers, i))
			change(i, &c)
			group.Go(func() {
				switch err := stores[i%3].Create(context.Background(), c); {
				case err == nil:
					passed.Add(1)
				case !errors.Is(err, quota.ErrExceeded):
					t.Errorf("number %d: %v", i, err)
				}
			})
		}
		group.Wait()
		return passed.Load()
	}
	if made := ask(200, func(int, *shortener.Creation) {}); made != 50 {
		t.Errorf("one client made %d links of 50", made)
	}
	wantCounted(t, stores[0], 50)
	last := ask(60, func(i int, c *shortener.Creation) {
		c.Charges = creation(t, stores[0], 100+i, "unused").Charges
		c.Charges[0].Max = 51 // one is left to everybody
	})
	if last != 1 {
		t.Errorf("%d took the last unit", last)
	}
	wantCounted(t, stores[0], 51)
}

// TestRacesWithoutCounters lets programs want the same slug or answer the same
// demand when no counter makes them wait for each other.
func TestRacesWithoutCounters(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	stores := []*Store{openClosing(t, url), openClosing(t, url), openClosing(t, url)}
	for round := range 10 {
		ref := shortener.AnswerRef{Day: "2026-11-29", ID: shortener.AnswerID{byte(round), 2}}
		var made, taken, replayed atomic.Int64
		var group sync.WaitGroup
		for i := range 30 {
			c := shortener.Creation{Day: "2026-11-29"}
			for _, slug := range []string{"free", "wanted"} {
				if slug == "free" {
					slug = fmt.Sprint("free-", i)
				}
				c.Links = append(c.Links, shortener.Link{
					Slug: shortener.Slug(fmt.Sprint(slug, "-", round)), Destination: "https://example.org/", CreatedAt: noon, Day: "2026-11-29",
				})
			}
			if i%2 == 0 { // half of them are one demand, whose slug is free
				c.Links = c.Links[:1]
				c.Answer, c.Replays = &shortener.Answer{AnswerRef: ref, At: noon, Sealed: []byte{byte(i)}}, []shortener.AnswerRef{ref}
			}
			group.Go(func() {
				err := stores[i%3].Create(context.Background(), c)
				_, replay := errors.AsType[*shortener.ReplayError](err)
				switch {
				case err == nil:
					made.Add(1)
				case replay:
					replayed.Add(1)
				case errors.Is(err, shortener.ErrSlugTaken):
					taken.Add(1)
				default:
					t.Errorf("number %d: %v", i, err)
				}
			})
		}
		group.Wait()
		if made.Load() != 2 || taken.Load() != 14 || replayed.Load() != 14 {
			t.Errorf("round %d: %d made, %d found the slug taken, %d were done before", round, made.Load(), taken.Load(), replayed.Load())
		}
	}
	var links int
	if err := stores[0].pool.QueryRow(t.Context(), "SELECT count(*) FROM links").Scan(&links); err != nil || links != 30 {
		t.Errorf("%d links, %v, want 30: what was refused has left something", links, err)
	}
}

func TestCannotCount(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"no counters":          "DROP TABLE quota_counters",
		"no newest day":        "DELETE FROM state",
		"a day that is none":   "UPDATE state SET newest = 'some day'",
		"a count below zero":   "ALTER TABLE quota_counters DROP CONSTRAINT quota_counters_check; UPDATE quota_counters SET used = -1",
		"no links":             "DROP TABLE links",
		"no right to write":    "ALTER DATABASE %s SET default_transaction_read_only = on",
		"a secret of one byte": "UPDATE quota_secrets SET secret = '1'",
		"a secret that went":   "DELETE FROM quota_secrets",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			s := openClosing(t, url)
			mustCreate(t, s, "first")
			c := creation(t, s, 1, "second")
			if name == "no right to write" {
				damage = fmt.Sprintf(damage, s.pool.Config().ConnConfig.Database)
			}
			if _, err := s.pool.Exec(t.Context(), damage); err != nil {
				t.Fatal(err)
			}
			s = openAt(t, url, Options{patience: 300 * 1e6})
			defer s.Close()
			switch name {
			case "a secret of one byte", "a secret that went":
				_, err := s.EnsureSecret(t.Context(), "2026-11-29")
				if !errors.Is(err, quota.ErrCannotCount) {
					t.Errorf("got error %v, want ErrCannotCount", err)
				}
			default:
				wantUnavailable(t, s.Create(t.Context(), c))
			}
		})
	}
}

// What PostgreSQL would not take as text finds nothing, and disturbs nobody.
func TestOddText(t *testing.T) {
	t.Parallel()
	s := openClosing(t, pgtest.Database(t))
	for _, odd := range []string{"\x00\x00\x00", "\xff\xff\xff", "", "a", "-ab", "ö-ö"} {
		slug := shortener.Slug(odd)
		_, getErr := s.Get(t.Context(), slug)
		_, followErr := s.Follow(t.Context(), slug)
		_, visitErr := s.Visit(t.Context(), slug)
		for _, err := range []error{getErr, followErr, visitErr, s.Delete(t.Context(), slug)} {
			if !errors.Is(err, shortener.ErrNotFound) {
				t.Errorf("%q: got error %v, want ErrNotFound", odd, err)
			}
		}
		visited, visitedErr := s.Visited(t.Context(), slug)
		visits, visitsErr := s.Visits(t.Context(), slug)
		if err := errors.Join(visitedErr, visitsErr); err != nil || visited != 0 || visits.Total() != 0 {
			t.Errorf("%q: %d visits, %v, %v", odd, visited, visits, err)
		}
		c := creation(t, s, 1, "fine")
		c.Links[0].Slug = slug
		wantUnavailable(t, s.Create(t.Context(), c))
		if err := s.AddVisits(t.Context(), map[shortener.Slug]shortener.Visits{slug: {}}); err != nil {
			t.Errorf("%q: %v", odd, err)
		}
	}
	note := "\x00\xff"
	act := shortener.Act{Line: shortener.AuditLine{Number: 1, At: noon, Action: note, Target: note, Reason: note, Note: note}}
	if _, err := s.Act(t.Context(), act); err != nil {
		t.Error(err)
	}
	if lines, err := s.Audit(t.Context(), 0, 9); err != nil || len(lines) != 1 || lines[0] != act.Line {
		t.Errorf("%+v, %v", lines, err)
	}
	wantCounted(t, s, 0)
}

// Slugs are in the order of their bytes, in whatever order the database has text.
func TestOrderOfSlugs(t *testing.T) {
	t.Parallel()
	s := openClosing(t, pgtest.Database(t))
	c := shortener.Creation{}
	for _, slug := range []shortener.Slug{"aaa", "BBB", "ccc", "CCC", "a-a", "a_a"} {
		c.Links = append(c.Links, shortener.Link{Slug: slug, Destination: first, CreatedAt: noon, Key: 1<<64 - 1})
	}
	if err := s.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	var got []shortener.Slug
	links, err := s.LinksOf(t.Context(), 1<<64-1, "", 9)
	for _, link := range links {
		got = append(got, link.Slug)
	}
	if want := "[ccc aaa a_a a-a CCC BBB]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
}

// TestActsAtOnce numbers acts from two programs without gaps.
func TestActsAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	stores := []*Store{openClosing(t, url), openClosing(t, url)}
	const acts = 40
	var group sync.WaitGroup
	for i := range acts {
		group.Go(func() {
			if _, err := stores[i%2].Act(context.Background(), shortener.Act{Line: shortener.AuditLine{At: noon}}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	lines, err := stores[0].Audit(t.Context(), 0, 2*acts)
	if err != nil || len(lines) != acts {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	for i, line := range lines {
		if line.Number != uint64(acts-i) {
			t.Errorf("line %d has the number %d", i, line.Number)
		}
	}
}

// TestScanIsOneRead scans many links with their visits.
func TestScanIsOneRead(t *testing.T) {
	t.Parallel()
	s := openClosing(t, pgtest.Database(t))
	visits := map[shortener.Slug]shortener.Visits{}
	for i := range 30 {
		slug := fmt.Sprintf("link-%d", i)
		mustCreate(t, s, slug)
		visits[shortener.Slug(slug)] = shortener.Visits{Kinds: [5]int64{1}}
	}
	if err := s.AddVisits(t.Context(), visits); err != nil {
		t.Fatal(err)
	}
	before := s.pool.Stat().AcquireCount()
	links, next, err := s.Scan(t.Context(), "", 100)
	if reads := s.pool.Stat().AcquireCount() - before; err != nil || len(links) != 30 || next != "" || links[29].Visits.Total() != 1 || reads > 3 {
		t.Errorf("%d links, %q, %v, in %d reads", len(links), next, err, reads) // the sweeper and the listener read as well
	}
}
