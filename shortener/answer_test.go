package shortener_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

const aKey = shortener.IdempotencyKey("8e03978e-40d5-43e8-bc93-6894a57f9324")

// answered is what a client is told of a link, as text.
func answered(made ...shortener.Made) string {
	for i := range made {
		made[i].Link.Creator, made[i].Link.Token = "", shortener.TokenHash{} // which nobody is told
	}
	return fmt.Sprintf("%+v", made)
}

// tries makes a link with an Idempotency-Key, again and again.
type tries struct {
	*testing.T
	fixture
	n     shortener.NewLink
	key   shortener.IdempotencyKey
	first shortener.Made
}

func newTries(t *testing.T, f fixture, n shortener.NewLink) *tries {
	t.Helper()
	tries := &tries{t, f, n, aKey, shortener.Made{}}
	tries.fresh()
	return tries
}

// fresh asserts that a try makes a link.
func (t *tries) fresh() {
	t.Helper()
	made, err := t.Create(context.Background(), someone, t.n, t.key)
	if err != nil || made.Token == "" || made.Link.Slug == t.first.Link.Slug {
		t.Fatalf("a fresh try made %+v, %v", made, err)
	}
	t.first = made
}

// again asserts that a try is told what was made first.
func (t *tries) again(when string) {
	t.Helper()
	made, err := t.Create(context.Background(), someone, t.n, t.key)
	if err != nil || answered(made) != answered(t.first) {
		t.Errorf("%s: made %s, %v, want %s", when, answered(made), err, answered(t.first))
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	visits := int64(3)
	tries := newTries(t, f, shortener.NewLink{
		URL: "https://example.org/a?b=%20&c=<\u2028>", ExpiresAt: "2026-11-29T13:00:00.5+01:00", MaxVisits: &visits, ForwardQuery: true, ShowsTarget: true,
	})
	tries.again("at once")
	tries.n.URL = " " + tries.n.URL + "\n"
	tries.again("with blanks that are no part of it")
	f.wantUsed(t, 1)
	for range 49 {
		if _, err := f.create(shortener.NewLink{URL: "https://example.org/"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.create(shortener.NewLink{URL: "https://example.org/"}); !errors.Is(err, quota.ErrExceeded) {
		t.Fatalf("got error %v, want a refusal", err)
	}
	tries.again("at 50 of 50")
	f.clock.set(f.clock.read().Add(30 * time.Minute))
	tries.again("though the link has expired and could not be made any more")
	if err := f.store.Delete(t.Context(), tries.first.Link.Slug); err != nil {
		t.Fatal(err)
	}
	tries.again("though the link is deleted")
	f.wantUsed(t, 50)
	f.store.fail["create"], f.store.fail["secret"] = errors.New("read-only"), errors.New("read-only")
	tries.again("though nothing can be written")
	if got := f.Outcomes(); got.Created != 50 || got.Replayed != 6 || got.Unavailable != 0 {
		t.Errorf("outcomes: %+v", got)
	}
}

func TestReplayHoldsForADay(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	midnight := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	f.clock.set(midnight.Add(-time.Minute))
	tries := newTries(t, f, shortener.NewLink{URL: "https://example.org/"})
	f.clock.set(midnight)
	tries.again("after midnight")
	f.wantUsed(t, 0) // of the new day
	f.clock.set(midnight.Add(time.Hour))
	if _, err := f.create(shortener.NewLink{URL: "https://example.org/"}); err != nil { // a link of the next day
		t.Fatal(err)
	}
	f.clock.set(midnight.Add(24*time.Hour - 2*time.Minute))
	tries.again("the next day at 23:58")
	f.clock.set(midnight.Add(24*time.Hour - time.Minute - time.Microsecond))
	tries.again("in the last instant of its day")
	f.clock.set(midnight.Add(24*time.Hour - time.Minute))
	tries.fresh() // at 23:59
	f.clock.set(midnight.Add(24*time.Hour + time.Minute))
	tries.again("the second one after midnight")

	f.clock.set(midnight.Add(48*time.Hour + 10*time.Second))
	tries.fresh()
	f.clock.set(midnight.Add(48*time.Hour - 10*time.Second))
	tries.again("when the clock steps back over midnight")
}

func TestKeyReused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	one, two := int64(1), int64(2)
	n := shortener.NewLink{URL: "https://example.org/", Slug: "mine", ExpiresAt: "2027-01-01T00:00:00Z", MaxVisits: &one}
	tries := newTries(t, f, n)
	for name, change := range map[string]func(*shortener.NewLink){
		"destination":     func(n *shortener.NewLink) { n.URL += "x" },
		"slug":            func(n *shortener.NewLink) { n.Slug = "Mine" },
		"no slug":         func(n *shortener.NewLink) { n.Slug = "" },
		"expiry":          func(n *shortener.NewLink) { n.ExpiresAt = "2027-01-01T00:00:01Z" },
		"visits":          func(n *shortener.NewLink) { n.MaxVisits = &two },
		"any number":      func(n *shortener.NewLink) { n.MaxVisits = nil },
		"query":           func(n *shortener.NewLink) { n.ForwardQuery = true },
		"target":          func(n *shortener.NewLink) { n.ShowsTarget = true },
		"direct":          func(n *shortener.NewLink) { n.DirectRedirect = true },
		"what is invalid": func(n *shortener.NewLink) { n.URL = "ftp://example.org/" },
	} {
		other := n
		change(&other)
		made, err := f.Create(t.Context(), someone, other, aKey)
		if !errors.Is(err, shortener.ErrKeyReused) || made != (shortener.Made{}) {
			t.Errorf("another %s: got %+v, %v, want ErrKeyReused", name, made, err)
		}
	}
	f.wantUsed(t, 1)
	if got := f.Outcomes(); got.Invalid != 10 || got.Unavailable != 0 {
		t.Errorf("outcomes: %+v", got)
	}
	same := one
	tries.n.MaxVisits = &same
	tries.again("the same number elsewhere in memory")
	// Whoever has another key, holds another API key, or sends a batch, is told nothing.
	holder := quota.ClientOfKey(quota.Key{ID: 7, Limit: 10})
	tries.n.Slug, n.Slug = "", ""
	for name, try := range map[string]func() error{
		"another key": func() error { _, err := f.Create(t.Context(), someone, n, aKey+"x"); return err },
		"an API key":  func() error { _, err := f.Create(t.Context(), holder, n, aKey); return err },
		"a batch":     func() error { _, err := f.CreateBatch(t.Context(), someone, []shortener.NewLink{n}, aKey); return err },
		"an API batch": func() error {
			_, err := f.CreateBatch(t.Context(), holder, []shortener.NewLink{n, n}, aKey)
			return err
		},
	} {
		if err := try(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.wantUsed(t, 3)
	// From another network it is the same key.
	elsewhere := quota.ClientOf(someoneElse)
	n.Slug = "mine"
	if made, err := f.Create(t.Context(), elsewhere, n, aKey); err != nil || answered(made) != answered(tries.first) {
		t.Errorf("from another network: %+v, %v", made, err)
	}
}

func TestBatchReplay(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	links := []shortener.NewLink{{URL: "https://example.org/1"}, {URL: "https://example.org/2", Slug: "two"}, {URL: "https://example.org/1"}}
	first, err := f.CreateBatch(t.Context(), someone, links, aKey)
	if err != nil || len(first) != 3 || first[1].Link.Slug != "two" || first[0].Token == first[2].Token || first[0].Link.Slug == first[2].Link.Slug {
		t.Fatalf("made %+v, %v", first, err)
	}
	again, err := f.CreateBatch(t.Context(), someone, links, aKey)
	if err != nil || answered(again...) != answered(first...) {
		t.Errorf("again: made %s, %v, want %s", answered(again...), err, answered(first...))
	}
	for name, other := range map[string][]shortener.NewLink{"fewer": links[:2], "another order": {links[0], links[2], links[1]}} {
		if _, err := f.CreateBatch(t.Context(), someone, other, aKey); !errors.Is(err, shortener.ErrKeyReused) {
			t.Errorf("%s: got error %v, want ErrKeyReused", name, err)
		}
	}
	f.wantUsed(t, 3)
}

// What was refused was not done, so it is tried again as if it had never been sent.
func TestFailuresAreNotReplayed(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, row := range []struct {
		name string
		fail string // the spy's call that fails
		n    shortener.NewLink
		want error
	}{
		{"an invalid destination", "", shortener.NewLink{URL: "ftp://example.org/"}, shortener.ErrInvalidURL},
		{"a taken slug", "", shortener.NewLink{URL: "https://example.org/", Slug: "taken"}, shortener.ErrSlugTaken},
		{"the day's secret cannot be read", "find secret", shortener.NewLink{URL: "https://example.org/"}, shortener.ErrUnavailable},
		{"the answer cannot be read", "answer", shortener.NewLink{URL: "https://example.org/"}, shortener.ErrUnavailable},
		{"the day's secret cannot be made", "secret", shortener.NewLink{URL: "https://example.org/"}, shortener.ErrUnavailable},
		{"the counters cannot be read", "used", shortener.NewLink{URL: "https://example.org/"}, shortener.ErrUnavailable},
		{"the link cannot be written", "create", shortener.NewLink{URL: "https://example.org/"}, shortener.ErrUnavailable},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, standard)
			if _, err := f.create(shortener.NewLink{URL: "https://example.org/", Slug: "taken"}); err != nil {
				t.Fatal(err)
			}
			if row.fail != "" {
				f.store.fail[row.fail] = broken
			}
			for range 2 {
				if _, err := f.Create(t.Context(), someone, row.n, aKey); !errors.Is(err, row.want) {
					t.Errorf("got error %v, want %v", err, row.want)
				}
			}
			delete(f.store.fail, row.fail)
			f.wantUsed(t, 1)
			newTries(t, f, shortener.NewLink{URL: "https://example.org/"}).again("then")
			f.wantUsed(t, 2)
		})
	}
	t.Run("a full client", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, quota.Policy{Client: 1})
		if _, err := f.create(shortener.NewLink{URL: "https://example.org/"}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := f.Create(t.Context(), someone, shortener.NewLink{URL: "https://example.org/"}, aKey); !errors.Is(err, quota.ErrExceeded) {
				t.Errorf("got error %v, want a refusal", err)
			}
		}
		f.clock.set(f.clock.read().Add(12 * time.Hour))
		newTries(t, f, shortener.NewLink{URL: "https://example.org/"}).again("the next day")
	})
}

