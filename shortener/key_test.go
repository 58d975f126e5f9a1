package shortener_test

import (
	"errors"
	"strings"
	"testing"

	"snip/quota"
	"snip/shortener"
)

// makeKey makes a key that the test knows to be valid.
func (f fixture) makeKey(t *testing.T, name string, daily int64) (shortener.Key, shortener.Token) {
	t.Helper()
	key, text, err := f.CreateKey(t.Context(), name, daily)
	if err != nil {
		t.Fatal(err)
	}
	return key, text
}

// A key is a client of its own, whose limit follows the operator at once.
func TestKeyIsAClient(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	_, text := f.makeKey(t, "newsletter", 3)
	creates := func(want int64) {
		t.Helper()
		var made int64
		for {
			key, ok := f.FindKey(text)
			if !ok {
				t.Fatal("the key is not known")
			}
			one, err := f.Create(t.Context(), key.Client(), shortener.NewLink{URL: "https://example.org/"}, "")
			var exceeded *quota.ExceededError
			switch {
			case errors.As(err, &exceeded) && exceeded.Usage.Level == quota.LevelClient && exceeded.Usage.Max == key.Daily:
				if made != want {
					t.Errorf("%d links were made, want %d", made, want)
				}
				return
			case err != nil:
				t.Fatal(err)
			case one.Link.Key != key.ID:
				t.Errorf("the link was made by %s, not %s", one.Link.Key, key.ID)
			}
			made++
		}
	}
	creates(3)
	if _, err := f.create(shortener.NewLink{URL: "https://example.org/"}); err != nil {
		t.Errorf("an address beside a full key: %v", err)
	}
	f.wantUsed(t, 1)
	for _, row := range []struct{ daily, more int64 }{{5, 2}, {2, 0}, {6, 1}} {
		if key, err := f.ChangeKey(t.Context(), "newsletter", 0, row.daily); err != nil || key.Daily != row.daily {
			t.Fatalf("%+v, %v", key, err)
		}
		creates(row.more)
	}
	f.clock.set(f.clock.read().AddDate(0, 0, 1))
	creates(6)
}

// What a key has made is its holder's, also without the links' tokens, until the
// key is revoked.
func TestKeyHoldsItsLinks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	script, text := f.makeKey(t, "script", 50)
	other, _ := f.makeKey(t, "other", 50)
	made, err := f.Create(t.Context(), script.Client(), shortener.NewLink{URL: "https://example.org/"}, "")
	link, token := made.Link, made.Token
	if err != nil {
		t.Fatal(err)
	}
	anybody, err := f.Create(t.Context(), someone, shortener.NewLink{URL: "https://example.org/"}, "")
	plain := anybody.Link
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		slug shortener.Slug
		who  shortener.Holder
		want error
	}{
		{"the key", link.Slug, shortener.Holder{Key: script.ID}, nil},
		{"the token", link.Slug, shortener.Holder{Token: token}, nil},
		{"another key", link.Slug, shortener.Holder{Key: other.ID}, shortener.ErrNotYours},
		{"no key", link.Slug, shortener.Holder{}, shortener.ErrNotYours},
		{"no key, and a link without", plain.Slug, shortener.Holder{}, shortener.ErrNotYours},
		{"a key, and a link without", plain.Slug, shortener.Holder{Key: script.ID}, shortener.ErrNotYours},
	} {
		if _, err := f.Manage(t.Context(), row.slug, row.who); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.name, err, row.want)
		}
	}
	if links, err := f.LinksOf(t.Context(), script.ID, ""); err != nil || len(links) != 1 || links[0] != link {
		t.Errorf("its links are %v, %v", links, err)
	}
	if err := f.RevokeKey(t.Context(), "script", 0); err != nil {
		t.Fatal(err)
	}
	if key, ok := f.FindKey(text); ok {
		t.Errorf("revoked, and still known: %+v", key)
	}
	if _, err := f.Manage(t.Context(), link.Slug, shortener.Holder{Token: token}); err != nil {
		t.Errorf("its links' tokens: %v", err)
	}
	if err := f.Delete(t.Context(), link.Slug, shortener.Holder{Token: token}); err != nil {
		t.Error(err)
	}
}

func TestKeyIsKeptAsAHash(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	key, text := f.makeKey(t, "script", 50)
	if !strings.HasPrefix(string(text), shortener.KeyPrefix) || len(text) < len(shortener.KeyPrefix)+26 || key.Hash != text.Hash() {
		t.Errorf("the key %q is kept as %x", text, key.Hash)
	}
	again := newService(f, standard)
	if _, ok := again.FindKey(text); ok {
		t.Error("a key is known before the keys are read")
	}
	if err := again.LoadOperatorSet(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, ok := again.FindKey(text); !ok || found != key {
		t.Errorf("after a restart it is %+v", found)
	}
	for _, wrong := range []shortener.Token{"", shortener.KeyPrefix, text[:len(text)-1], text + "A", shortener.Token(key.Name)} {
		if found, ok := again.FindKey(wrong); ok {
			t.Errorf("%q is taken for %+v", wrong, found)
		}
	}
}

func TestKeyRules(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	for _, row := range []struct {
		name  string
		daily int64
		says  string // empty is no fault
	}{
		{"a", 1, ""},
		{"Größe 名前 1-2_3.4", 900, ""},
		{strings.Repeat("ö", 64), 500, ""},
		{"", 500, "name must have 1 to 64 characters"},
		{strings.Repeat("ö", 65), 500, "name must have 1 to 64 characters"},
		{" a", 500, "blank"},
		{"a ", 500, "blank"},
		{"a\nb", 500, "visible"},
		{"a\u202eb", 500, "visible"},
		{"a\xffb", 500, "visible"},
		{"zero", 0, "at least 1"},
		{"negative", -1, "at least 1"},
		{"more than is left", 901, "at most 900"},
	} {
		_, _, err := f.CreateKey(t.Context(), row.name, row.daily)
		if row.says == "" && err != nil || row.says != "" && (!errors.Is(err, shortener.ErrInvalidKey) || !strings.Contains(err.Error(), row.says)) {
			t.Errorf("%q with %d a day: %v, want %q", row.name, row.daily, err, row.says)
		}
	}
	if _, err := f.ChangeKey(t.Context(), "a", 0, 901); !errors.Is(err, shortener.ErrInvalidKey) {
		t.Errorf("changed to more than is left: %v", err)
	}
	if _, err := f.ChangeKey(t.Context(), "unknown", 0, 1); !errors.Is(err, shortener.ErrNoEntry) {
		t.Errorf("changing what is not there: %v", err)
	}
	if err := f.RevokeKey(t.Context(), "unknown", 0); !errors.Is(err, shortener.ErrNoEntry) {
		t.Errorf("revoking what is not there: %v", err)
	}
	if _, _, err := f.CreateKey(t.Context(), "a", 1); !errors.Is(err, shortener.ErrEntryExists) {
		t.Errorf("a name that is taken: %v", err)
	}
	if _, _, err := newService(f, quota.Policy{Client: 50}).CreateKey(t.Context(), "unbounded", 1<<40); err != nil {
		t.Errorf("where the service has no limit: %v", err)
	}
	f.store.fail["act"] = errors.New("disk on fire")
	if _, _, err := f.CreateKey(t.Context(), "new", 1); !errors.Is(err, shortener.ErrUnavailable) {
		t.Errorf("a store that fails: %v", err)
	}
}
