package shortener_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"snip/shortener"
)

// The day is paid by making a link, and by nothing that is done to it later.
func TestManagingCostsNoQuota(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	made, err := f.Create(context.Background(), someone, shortener.NewLink{URL: "https://example.org/"}, "")
	link, token := made.Link, made.Token
	if err != nil {
		t.Fatal(err)
	}
	if link.Token != token.Hash() || link.Token == (shortener.TokenHash{}) {
		t.Errorf("the link keeps %x of the token %q", link.Token, token)
	}
	to := "example.net/b"
	changed, err := f.Change(t.Context(), link.Slug, shortener.Holder{Token: token}, shortener.Changed{URL: &to})
	if err != nil || changed.Link.Destination != "https://example.net/b" || changed.Link.CreatedAt != link.CreatedAt {
		t.Errorf("Change: %+v, %v", changed, err)
	}
	f.wantUsed(t, 1)
	if err := f.Delete(t.Context(), link.Slug, shortener.Holder{Token: token}); err != nil {
		t.Error(err)
	}
	f.wantUsed(t, 1)
	if _, err := f.Follow(t.Context(), link.Slug); !errors.Is(err, shortener.ErrGone) {
		t.Errorf("following what was deleted: %v", err)
	}
	if _, err := f.Link(t.Context(), link.Slug); !errors.Is(err, shortener.ErrGone) {
		t.Errorf("looking at what was deleted: %v", err)
	}
}

// Whoever may make no links may send none of theirs elsewhere either, which would be as
// good as a new one. Deleting, and whatever else is changed, harms nobody.
func TestBlockedClientsChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	made, err := f.Create(t.Context(), someone, shortener.NewLink{URL: "https://example.org/"}, "")
	if err != nil {
		t.Fatal(err)
	}
	holder := shortener.Holder{Token: made.Token, Client: someone}
	change := func(c shortener.Changed, want error) {
		t.Helper()
		if _, err := f.Change(t.Context(), made.Link.Slug, holder, c); !errors.Is(err, want) {
			t.Errorf("got the error %v, want %v", err, want)
		}
	}
	same, other, forward := "https://example.org/", "https://other.example/", true
	if _, err := f.PutOverride(t.Context(), shortener.Override{Target: someone.String(), Limit: 0}); err != nil {
		t.Fatal(err)
	}
	change(shortener.Changed{URL: &other}, shortener.ErrBlocked)
	change(shortener.Changed{URL: &other, ForwardQuery: &forward}, shortener.ErrBlocked)
	change(shortener.Changed{URL: &same, ForwardQuery: &forward}, nil)
	if link, err := f.Link(t.Context(), made.Link.Slug); err != nil || link.Destination != same || !link.ForwardQuery {
		t.Errorf("it is %+v, %v", link, err)
	}
	holder.Token = "another's"
	change(shortener.Changed{URL: &other}, shortener.ErrNotYours)
	holder.Token = made.Token
	if err := f.Delete(t.Context(), made.Link.Slug, holder); err != nil {
		t.Error(err)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	var links []shortener.Link
	var tokens []shortener.Token
	for range 2 {
		made, err := f.Create(context.Background(), someone, shortener.NewLink{URL: "https://example.org/"}, "")
		link, token := made.Link, made.Token
		if err != nil {
			t.Fatal(err)
		}
		links, tokens = append(links, link), append(tokens, token)
	}
	for _, row := range []struct {
		name  string
		slug  shortener.Slug
		token shortener.Token
		want  error
	}{
		{"its own", links[0].Slug, tokens[0], nil},
		{"another's", links[0].Slug, tokens[1], shortener.ErrNotYours},
		{"none", links[0].Slug, "", shortener.ErrNotYours},
		{"an unknown slug", "unknown", tokens[0], shortener.ErrNotYours},
		{"no slug", "", "", shortener.ErrNotYours},
	} {
		_, manageErr := f.Manage(t.Context(), row.slug, shortener.Holder{Token: row.token})
		_, changeErr := f.Change(t.Context(), row.slug, shortener.Holder{Token: row.token}, shortener.Changed{})
		for _, err := range []error{manageErr, changeErr} {
			if !errors.Is(err, row.want) {
				t.Errorf("%s: %v, want %v", row.name, err, row.want)
			}
		}
		if row.want != nil {
			if err := f.Delete(t.Context(), row.slug, shortener.Holder{Token: row.token}); !errors.Is(err, row.want) {
				t.Errorf("%s: Delete: %v, want %v", row.name, err, row.want)
			}
		}
	}
}

// A link without a token is nobody's, also not of whoever sends what hashes to
// nothing.
func TestLinkWithoutToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	link := shortener.Link{Slug: "untold", Destination: "https://example.org/", CreatedAt: f.clock.read()}
	if err := f.store.Create(t.Context(), shortener.Creation{Links: []shortener.Link{link}}); err != nil {
		t.Fatal(err)
	}
	for _, token := range []shortener.Token{"", "x", shortener.NewToken()} {
		if _, err := f.Manage(t.Context(), "untold", shortener.Holder{Token: token}); !errors.Is(err, shortener.ErrNotYours) {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

// An end that was changed takes effect on the next visit, to either side.
func TestChangedEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t, standard)
	made, err := f.Create(context.Background(), someone, shortener.NewLink{URL: "https://example.org/"}, "")
	link, token := made.Link, made.Token
	if err != nil {
		t.Fatal(err)
	}
	follow := func(want error) {
		t.Helper()
		if _, err := f.Follow(t.Context(), link.Slug); !errors.Is(err, want) {
			t.Errorf("a visit: %v, want %v", err, want)
		}
	}
	change := func(end string) {
		t.Helper()
		if _, err := f.Change(t.Context(), link.Slug, shortener.Holder{Token: token}, shortener.Changed{ExpiresAt: &end}); err != nil {
			t.Fatal(err)
		}
	}
	follow(nil)
	change(f.clock.read().Add(time.Minute).Format(time.RFC3339Nano))
	follow(nil)
	f.clock.set(f.clock.read().Add(time.Minute))
	follow(shortener.ErrGone)
	change("")
	follow(nil)
}