// damaging returns answers that somebody has changed.
type damaging struct{ shortener.Store }

func (s damaging) Answer(ctx context.Context, refs []shortener.AnswerRef) (shortener.Answer, error) {
	a, err := s.Store.Answer(ctx, refs)
	if len(a.Sealed) > 0 {
		a.Sealed[len(a.Sealed)/2] ^= 1
	}
	return a, err
}

func TestDamagedAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	newTries(t, f, shortener.NewLink{URL: "https://example.org/"})
	f.store.Store = damaging{f.store.Store}
	for range 2 {
		if _, err := f.Create(t.Context(), someone, shortener.NewLink{URL: "https://example.org/"}, aKey); !errors.Is(err, shortener.ErrUnavailable) {
			t.Errorf("got error %v, want ErrUnavailable", err)
		}
	}
	f.wantUsed(t, 1)
}

// Twenty tries at once make one link, and each of them is told of it.
func TestTriesAtOnce(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]quota.Policy{"one link": standard, "the last unit": {Client: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 {
				f := newFixture(t, policy)
				answers := make([]string, 20)
				var wg sync.WaitGroup
				for i := range answers {
					wg.Go(func() {
						made, err := f.Create(context.Background(), someone, shortener.NewLink{URL: "https://example.org/"}, aKey)
						if err != nil {
							t.Error(err)
						}
						answers[i] = answered(made)
					})
				}
				wg.Wait()
				for _, answer := range answers {
					if answer != answers[0] {
						t.Fatalf("one was told %s, and another %s", answers[0], answer)
					}
				}
				if links, _, err := f.store.Scan(t.Context(), "", 10); err != nil || len(links) != 1 {
					t.Fatalf("%d links, %v, want 1", len(links), err)
				}
			}
		})
	}
}

