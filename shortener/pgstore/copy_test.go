package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/quota/pgquota/pgtest"
	"snip/shortener"
	"snip/shortener/boltstore"
)

// copyFile copies a file into a database. progress may be nil.
func copyFile(ctx context.Context, t *testing.T, path, url string, progress func(kind string, count int64)) ([]Copied, error) {
	t.Helper()
	from, _, err := boltstore.OpenContents(path)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if progress == nil {
		progress = func(string, int64) {}
	}
	return Copy(ctx, url, from, from.ID(), progress)
}

// kept is all that a store tells of what is in it.
func kept(t *testing.T, s shortener.Store) map[string]any {
	t.Helper()
	all := map[string]any{}
	must := func(what string, value any, err error) {
		t.Helper()
		if err != nil && !errors.Is(err, shortener.ErrNotFound) {
			t.Fatalf("%s: %v", what, err)
		}
		all[what] = value
	}
	var links []shortener.Managed
	for mark := ""; ; {
		part, next, err := s.Scan(t.Context(), mark, 500)
		if links = append(links, part...); err != nil {
			t.Fatal(err)
		}
		if mark = next; mark == "" {
			break
		}
	}
	slices.SortFunc(links, func(a, b shortener.Managed) int { return cmp.Compare(a.Link.Slug, b.Link.Slug) })
	all["links"] = links
	for _, slug := range []shortener.Slug{"options", "deleted", "bytes", "limited", "client-1"} {
		visits, err := s.Visits(t.Context(), slug)
		must("visits of "+string(slug), visits, err)
		visited, err := s.Visited(t.Context(), slug)
		must("visited "+string(slug), visited, err)
	}
	for _, day := range []string{"2026-11-28", "2026-11-29", "2026-11-30"} {
		secret, err := s.Secret(t.Context(), day)
		must("secret "+day, secret, err)
		for _, level := range []quota.Level{quota.LevelService, quota.LevelNetwork, quota.LevelClient, "money", "calls"} {
			counts, err := s.Busiest(t.Context(), day, level, 1_000_000)
			must(fmt.Sprint("counters ", day, level), counts, err)
		}
	}
	tallies, err := s.Tally(t.Context())
	must("tallies", tallies, err)
	held, err := s.Counts(t.Context(), []quota.Counter{reservationOf("", 1).Charges[0].Counter, reservationOf("", 1).Charges[1].Counter})
	must("held", held, err)
	for _, id := range []string{"pending", "committed", "released", "id\xff\x00"} {
		r, already, err := s.Reserve(t.Context(), reservationOf(id, 1))
		must("reservation "+id, fmt.Sprint(r, already), err)
	}
	answer, err := s.Answer(t.Context(), []shortener.AnswerRef{copiedAnswer.AnswerRef})
	must("answer", answer, err)
	for _, kind := range []shortener.EntryKind{shortener.EntryKey, shortener.EntryBlock, shortener.EntryOverride} {
		entries, err := s.Entries(t.Context(), kind)
		must("entries "+string(kind), entries, err)
	}
	lines, err := s.Audit(t.Context(), 0, 100)
	must("audit", lines, err)
	notices, err := s.Notices(t.Context(), 100)
	must("notices", notices, err)
	history, err := s.History(t.Context(), 100)
	must("history", history, err)
	mine, err := s.LinksOf(t.Context(), copiedKey, "", 10)
	must("links of the key", mine, err)
	must("ready", nil, s.Ready(t.Context(), "2026-11-29"))
	must("too early", fmt.Sprint(s.Ready(t.Context(), "2026-11-27")), nil)
	return all
}

// A store in the database tells the same as the file, and goes on from there.
func TestCopy(t *testing.T) {
	t.Parallel()
	path, url := newFile(t, 2500), pgtest.Database(t)
	copied, err := copyFile(t.Context(), t, path, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, c := range copied {
		got[c.Kind] = c.Count
	}
	want := map[string]int64{"links": 2560, "visits": 2, "secrets": 1, "reservations": 4, "answers": 1, "entries": 2, "acts": 3, "notices": 2, "history": 2,
		"counters": got["counters"]} // which are compared below
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("copied (-want +got):\n%s", diff)
	}
	file, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	s := openClosing(t, url)
	if diff := gocmp.Diff(kept(t, file), kept(t, s), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the database (+) is not as the file (-):\n%s", diff)
	}

	// The client that has made 49 of 50 makes one more, and what came before holds.
	if err := s.Create(t.Context(), creation(t, s, 1, "the-fiftieth")); err != nil {
		t.Error(err)
	}
	if err := s.Create(t.Context(), creation(t, s, 1, "one-too-many")); !errors.Is(err, quota.ErrExceeded) {
		t.Errorf("got error %v, want ErrExceeded", err)
	}
	if err := s.Create(t.Context(), creation(t, s, 5, "deleted")); !errors.Is(err, shortener.ErrSlugTaken) {
		t.Errorf("got error %v, want ErrSlugTaken", err)
	}
	again := creation(t, s, 5, "again")
	again.Answer, again.Replays = &copiedAnswer, []shortener.AnswerRef{copiedAnswer.AnswerRef}
	if _, replayed := errors.AsType[*shortener.ReplayError](s.Create(t.Context(), again)); !replayed {
		t.Error("what was answered is done again")
	}
	_, err = s.Visit(t.Context(), "limited")
	_, none := s.Visit(t.Context(), "limited")
	if err != nil || !errors.Is(none, shortener.ErrGone) {
		t.Errorf("the third and fourth of three visits: %v, %v", err, none)
	}
	if more, err := s.SettleExpired(t.Context(), noon.Add(time.Hour), 10); err != nil || !more {
		t.Errorf("SettleExpired: %v, %v", more, err)
	}
	// 3 and 4 were paid before; 10 and 13 were held.
	counts, err := s.Counts(t.Context(), []quota.Counter{reservationOf("", 1).Charges[0].Counter})
	if err != nil || counts[0] != (quota.Count{Used: 3 + 10 + 13}) {
		t.Errorf("after the reservations have expired, %v, %v", counts, err)
	}
	if _, err := s.Act(t.Context(), shortener.Act{Line: shortener.AuditLine{At: noon, Action: "next"}}); err != nil {
		t.Error(err)
	}
	if lines, err := s.Audit(t.Context(), 0, 1); err != nil || len(lines) != 1 || lines[0].Number != 4 {
		t.Errorf("%v, %v, want line 4", lines, err)
	}
}

