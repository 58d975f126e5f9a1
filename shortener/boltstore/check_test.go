package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/shortener"
)

// variedFile makes a file with records of every kind, and returns its path.
func variedFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "varied.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	create := func(host int, slug shortener.Slug, change func(*shortener.Creation)) {
		c := creation(t, s, noon, host, string(slug))
		change(&c)
		if err := s.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	create(1, "plain", func(*shortener.Creation) {})
	create(1, s.NewSlug(), func(*shortener.Creation) {})
	create(2, "deleted", func(c *shortener.Creation) { c.Links[0].Token = shortener.NewToken().Hash() })
	create(2, "limited", func(c *shortener.Creation) { c.Links[0].MaxVisits = 5 })
	create(2, "answered", func(c *shortener.Creation) {
		c.Answer = &shortener.Answer{AnswerRef: shortener.AnswerRef{Day: c.Day, ID: shortener.AnswerID([]byte("0123456789abcdef"))}, At: noon, Sealed: []byte("sealed")}
	})
	create(3, "taken-down", func(*shortener.Creation) {})
	create(3, "by-key", func(c *shortener.Creation) {
		secret, err := s.EnsureSecret(t.Context(), c.Day)
		if err != nil {
			t.Fatal(err)
		}
		who := quota.ClientOfKey(theKey)
		c.Links[0].Key, c.Links[0].Creator = theKey.ID, who.Creator(secret)
		c.Charges = quota.Policy{Client: 50, Network: 5000, Service: 100_000}.Charges(who, secret, quota.DayOf(noon), 1)
	})
	mustReserve(t, s, "pending", "settled")
	_, settleErr := s.Commit(t.Context(), "settled", []int64{1}, noon)
	_, visitErr := s.Visit(t.Context(), "limited")
	act := func(a shortener.Act) error {
		a.Line.At = noon
		_, err := s.Act(t.Context(), a)
		return err
	}
	err = errors.Join(settleErr, visitErr,
		s.AddVisits(t.Context(), map[shortener.Slug]shortener.Visits{"plain": {Kinds: [5]int64{2, 1}, Days: map[string]int64{"2026-11-29": 2}}}),
		s.Delete(t.Context(), "deleted"),
		act(shortener.Act{Links: []shortener.Slug{"taken-down"}, Reason: "spam"}),
		act(shortener.Act{Entries: []shortener.EntryChange{{Entry: shortener.Entry{Kind: shortener.EntryKey, Name: "a key", Value: `{"id":7,"daily":10}`}}}}),
		act(shortener.Act{}),
		s.Close())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheckFindsNothingWrong(t *testing.T) {
	t.Parallel()
	path := variedFile(t)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Check(path)
	want := Report{
		Format: format, Links: 7, Deleted: 1, TakenDown: 1, Limited: 1, Visited: 1, Acts: 3, Answers: 1, Newest: "2026-11-29",
		Entries: map[shortener.EntryKind]int64{shortener.EntryKey: 1},
		Days: []DayReport{{Day: "2026-11-29", Links: 7, Keys: 1,
			Used: map[quota.Level]int64{quota.LevelService: 7, quota.LevelNetwork: 6, quota.LevelClient: 7, "money": 1}}},
		Reservations: 2, Pending: 1,
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed: %v", err)
	}
}

// changeFile changes a file that nobody has open.
func changeFile(t *testing.T, path string, update func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(update), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// edit gives a function the bucket of that name; days are below "days".
func edit(name string, change func(*bbolt.Bucket) error) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		path := strings.Split(name, "/")
		bucket := tx.Bucket([]byte(path[0]))
		for _, part := range path[1:] {
			bucket = bucket.Bucket([]byte(part))
		}
		return change(bucket)
	}
}

func put(name, key string, value []byte) func(*bbolt.Tx) error {
	return edit(name, func(b *bbolt.Bucket) error { return b.Put([]byte(key), value) })
}

func remove(name, key string) func(*bbolt.Tx) error {
	return edit(name, func(b *bbolt.Bucket) error {
		if b.Get([]byte(key)) == nil {
			return fmt.Errorf("%q is not in %s", key, name)
		}
		return b.Delete([]byte(key))
	})
}