// overtaken lets another request pass where the first one looks at the counters.
type overtaken struct {
	shortener.Store
	once sync.Mutex
	pass func()
}

func (s *overtaken) Counts(ctx context.Context, counters []quota.Counter) ([]quota.Count, error) {
	if s.once.TryLock() { // and never unlocks
		s.pass()
	}
	return s.Store.Counts(ctx, counters)
}

// A try that is overtaken by another is told what that has made: where that has taken
// the last unit, and where midnight lies between them, whichever is decided first.
func TestOvertakenTries(t *testing.T) {
	t.Parallel()
	midnight := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	before, after := midnight.Add(-5*time.Second), midnight.Add(5*time.Second)
	for name, row := range map[string]struct {
		policy        quota.Policy
		first, second time.Time // the second passes the first
	}{
		"by one after midnight":            {standard, before, after},
		"by one before midnight":           {standard, after, before},
		"by one that takes the last unit":  {quota.Policy{Client: 1}, after, after},
		"by one that takes the whole room": {quota.Policy{Client: 1, Network: 1, Service: 1}, before, before},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, row.policy)
			n := shortener.NewLink{URL: "https://example.org/"}
			var passed shortener.Made
			f.store.Store = &overtaken{Store: f.store.Store, pass: func() {
				var err error
				f.clock.set(row.second)
				if passed, err = f.Create(context.Background(), someone, n, aKey); err != nil {
					t.Error(err)
				}
			}}
			f.clock.set(row.first)
			made, err := f.Create(t.Context(), someone, n, aKey)
			if err != nil || answered(made) != answered(passed) {
				t.Errorf("made %s, %v, want %s", answered(made), err, answered(passed))
			}
			if links, _, err := f.store.Scan(t.Context(), "", 10); err != nil || len(links) != 1 {
				t.Errorf("%d links, %v, want 1", len(links), err)
			}
		})
	}
}

