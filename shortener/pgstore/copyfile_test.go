package pgstore

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/boltstore"
)

// copiedKey is an API key in the file of newFile.
const copiedKey quota.KeyID = 1<<63 + 7

var copiedAnswer = shortener.Answer{
	AnswerRef: shortener.AnswerRef{Day: "2026-11-29", ID: shortener.AnswerID([]byte("0123456789abcdef"))}, At: noon, Sealed: []byte("\x00sealed\xff"),
}

// newFile makes a file with everything that a store keeps, and returns its path. All
// is done that brings it about, so that it is as a server would leave it.
func newFile(t *testing.T, plain int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snip.db")
	s, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fillFile(t, s, plain)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func fillFile(t *testing.T, s shortener.Store, plain int) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	create := func(host int, slug string, change func(*shortener.Creation)) {
		t.Helper()
		c := creation(t, s, host, slug)
		change(&c)
		must(s.Create(t.Context(), c))
	}
	for made := 0; made < plain; made += 10 {
		create(1000+made, string(s.NewSlug()), func(c *shortener.Creation) {
			for range 9 {
				link := c.Links[0]
				link.Slug = s.NewSlug()
				c.Links = append(c.Links, link)
			}
			for i := range c.Charges {
				c.Charges[i].Cost = 10
			}
		})
	}
	for i := range 49 {
		create(1, fmt.Sprintf("client-%d", i), func(*shortener.Creation) {})
	}
	create(2, "bytes", func(c *shortener.Creation) { c.Links[0].Destination = "https://example.org/ü\u202e%ff" })
	create(2, "options", func(c *shortener.Creation) {
		l := &c.Links[0]
		l.Token, l.ForwardQuery, l.ShowsTarget, l.DirectRedirect, l.ExpiresAt = shortener.NewToken().Hash(), true, true, true, noon.Add(time.Hour+time.Microsecond)
	})
	create(2, "limited", func(c *shortener.Creation) { c.Links[0].MaxVisits = 3 })
	create(2, "deleted", func(c *shortener.Creation) { c.Links[0].Token = shortener.NewToken().Hash() })
	create(2, "taken-down", func(*shortener.Creation) {})
	create(2, "answered", func(c *shortener.Creation) { c.Answer = &copiedAnswer })
	create(2, "Case", func(*shortener.Creation) {})
	create(2, "cASE", func(*shortener.Creation) {})
	for _, slug := range []string{"of-key", "of-key-2"} {
		create(3, slug, func(c *shortener.Creation) {
			c.Links[0].Key = copiedKey
			c.Charges = slices.DeleteFunc(c.Charges, func(c quota.Charge) bool { return c.Counter.Level == quota.LevelNetwork })
		})
	}
	must(s.Create(t.Context(), shortener.Creation{Links: []shortener.Link{{Slug: "imported", Destination: "https://example.org/", CreatedAt: noon}}}))

	visits := shortener.Visits{Kinds: [5]int64{5, 4, 3, 2, 1}, Days: map[string]int64{"2026-11-28": 2, "2026-11-29": 3}, Referrers: map[string]int64{"example.com": 4, shortener.OtherReferrers: 1}}
	must(s.AddVisits(t.Context(), map[shortener.Slug]shortener.Visits{"options": visits, "deleted": visits, "bytes": {Kinds: [5]int64{0, 1}}}))
	for range 2 {
		_, err := s.Visit(t.Context(), "limited")
		must(err)
	}
	must(s.Delete(t.Context(), "deleted"))

	for i, id := range []string{"pending", "committed", "released", "id\xff\x00"} {
		_, _, err := s.Reserve(t.Context(), reservationOf(id, int64(10+i)))
		must(err)
	}
	_, err := s.Commit(t.Context(), "committed", []int64{3, 4}, noon)
	must(err)
	_, err = s.Release(t.Context(), "released", noon)
	must(err)

	act := func(a shortener.Act) {
		t.Helper()
		_, err := s.Act(t.Context(), a)
		must(err)
	}
	line := shortener.AuditLine{At: noon, Action: "disable", Target: "taken-down", Reason: "spam", Note: "as typed: \"\x00ü"}
	act(shortener.Act{Line: line, Links: []shortener.Slug{"taken-down"}, Reason: "spam"})
	for _, e := range []shortener.Entry{
		{Kind: shortener.EntryKey, Name: "newsletter", Value: `{"id":9223372036854775815,"daily":500}`},
		{Kind: shortener.EntryBlock, Name: "bad.example", Value: `{"note":"x"}`},
	} {
		act(shortener.Act{Line: shortener.AuditLine{At: noon.Add(time.Microsecond), Action: "set"}, Entries: []shortener.EntryChange{{Entry: e}}})
	}
	for i, id := range []string{"2026-11-29/fault/1", "2026-11-29/fault/2"} {
		must(s.Post(t.Context(), shortener.Notice{ID: id, At: noon.Add(time.Duration(i)), Kind: "fault", Text: "A sentence."}))
	}
	must(s.Delivered(t.Context(), "2026-11-29/fault/1"))
	must(s.AddHistory(t.Context(), shortener.DayRecord{Day: "2026-11-27", Created: 5, Clients: 2, Busiest: 4}))
	must(s.AddHistory(t.Context(), shortener.DayRecord{Day: "2026-11-28", Created: 1, Clients: 1, Busiest: 1, Refused: map[quota.Level]int64{quota.LevelClient: 7}, Hours: shortener.Hours{5: 1}}))
}

func reservationOf(id string, cost int64) quota.Reservation {
	day := quota.DayOf(noon)
	charge := quota.Charge{Counter: quota.Counter{Level: "money", Subject: "\x00\xff", Period: day.Label}, Cost: cost, Max: 1000, ResetAt: day.End}
	calls := charge
	calls.Counter.Level, calls.Reserved, calls.DryRun = "calls", 1, true
	return quota.Reservation{ID: id, Charges: []quota.Charge{charge, calls}, ExpiresAt: noon.Add(time.Minute), OnExpiry: quota.Committed}
}