// An empty file is copied, too.
func TestCopyNothing(t *testing.T) {
	t.Parallel()
	path, url := filepath.Join(t.TempDir(), "snip.db"), pgtest.Database(t)
	s, err := boltstore.Open(path, boltstore.Options{})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := copyFile(t.Context(), t, path, url, nil); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, openClosing(t, url), "first")
}

// breakOff copies until so many transactions are committed.
func breakOff(t *testing.T, path, url string, commits int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := copyFile(ctx, t, path, url, func(string, int64) {
		if commits--; commits == 0 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got error %v, want that it was broken off", err)
	}
}

// A copy that is broken off again and again is the same in the end, and nothing is
// served from it before.
func TestCopyGoesOn(t *testing.T) {
	t.Parallel()
	path, url := newFile(t, 2500), pgtest.Database(t)
	other := newFile(t, 0)
	var seen []string
	for {
		ctx, cancel := context.WithCancel(t.Context())
		copied, err := copyFile(ctx, t, path, url, func(kind string, count int64) {
			seen = append(seen, fmt.Sprint(kind, " ", count))
			cancel()
		})
		cancel()
		if err == nil {
			if copied[0].Count != 2560 {
				t.Errorf("%d links were copied", copied[0].Count)
			}
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), url, Options{}); !errors.Is(err, errUnfinished) {
			t.Fatalf("half a copy can be served from: %v", err)
		}
		if _, err := copyFile(t.Context(), t, other, url, nil); !errors.Is(err, ErrOtherCopy) {
			t.Fatalf("another file: got error %v, want ErrOtherCopy", err)
		}
	}
	if want := []string{"links 500", "links 1000", "links 1500", "links 2000", "links 2500", "links 2560", "visits 2", "secrets 1"}; !slices.Equal(seen[:len(want)], want) {
		t.Errorf("it did not go on where it was: %q", seen)
	}
	file, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	if diff := gocmp.Diff(kept(t, file), kept(t, openClosing(t, url)), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the database (+) is not as the file (-):\n%s", diff)
	}
}

// A file that was written to since cannot go on.
func TestCopyOfChangedFile(t *testing.T) {
	t.Parallel()
	path, url := newFile(t, 0), pgtest.Database(t)
	breakOff(t, path, url, 3)
	s, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Create(t.Context(), creation(t, s, 9, "later")), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := copyFile(t.Context(), t, path, url, nil); !errors.Is(err, ErrOtherCopy) {
		t.Errorf("got error %v, want ErrOtherCopy", err)
	}
}