// old is a store that has one secret for every day, and an answer that the program gave
// when it began to keep them.
type old struct {
	shortener.Store
	answer shortener.Answer
	made   *shortener.Creation
}

func (s old) Secret(context.Context, string) (quota.Secret, error) { return s.secret(), nil }

func (s old) EnsureSecret(context.Context, string) (quota.Secret, error) { return s.secret(), nil }

func (old) secret() (secret quota.Secret) {
	copy(secret[:], "the secret of 29 November 2026..")
	return secret
}

func (s old) Answer(context.Context, []shortener.AnswerRef) (shortener.Answer, error) {
	return s.answer, nil
}

func (s old) Create(_ context.Context, c shortener.Creation) error {
	*s.made = c
	return nil
}

// An answer takes the room of its links, also where their text is such that JSON could
// write it as escapes.
func TestAnswerTakesTheRoomOfItsLinks(t *testing.T) {
	t.Parallel()
	const destination = 8_000
	f := newFixture(t, standard)
	store := old{Store: f.store.Store, made: new(shortener.Creation)}
	f.store.Store = store
	f.store.fail["answer"] = shortener.ErrNotFound
	for _, char := range []string{"x", "&", "<", "é", "\u2028", `"`} {
		url := "https://example.org/" + strings.Repeat(char, destination/len(char)) + "x" // a blank at the end would be none of it
		if _, err := f.CreateBatch(t.Context(), someone, []shortener.NewLink{{URL: url}, {URL: url}}, aKey); err != nil {
			t.Fatalf("%q: %v", char, err)
		}
		if size := len(store.made.Answer.Sealed); size < 2*destination || size > 2*(2*destination+500) {
			t.Errorf("%q: two links of %d bytes are sealed in %d", char, destination, size)
		}
	}
}

