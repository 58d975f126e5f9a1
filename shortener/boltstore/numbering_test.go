package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"snip/shortener"
)

const allNumbers = 57 * 57 * 57 * 57 * 57 * 57 * 57

func testNumbering(t rapid.TB, key byte) numbering {
	n, err := newNumbering(bytes.Repeat([]byte{key}, 16))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The permutation is a promise to files that exist: another one would lose all
// their links.
func TestNumberingNeverChanges(t *testing.T) {
	t.Parallel()
	n := testNumbering(t, 1)
	for number, want := range map[uint64]shortener.Slug{
		0: "AzFosAh", 1: "PE3zsGg", 2: "9nmXv8u", 1 << 40: "ZhFbKkH", allNumbers - 1: "8oj7sWY",
	} {
		if got := n.slug(number); got != want {
			t.Errorf("number %d has the slug %q, want %q", number, got, want)
		}
	}
}

// Numbers and slugs belong to each other one to one, whatever the key.
func TestNumberingIsOneToOne(t *testing.T) {
	t.Parallel()
	if highSize*lowSize != allNumbers {
		t.Fatalf("%d numbers, want %d", highSize*lowSize, uint64(allNumbers))
	}
	for _, number := range []uint64{0, 1, lowSize - 1, lowSize, allNumbers - 1} {
		if got, ok := testNumbering(t, 2).number(testNumbering(t, 2).slug(number)); !ok || got != number {
			t.Errorf("number %d comes back as %d, %v", number, got, ok)
		}
	}
	letter := rapid.SampledFrom([]byte(shortener.SlugAlphabet))
	rapid.Check(t, func(t *rapid.T) {
		n := testNumbering(t, rapid.Byte().Draw(t, "key"))
		number := rapid.Uint64Range(0, allNumbers-1).Draw(t, "number")
		if got, ok := n.number(n.slug(number)); !ok || got != number {
			t.Errorf("number %d comes back as %d, %v", number, got, ok)
		}
		slug := shortener.Slug(rapid.SliceOfN(letter, 7, 7).Draw(t, "slug"))
		got, ok := n.number(slug)
		if !ok || got >= allNumbers || n.slug(got) != slug {
			t.Errorf("slug %q has the number %d, %v, whose slug is %q", slug, got, ok, n.slug(got))
		}
	})
}

// A slug that cannot be generated is its own key, and none is a number's.
func TestKeys(t *testing.T) {
	t.Parallel()
	n := testNumbering(t, 3)
	for _, slug := range []shortener.Slug{"abc", "abcdef", "abcdefgh", "look0ut", "l00k-at", "sprach_", "ABCDEF0"} {
		if key := n.key(slug); string(key) != string(slug) {
			t.Errorf("the key of %q is %q", slug, key)
		}
	}
	for _, slug := range []shortener.Slug{"meeting", "2222222", "zzzzzzz"} {
		if key := n.key(slug); len(key) != 6 || key[0] > 1 {
			t.Errorf("the key of %q is %x, want a number's six bytes", slug, key)
		}
	}
}

// Links lie in the order in which they were made, but for those whose slug was
// chosen, and a slug that was chosen is not given to anyone else.
func TestKeysAreInOrder(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	want := make([][]byte, 100)
	for i := range want {
		slug := s.NewSlug()
		want[i] = s.numbers.key(slug)
		if err := s.Create(t.Context(), creation(t, s, noon, int(s.next.Load()%200), string(slug))); err != nil {
			t.Fatal(err)
		}
	}
	i := 0
	err := s.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(linksName).ForEach(func(key, _ []byte) error {
			if !bytes.Equal(key, want[i]) {
				t.Errorf("link %d has the key %x, want %x", i, key, want[i])
			}
			i++
			return nil
		})
	})
	if err != nil || i != len(want) {
		t.Errorf("%d links, want %d: %v", i, len(want), err)
	}
}