// Whatever is lost, changed or added in the database is found in the end.
func TestCopyThatDiffers(t *testing.T) {
	t.Parallel()
	path, url := newFile(t, 0), pgtest.Database(t)
	everything := 0
	if _, err := copyFile(t.Context(), t, path, pgtest.Database(t), func(string, int64) { everything++ }); err != nil {
		t.Fatal(err)
	}
	breakOff(t, path, url, everything)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	do := func(sql string) {
		t.Helper()
		tag, err := conn.Exec(t.Context(), sql)
		if err != nil || tag.RowsAffected() == 0 {
			t.Fatalf("%s: %v, %v", sql, tag, err)
		}
	}
	for _, damage := range []struct{ kind, table, sql string }{
		{"links", "links", `DELETE FROM links WHERE slug = 'bytes'`},
		{"links", "links", `UPDATE links SET destination = destination || '/' WHERE slug = 'bytes'`},
		{"links", "links", `UPDATE links SET visited = 0 WHERE slug = 'limited'`},
		{"links", "links", `UPDATE links SET expires_at = expires_at + interval '1 microsecond' WHERE slug = 'options'`},
		{"links", "links", `UPDATE links SET slug = 'tytes' WHERE slug = 'bytes'`},
		{"links", "links", `INSERT INTO links SELECT 'added', destination, created_at, expires_at, day, creator, key, max_visits, forward_query, shows_target, token, taken_down, deleted, visited, direct_redirect FROM links WHERE slug = 'bytes'`},
		{"visits", "clicks", `UPDATE clicks SET visits = '{}'`},
		{"visits", "clicks", `DELETE FROM clicks WHERE slug = 'options'`},
		{"secrets", "quota_secrets", `UPDATE quota_secrets SET secret = sha256(secret)`},
		{"counters", "quota_counters", `UPDATE quota_counters SET used = used + 1 WHERE level = 'service'`},
		{"counters", "quota_counters", `UPDATE quota_counters SET held = held + 1 WHERE level = 'service'`},
		{"counters", "quota_counters", `DELETE FROM quota_counters WHERE level = 'service'`},
		{"reservations", "quota_reservations", `UPDATE quota_reservations SET costs[1] = 1 WHERE id = 'pending'`},
		{"reservations", "quota_reservations", `DELETE FROM quota_reservations WHERE id = 'released'`},
		{"answers", "answers", `UPDATE answers SET sealed = 'x'`},
		{"entries", "entries", `UPDATE entries SET value = '{}' WHERE name = 'newsletter'`},
		{"acts", "audit", `UPDATE audit SET note = '' WHERE number = 1`},
		{"acts", "audit", `DELETE FROM audit WHERE number = 2`},
		{"notices", "outbox", `UPDATE outbox SET delivered = true`},
		{"history", "history", `UPDATE history SET refused = '{"client": 8}' WHERE day = '2026-11-28'`},
	} {
		do(`CREATE TABLE saved AS SELECT * FROM ` + damage.table)
		do(damage.sql)
		_, err := copyFile(t.Context(), t, path, url, nil)
		if !errors.Is(err, ErrCopyDiffers) || !strings.Contains(err.Error(), "\n"+damage.kind) && !strings.Contains(err.Error(), ": "+damage.kind) {
			t.Errorf("%s: got error %v, want ErrCopyDiffers about %s", damage.sql, err, damage.kind)
		}
		if _, err := Open(t.Context(), url, Options{}); !errors.Is(err, errUnfinished) {
			t.Errorf("%s: the copy can be served from: %v", damage.sql, err)
		}
		do(`DELETE FROM ` + damage.table)
		do(`INSERT INTO ` + damage.table + ` SELECT * FROM saved`)
		if _, err := conn.Exec(t.Context(), `DROP TABLE saved`); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := copyFile(t.Context(), t, path, url, nil); err != nil {
		t.Errorf("once all is as it was: %v", err)
	}
}

// A database that has something, or is served from, is left alone.
func TestCopyIntoUsed(t *testing.T) {
	t.Parallel()
	path := newFile(t, 0)
	for _, used := range []struct {
		name  string
		begin func(*testing.T, string)
	}{
		{"it has a link", func(t *testing.T, url string) {
			s := openAt(t, url, Options{})
			mustCreate(t, s, "there")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}},
		{"an operator has set something", func(t *testing.T, url string) {
			s := openAt(t, url, Options{})
			_, err := s.Act(t.Context(), shortener.Act{Line: shortener.AuditLine{At: noon}})
			if err := errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
		}},
		{"a program serves from it", func(t *testing.T, url string) {
			openClosing(t, url)
			c, err := Stand(url, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			eventually(t, "it leads", c.Leads)
		}},
		{"it is a copy", func(t *testing.T, url string) {
			if _, err := copyFile(t.Context(), t, path, url, nil); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(used.name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			used.begin(t, url)
			if _, err := copyFile(t.Context(), t, path, url, nil); !errors.Is(err, ErrInUse) {
				t.Errorf("got error %v, want ErrInUse", err)
			}
		})
	}
}

// Of two copies at once one is refused, and the other is not harmed.
func TestCopyTwice(t *testing.T) {
	t.Parallel()
	path, url := newFile(t, 0), pgtest.Database(t)
	var second error
	_, err := copyFile(t.Context(), t, path, url, func(kind string, count int64) {
		if kind == "links" {
			_, second = copyFile(t.Context(), t, path, url, nil)
		}
	})
	if err != nil || second == nil || !strings.Contains(second.Error(), "another copy") {
		t.Errorf("the first ends with %v, the second with %v", err, second)
	}
}

// What PostgreSQL cannot keep is named, and breaks the copy off.
func TestCopyOfWhatCannotBeKept(t *testing.T) {
	t.Parallel()
	path, url := newFile(t, 0), pgtest.Database(t)
	s, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	act := shortener.Act{Line: shortener.AuditLine{At: noon}, Links: []shortener.Slug{"Case"}, Reason: "a\x00b"}
	_, err = s.Act(t.Context(), act)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := copyFile(t.Context(), t, path, url, nil); err == nil || !strings.Contains(err.Error(), "link Case") {
		t.Errorf("got error %v, want one that names the link", err)
	}
}