// What an answer looks like and how it is found and sealed is a format: answers are
// read by the program that comes after an upgrade. They are of no use without the key.
func TestAnswerOfAnEarlierProgram(t *testing.T) {
	t.Parallel()
	const (
		id     = "a5bb105c41f787c15e633c7ea4bf540f"
		token  = "CLJOHLK3ZRZYHQI5JIUY4JNQ3S"
		sealed = "LVDVrSDgflaijWyzHALNQ34t9+lAv4VhZkR+5znOHxw0XFophfuu+ZjfUGRnURZeVwJAqNM1gwiRYk1EDNQ6xxhwmPgChWSJWWUPc+LYgmg89Mm0+tCZjeSjKpki3ty/cXyBpk7YimEL" +
			"Fu1LcA1ZYuwmpPDDu3b7eQjY+n2kboLLuzPqZoaxorK0hqzDOuwiiLz1Kd2R7B8p3LJmsCiAMhbUF1sB9QaOgBW4+KRTt3ObKj0dhUrEmqsFUi1gqDaDJtA9BDAPA6Hy6zf4Wu5/ZR2u" +
			"7LGRl02g4ipR/u+LwCvRkg6/FrdZ4WGT247m3cbulGFeiPw/Ba7piPOl9qHRrpHOhU/Yb9WSq7dt/RZmbPrP2cQE3Rj57lJLdvkR1mgV7JT4rs1kl1xjPShA3onQJ5dgV7K1TacXwg8b" +
			"CmAr3GQvV7yQphuFe24Y5x/wIT+nzIY1+IDqD/sKarQCHbWhYzxsskfjHP8hc3iLSZ3f58YXodoHK17Op2bSY2526Kw0vxWfKA8Ozr0mY4ADZUNeepdY"
	)
	idBytes, idErr := hex.DecodeString(id)
	sealedBytes, sealedErr := base64.StdEncoding.DecodeString(sealed)
	if err := errors.Join(idErr, sealedErr); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, standard)
	store := old{Store: f.store.Store, made: new(shortener.Creation)}
	store.answer = shortener.Answer{
		AnswerRef: shortener.AnswerRef{Day: "2026-11-29", ID: shortener.AnswerID(idBytes)}, At: f.clock.read(), Sealed: sealedBytes,
	}
	f.store.Store = store
	visits := int64(3)
	n := shortener.NewLink{URL: "https://example.org/", Slug: "kept", ExpiresAt: "2027-01-01T00:00:00Z", MaxVisits: &visits, ForwardQuery: true, ShowsTarget: true}
	want := shortener.Made{Token: token, Link: shortener.Link{
		Slug: "kept", Destination: "https://example.org/", CreatedAt: f.clock.read().Truncate(time.Microsecond), ExpiresAt: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		Day: "2026-11-29", MaxVisits: 3, ForwardQuery: true, ShowsTarget: true,
	}}
	if made, err := f.Create(t.Context(), someone, n, aKey); err != nil || made != want {
		t.Errorf("it opens as %+v, %v, want %+v", made, err, want)
	}
	if made, err := f.Create(t.Context(), someone, n, aKey+"x"); !errors.Is(err, shortener.ErrUnavailable) {
		t.Errorf("with another key it opens as %+v, %v", made, err)
	}
	// Today's program keeps its answer in the same place.
	f.store.fail["answer"] = shortener.ErrNotFound
	if _, err := f.Create(t.Context(), someone, n, aKey); err != nil || store.made.Answer.AnswerRef != store.answer.AnswerRef {
		t.Errorf("kept at %x, %v, want %x", store.made.Answer.AnswerRef, err, store.answer.AnswerRef)
	}
}