// relink changes the record of a link.
func relink(slug string, change func(*shortener.Link)) func(*bbolt.Tx) error {
	return edit("links", func(b *bbolt.Bucket) error {
		link, err := decodeLink(b.Get([]byte(slug)))
		if err != nil {
			return err
		}
		change(&link)
		raw, err := encodeLink(link)
		return errors.Join(err, b.Put([]byte(slug), raw))
	})
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	const counters = "days/2026-11-29/counters"
	count := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	newerRecord, err := cbor.Marshal(record{Version: recordVersion + 1, Slug: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	// Of a client that has made two links.
	clientPaidFor := func(n uint64) func(*bbolt.Tx) error {
		return edit(counters, func(b *bbolt.Bucket) error {
			cursor := b.Cursor()
			key, value := cursor.Seek([]byte("c"))
			for ; !bytes.Equal(value, count(2)); key, value = cursor.Next() {
				if key == nil {
					return errors.New("no client has made two links")
				}
			}
			return b.Put(key, count(n))
		})
	}
	for name, row := range map[string]struct {
		update func(*bbolt.Tx) error
		want   string
		doubt  bool
	}{
		"a link that cannot be read":          {update: put("links", "plain", []byte("?")), want: "link under the key 706c61696e"},
		"a link of a newer program":           {update: put("links", "plain", newerRecord), want: "version 2 is not known"},
		"a link under another's key":          {update: relink("plain", func(l *shortener.Link) { l.Slug = "other" }), want: `it is that of "other"`},
		"a bucket among the links":            {update: edit("links", func(b *bbolt.Bucket) error { _, err := b.CreateBucket([]byte("x")); return err }), want: "link under the key 78"},
		"a link that is gone":                 {update: remove("links", "plain"), want: "paid for 7 links, and there are 6"},
		"a link without a destination":        {update: relink("plain", func(l *shortener.Link) { l.Destination = "" }), want: "plain leads nowhere"},
		"a destination that is no text":       {update: relink("plain", func(l *shortener.Link) { l.Destination = "https://a.b/\xff" }), want: "invalid UTF-8"},
		"a tombstone with a destination":      {update: relink("deleted", func(l *shortener.Link) { l.Destination = "https://example.org/" }), want: "more than that is left"},
		"a day that is none":                  {update: relink("plain", func(l *shortener.Link) { l.Day = "today" }), want: `day label "today"`},
		"a link of another day":               {update: relink("plain", func(l *shortener.Link) { l.Day = "2026-11-28" }), want: "the service paid for 7 links, and there are 6"},
		"a link of another client":            {update: relink("plain", func(l *shortener.Link) { l.Creator = "0123456789abcdef" }), want: "the client"},
		"a counter that is too high":          {update: put(counters, "s", count(8)), want: "the service paid for 8 links, and there are 7"},
		"a counter that is too low":           {update: put(counters, "s", count(6)), want: "the service paid for 6 links, and there are 7", doubt: true},
		"a client's counter that is too low":  {update: clientPaidFor(1), want: "the client", doubt: true},
		"a client's counter that is too high": {update: clientPaidFor(9), want: "paid for 9 links"},
		"a network's counter too many":        {update: put(counters, "n0123456789abcdef", count(1)), want: "all networks together paid for 7 links, and there are 6"},
		"a counter of seven bytes":            {update: put(counters, "s", count(7)[1:]), want: "has 7 bytes, not 8"},
		"a negative counter":                  {update: put(counters, "s", count(1<<63)), want: "holds -9223372036854775808"},
		"a counter of no level":               {update: put(counters, "x", count(1)), want: "of no level"},
		"no counters":                         {update: edit("days/2026-11-29", func(b *bbolt.Bucket) error { return b.DeleteBucket([]byte("counters")) }), want: `the bucket "counters" of 2026-11-29 is missing`},
		"no secret":                           {update: remove("days/2026-11-29", "secret"), want: "nothing more can be counted"},
		"a short secret":                      {update: put("days/2026-11-29", "secret", []byte("short")), want: "has 5 bytes, not 32"},
		"no newest day":                       {update: edit("days", func(b *bbolt.Bucket) error { return b.DeleteBucket([]byte("2026-11-29")) }), want: "nothing more can be counted"},
		"a newest day that is none":           {update: put("meta", "newest", []byte("soon")), want: "the newest day"},
		"counters of a day that is none":      {update: edit("days", func(b *bbolt.Bucket) error { _, err := b.CreateBucket([]byte("soon")); return err }), want: `"soon" is the label of no hour`},
		"a short key of slugs":                {update: put("meta", "slug key", []byte("short")), want: "the key of its slugs"},
		"another key of slugs":                {update: put("meta", "slug key", []byte("0123456789abcdef")), want: "it is that of"},
		"reserved slugs that are no number":   {update: put("meta", "slug reserved", []byte("x")), want: "its reserved slugs"},
		"visits of no link":                   {update: put("visits", "unknown", count(1)), want: "counted visits under the key 756e6b6e6f776e: no such link"},
		"visits of a deleted link":            {update: put("visits", "deleted", count(1)), want: "counted visits under"},
		"visits that are no number":           {update: put("visits", "limited", []byte("x")), want: "no number"},
		"statistics of no link":               {update: put("clicks", "unknown", nil), want: "statistics under the key 756e6b6e6f776e: no such link"},
		"statistics that cannot be read":      {update: put("clicks", "plain", []byte("?")), want: "statistics under"},
		"a link that its key does not list":   {update: edit("keylinks", func(b *bbolt.Bucket) error { key, _ := b.Cursor().First(); return b.Delete(key) }), want: "by-key is not listed"},
		"a key that lists another's link":     {update: put("keylinks", "0123456701234567plain", nil), want: `"plain": it is not that key's`},
		"a key that lists nothing":            {update: put("keylinks", "0123", nil), want: "is no entry"},
		"an entry of no kind":                 {update: put("operator", "x", nil), want: "nothing that an operator can set"},
		"a key that cannot be read":           {update: put("operator", "key\x00a key", []byte("?")), want: `key "a key"`},
		"an audit line that is gone":          {update: remove("audit", string(count(2))), want: "audit line 3 comes in the place of line 2"},
		"the last audit line is gone":         {update: remove("audit", string(count(3))), want: "ends at line 2, and 3 were written"},
		"an audit line that cannot be read":   {update: put("audit", string(count(2)), []byte("?")), want: "audit line 0000000000000002"},
		"an answer that cannot be read":       {update: put("answers", "2026-11-290123456789abcdef", []byte("?")), want: "answer under the key 323032362d31312d3239"},
		"an answer of no day":                 {update: put("answers", "2026-11-31abcdef0123456789", nil), want: `day label "2026-11-31"`},
		"an answer without an id":             {update: put("answers", "2026-11-29", nil), want: "is no day and id"},
		"a reservation that cannot be read":   {update: put("reservations/ids", "pending", []byte("?")), want: `reservation "pending"`},
		"a reservation that is gone":          {update: remove("reservations/ids", "settled"), want: `reservation "settled" is due and missing`},
		"a hold that is gone":                 {update: put(counters, "\x05money", count(1)), want: "0 are held at level money of 2026-11-29, and reservations hold 2"},
		"a hold that nobody has":              {update: put(counters, "\x05money", append(count(1), count(3)...)), want: "3 are held at level money of 2026-11-29, and reservations hold 2"},
		"a bucket that nobody knows":          {update: func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("x")); return err }, want: `the bucket "x" is not known`, doubt: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := variedFile(t)
			changeFile(t, path, row.update)
			got, err := Check(path)
			found := got.Problems
			if row.doubt {
				found = got.Doubts
			}
			if err != nil || !strings.Contains(strings.Join(found, "\n"), row.want) || row.doubt == (got.Err() != nil) {
				t.Errorf("%q, %q, %v, want %q", got.Problems, got.Doubts, err, row.want)
			}
			if _, err := Restore(path, path+".restored", ""); row.doubt == errors.Is(err, ErrDamaged) {
				t.Errorf("restored with %v", err)
			}
		})
	}
}

