package shortener

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"snip/quota"
)

// Key lets its holder make links as a client of its own, and manage those links.
// An operator makes it.
type Key struct {
	ID        quota.KeyID `json:"id"`
	Name      string      `json:"-"`          // that no other key has; see [Service.CreateKey]
	Daily     int64       `json:"daily"`      // links per UTC day, at least 1
	CreatedAt time.Time   `json:"created_at"` // UTC, in whole microseconds
	Hash      TokenHash   `json:"hash"`       // of the text that its holder shows
}

// Client returns who pays for what the key's holder makes.
func (k Key) Client() quota.Client {
	return quota.ClientOfKey(quota.Key{ID: k.ID, Limit: k.Daily})
}

// KeyPrefix begins the text of every key, and of no link's token.
const KeyPrefix = "snip_"

// MaxKeyName is the longest name of a key, in characters.
const MaxKeyName = 64

// ErrInvalidKey means that a key cannot have such a name or limit.
var ErrInvalidKey = errors.New("invalid key")

// CreateKey makes a key and returns it with the text to give to its holder, which
// is kept nowhere. The name has 1 to 64 characters, all of them visible or a
// blank within, and daily is at least 1 and no more than the service's day leaves
// to any one client. The errors are [ErrInvalidKey], [ErrEntryExists], or wrap
// [ErrUnavailable].
func (s *Service) CreateKey(ctx context.Context, name string, daily int64) (Key, Token, error) {
	if err := cmp.Or(checkKeyName(name), s.checkDaily(daily)); err != nil {
		return Key{}, "", err
	}
	token := Token(KeyPrefix) + NewToken()
	key := Key{ID: quota.NewKeyID(), Name: name, Daily: daily, CreatedAt: s.instant(), Hash: token.Hash()}
	added, err := key.entry(AddEntry)
	if err == nil {
		_, err = s.act(ctx, Act{Line: AuditLine{Action: "create key", Target: name}, Entries: []EntryChange{added}})
	}
	if err != nil {
		return Key{}, "", aboutKey(name, err)
	}
	return key, token, nil
}

// ChangeKey gives a key another limit, immediately and for the day that has begun. The id is
// that of the key which the operator has seen; 0 means the key that has the name now. The
// errors are [ErrInvalidKey], [ErrNoEntry], [ErrChanged], or wrap [ErrUnavailable].
func (s *Service) ChangeKey(ctx context.Context, name string, id quota.KeyID, daily int64) (Key, error) {
	if err := s.checkDaily(daily); err != nil {
		return Key{}, err
	}
	return s.onKey(ctx, AuditLine{Action: "change key", Target: name}, name, id, func(key *Key) ([]EntryChange, error) {
		key.Daily = daily
		replaced, err := key.entry(ReplaceEntry)
		return []EntryChange{replaced}, err
	})
}

// RevokeKey takes a key away from its holder, at once. The links that it made lead
// on. The id and the errors are those of [Service.ChangeKey], but for [ErrInvalidKey].
func (s *Service) RevokeKey(ctx context.Context, name string, id quota.KeyID) error {
	_, err := s.onKey(ctx, AuditLine{Action: "revoke key", Target: name}, name, id, func(*Key) ([]EntryChange, error) {
		return []EntryChange{
			{Entry{Kind: EntryKey, Name: name}, RemoveEntry},
			// Its override goes with it, or a new key of that name would have it.
			{Entry{Kind: EntryOverride, Name: keyTarget + name}, DropEntry},
		}, nil
	})
	return err
}

// onKey does an act on the key that has the name, and the id unless that is 0. Of that key
// others may change the rest meanwhile. When another key has the name, now or by then, the
// error is [ErrChanged]: the operator meant the first one.
func (s *Service) onKey(
	ctx context.Context, line AuditLine, name string, id quota.KeyID, change func(*Key) ([]EntryChange, error),
) (key Key, err error) {
	err = s.basedOn(ctx, EntryKey, name, func(e Entry) (Act, error) {
		if key, err = keyOf(e); err != nil {
			return Act{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if id == 0 {
			id = key.ID
		}
		if key.ID != id {
			return Act{}, ErrChanged
		}
		changes, err := change(&key)
		return Act{Line: line, Entries: changes}, err
	})
	return key, aboutKey(name, err)
}

// aboutKey says which key an error is about.
func aboutKey(name string, err error) error {
	for _, known := range []error{ErrEntryExists, ErrNoEntry, ErrChanged} {
		if errors.Is(err, known) {
			return fmt.Errorf("key %q %w", name, err)
		}
	}
	return err
}

// Keys returns every key, in the order of their names.
func (s *Service) Keys(ctx context.Context) ([]Key, error) {
	entries, err := s.store.Entries(ctx, EntryKey)
	if err != nil {
		return nil, refusalOf(err)
	}
	keys := make([]Key, len(entries))
	for i, e := range entries {
		if keys[i], err = keyOf(e); err != nil {
			return nil, fmt.Errorf("%w: key %q: %w", ErrUnavailable, e.Name, err)
		}
	}
	return keys, nil
}

func keyOf(e Entry) (Key, error) {
	key := Key{Name: e.Name}
	err := json.Unmarshal([]byte(e.Value), &key)
	return key, err
}

// FindKey returns the key whose text that is. It does not touch the store.
func (s *Service) FindKey(text Token) (Key, bool) {
	key, ok := s.set.Load().keys[text.Hash()]
	return key, ok
}

func (k Key) entry(verb EntryVerb) (EntryChange, error) {
	value, err := json.Marshal(k)
	return EntryChange{Entry{EntryKey, k.Name, string(value)}, verb}, err
}

func checkKeyName(name string) error {
	switch n := utf8.RuneCountInString(name); {
	case n == 0 || n > MaxKeyName:
		return fmt.Errorf("%w: name must have 1 to %d characters", ErrInvalidKey, MaxKeyName)
	case !utf8.ValidString(name), strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }):
		return fmt.Errorf("%w: name must be made of visible characters and blanks", ErrInvalidKey)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("%w: name must not begin or end with a blank", ErrInvalidKey)
	}
	return nil
}

func (s *Service) checkDaily(daily int64) error {
	most := s.policy.Service - s.policy.Newcomers
	switch {
	case daily < 1:
		return fmt.Errorf("%w: daily must be at least 1", ErrInvalidKey)
	case s.policy.Service > 0 && daily > most:
		return fmt.Errorf("%w: daily must be at most %d: that is the service's day of %d without the %d for newcomers",
			ErrInvalidKey, most, s.policy.Service, s.policy.Newcomers)
	}
	return nil
}

// PageOfLinks bounds how many links [Service.LinksOf] returns at once.
const PageOfLinks = 100

// LinksOf returns up to [PageOfLinks] links that the key has made, the newest
// first, beginning behind the link before where that is not empty. Deleted links
// are left out. The error is [ErrNotFound] when before is no link of the key's, or
// the store's.
func (s *Service) LinksOf(ctx context.Context, key quota.KeyID, before Slug) ([]Link, error) {
	links, err := s.store.LinksOf(ctx, key, before, PageOfLinks)
	return links, refusalOf(err)
}