// Numbers go on above all that were given out, also by a process that was killed,
// and where time has got to by then.
func TestNumbersGoOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "snip.db")
	open := func(after time.Duration) *Store {
		t.Helper()
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		if err := s.loadNumbers(numberEpoch.Add(after)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open(-time.Hour)
	if got := s.next.Load(); got != 0 {
		t.Fatalf("a clock before its time: the first number is %d, want 0", got)
	}
	last := uint64(0)
	const numbers = 1000
	for range numbers {
		slug := s.NewSlug()
		if number, _ := s.numbers.number(slug); number > last {
			last = number
		}
		if last%250 == 1 {
			if err := s.Create(t.Context(), creation(t, s, noon, int(s.next.Load()%200), string(slug))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if last < numbers-1 || last > numbers+numbers/50 { // those whose slugs spell a word are left out
		t.Fatalf("the last number is %d", last)
	}
	if err := s.Create(t.Context(), creation(t, s, noon, 1, "chosen")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // it writes nothing, so a kill leaves the same
		t.Fatal(err)
	}
	s = open(time.Second)
	if got := s.next.Load(); got != last+1 {
		t.Errorf("after %d it goes on with %d", last, got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := open(24 * time.Hour).next.Load(); got != 24*60*60*numbersPerSecond {
		t.Errorf("a day later it goes on with %d", got)
	}
}

// A file that is put back after a few milliseconds goes on beyond the link that it
// lost.
func TestNumbersAfterARestoredBackup(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "snip.db")
	now := numberEpoch.AddDate(1, 0, 0)
	life := func() string {
		t.Helper()
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		now = now.Add(5 * time.Millisecond)
		if err := s.loadNumbers(now); err != nil {
			t.Fatal(err)
		}
		slug := string(s.NewSlug())
		if err := s.Create(t.Context(), creation(t, s, noon, 1, slug)); err != nil {
			t.Fatal(err)
		}
		return slug
	}
	life()
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lost := life()
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	if again := life(); again == lost {
		t.Errorf("%s is given out again", again)
	}
}

func TestUpgradeFromFormat1(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "snip.db")
	slugs := []string{"meeting", "abc", "l00k-at", "2345678"}
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if err := initialize(tx); err != nil {
			return err
		}
		meta, links := tx.Bucket(metaName), tx.Bucket(linksName)
		if err := meta.Delete(slugKeyKey); err != nil {
			return err
		}
		if err := meta.Put(formatKey, binary.BigEndian.AppendUint64(nil, 1)); err != nil {
			return err
		}
		for _, slug := range slugs {
			raw, err := cbor.Marshal(map[int]any{0: 1, 1: "https://example.org/" + slug, 2: noon.UnixMicro()})
			if err != nil {
				return err
			}
			if err := links.Put([]byte(slug), raw); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := Check(path); err != nil || got.Err() != nil || got.Format != 1 || got.Links != 4 {
		t.Errorf("before it is upgraded: %+v, %v", got, err)
	}
	for range 2 { // it is upgraded once
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, slug := range slugs {
			link, err := s.Get(t.Context(), shortener.Slug(slug))
			if want := "https://example.org/" + slug; err != nil || link.Destination != want || !link.CreatedAt.Equal(noon) {
				t.Errorf("%s: %+v, %v", slug, link, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// In formats 2 and 3 something was missing and nothing was otherwise, so their links
// are left as they are.
func TestUpgradeOfTheFormatAlone(t *testing.T) {
	t.Parallel()
	for old := uint64(2); old < format; old++ {
		t.Run(fmt.Sprint("format ", old), func(t *testing.T) {
			t.Parallel()
			upgradeOfTheFormatAlone(t, old)
		})
	}
}

func upgradeOfTheFormatAlone(t *testing.T, old uint64) {
	path := filepath.Join(t.TempDir(), "snip.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	link := shortener.Link{Slug: s.NewSlug(), Destination: "https://example.org/", CreatedAt: noon, Day: "2026-11-29"}
	if err := s.Create(t.Context(), shortener.Creation{Links: []shortener.Link{link}, Day: link.Day}); err != nil {
		t.Fatal(err)
	}
	formatIs := func(update func(*bbolt.Bucket) error) (found uint64) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket(metaName)
			found = binary.BigEndian.Uint64(meta.Get(formatKey))
			return update(meta)
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(path, Options{}); err != nil {
			t.Fatal(err)
		}
		return found
	}
	formatIs(func(meta *bbolt.Bucket) error { return meta.Put(formatKey, binary.BigEndian.AppendUint64(nil, old)) })
	if got, err := s.Get(t.Context(), link.Slug); err != nil || got != link {
		t.Errorf("%+v, %v, want %+v", got, err, link)
	}
	if found := formatIs(func(*bbolt.Bucket) error { return nil }); found != format {
		t.Errorf("it is opened and keeps format %d", found)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