// Of a level that is off there is nothing to compare, and old days are on their way out.
func TestCheckLeavesAlone(t *testing.T) {
	t.Parallel()
	for name, update := range map[string]func(*bbolt.Tx) error{
		"a level that is off": remove("days/2026-11-29/counters", "s"),
		"a day that is being removed": edit("days", func(b *bbolt.Bucket) error {
			day, err := b.CreateBucket([]byte("2026-11-20"))
			if err == nil {
				day, err = day.CreateBucket([]byte("counters"))
			}
			return errors.Join(err, day.Put([]byte("s"), make([]byte, 8)))
		}),
	} {
		path := variedFile(t)
		changeFile(t, path, update)
		if got, err := Check(path); err != nil || got.Err() != nil || len(got.Doubts) > 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// grownFile returns a file whose links fill several pages, without what lies behind them.
func grownFile(t *testing.T) []byte {
	t.Helper()
	s := newStore(t, Options{})
	for i := range 400 {
		mustCreate(t, s, noon, i, fmt.Sprintf("link-%d", i))
	}
	var copied bytes.Buffer
	if err := s.Backup(t.Context(), &copied); err != nil {
		t.Fatal(err)
	}
	return copied.Bytes()
}

func checkBytes(t *testing.T, raw []byte) (Report, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "damaged.db")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return Check(path)
}

// Whatever a disk or a stray program has made of a file, the check comes to an end;
// and what it finds nothing wrong with can be read.
func TestCheckOfDamagedFiles(t *testing.T) {
	t.Parallel()
	whole := grownFile(t)
	found := 0
	const tries = 400
	for seed := range uint64(tries) {
		random := rand.New(rand.NewPCG(seed, 0))
		damaged := bytes.Clone(whole)
		for range 1 + random.IntN(3) {
			at := random.IntN(len(damaged))
			switch random.IntN(3) {
			case 0:
				damaged[at] ^= 1 << random.IntN(8)
			case 1: // a head of a page or an element
				page := at / os.Getpagesize() * os.Getpagesize()
				damaged[page+random.IntN(256)] = byte(random.Uint32())
			case 2: // a page in the place of another
				size := os.Getpagesize()
				to, from := at/size*size, random.IntN(len(damaged)/size)*size
				copy(damaged[to:to+size], whole[from:from+size])
			}
		}
		path := filepath.Join(t.TempDir(), "damaged.db")
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		report, err := Check(path)
		if err != nil || report.Err() != nil || len(report.Doubts) > 0 {
			found++
			continue
		}
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		links, _, err := s.Scan(t.Context(), "", 1000)
		for i := range links {
			if _, getErr := s.Get(t.Context(), shortener.Slug(fmt.Sprintf("link-%d", i))); getErr != nil {
				err = errors.Join(err, getErr)
			}
		}
		if err := errors.Join(err, s.Close()); err != nil || len(links) != 400 {
			t.Errorf("seed %d: %d links can be read: %v", seed, len(links), err)
		}
	}
	if found < tries/4 || found == tries {
		t.Errorf("damage was found in %d of %d files", found, tries)
	}
	for size := 0; size < len(whole); size += 1000 {
		if report, err := checkBytes(t, whole[:size]); err == nil && report.Err() == nil {
			t.Errorf("%d of %d bytes are enough", size, len(whole))
		}
	}
}

// bbolt would follow pages that form a cycle for ever.
func TestCheckOfCycles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "grown.db")
	if err := os.WriteFile(path, grownFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	// Compact, so that every page is used that looks as if it were.
	if _, err := Restore(path, path, path+".aside"); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := os.Getpagesize()
	pages := len(whole) / size
	made := 0
	for page := 2; page < pages; page++ {
		head := whole[page*size:]
		if order.Uint16(head[8:]) != branchPage {
			continue
		}
		for target := range pages {
			damaged := bytes.Clone(whole)
			child := damaged[page*size+pageHeader+8:]
			if order.Uint64(child) == uint64(target) {
				continue
			}
			order.PutUint64(child, uint64(target))
			made++
			if report, err := checkBytes(t, damaged); err != nil || report.Err() == nil {
				t.Errorf("page %d leads to page %d: %+v, %v", page, target, report, err)
			}
		}
	}
	if made < pages {
		t.Errorf("only %d damaged files of %d pages were made", made, pages)
	}
	// The root of a bucket, which a cycle of buckets would need.
	root := bytes.Index(whole, linksName) + len(linksName)
	for target := range uint64(pages) {
		damaged := bytes.Clone(whole)
		if order.Uint64(damaged[root:]) == target {
			continue
		}
		order.PutUint64(damaged[root:], target)
		if report, err := checkBytes(t, damaged); err == nil && report.Err() == nil {
			t.Errorf("the links are at page %d", target)
		}
	}
}
