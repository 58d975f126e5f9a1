package shortener

import (
	"cmp"
	"context"
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
	ID        quota.KeyID
	Name      string    // that no other key has; see [Service.CreateKey]
	Daily     int64     // links per UTC day, at least 1
	CreatedAt time.Time // UTC, in whole microseconds
	Hash      TokenHash // of the text that its holder shows
}

// Client returns who pays for what the key's holder makes.
func (k Key) Client() quota.Client {
	return quota.ClientOfKey(quota.Key{ID: k.ID, Limit: k.Daily})
}

// KeyPrefix begins the text of every key, and of no link's token.
const KeyPrefix = "snip_"

// MaxKeyName is the longest name of a key, in characters.
const MaxKeyName = 64

// Errors about keys, which only operators meet.
var (
	// ErrInvalidKey means that a key cannot have such a name or limit.
	ErrInvalidKey = errors.New("invalid key")
	// ErrKeyTaken means that a key has that name already.
	ErrKeyTaken = errors.New("a key of that name exists")
	// ErrNoKey means that no key has that name.
	ErrNoKey = errors.New("no key of that name")
)

// CreateKey makes a key and returns it with the text to give to its holder, which
// is kept nowhere. The name has 1 to 64 characters, all of them visible or a
// blank within, and daily is at least 1 and no more than the service's day leaves
// to any one client. The errors are [ErrInvalidKey], [ErrKeyTaken], or wrap
// [ErrUnavailable].
func (s *Service) CreateKey(ctx context.Context, name string, daily int64) (Key, Token, error) {
	if err := cmp.Or(checkKeyName(name), s.checkDaily(daily)); err != nil {
		return Key{}, "", err
	}
	token := Token(KeyPrefix) + NewToken()
	key := Key{ID: quota.NewKeyID(), Name: name, Daily: daily, CreatedAt: s.instant(), Hash: token.Hash()}
	if err := s.changeKeys(ctx, func() error { return s.store.CreateKey(ctx, key) }); err != nil {
		return Key{}, "", err
	}
	return key, token, nil
}

// ChangeKey gives a key another limit, at once and for the day that has begun. The
// errors are [ErrInvalidKey], [ErrNoKey], or wrap [ErrUnavailable].
func (s *Service) ChangeKey(ctx context.Context, name string, daily int64) (key Key, err error) {
	if err := s.checkDaily(daily); err != nil {
		return Key{}, err
	}
	err = s.changeKeys(ctx, func() error {
		key, err = s.store.ChangeKey(ctx, name, daily)
		return err
	})
	return key, err
}

// RevokeKey takes a key away from its holder, at once. The links that it made lead
// on. The errors are [ErrNoKey], or wrap [ErrUnavailable].
func (s *Service) RevokeKey(ctx context.Context, name string) error {
	return s.changeKeys(ctx, func() error { return s.store.DeleteKey(ctx, name) })
}

// Keys returns every key, in the order of their names.
func (s *Service) Keys(ctx context.Context) ([]Key, error) {
	keys, err := s.store.Keys(ctx)
	return keys, keyRefusal(err)
}

// LoadKeys reads the keys into memory, where [Service.FindKey] looks them up.
func (s *Service) LoadKeys(ctx context.Context) error {
	s.keysMu.Lock()
	defer s.keysMu.Unlock()
	return s.loadKeys(ctx)
}

// FindKey returns the key whose text that is. It does not touch the store.
func (s *Service) FindKey(text Token) (Key, bool) {
	key, ok := (*s.keys.Load())[text.Hash()]
	return key, ok
}

// changeKeys makes one change at a time and takes what has become of it into
// memory, also when its outcome is unknown.
func (s *Service) changeKeys(ctx context.Context, change func() error) error {
	s.keysMu.Lock()
	defer s.keysMu.Unlock()
	err := change()
	return keyRefusal(cmp.Or(err, s.loadKeys(context.WithoutCancel(ctx))))
}

func (s *Service) loadKeys(ctx context.Context) error {
	keys, err := s.store.Keys(ctx)
	if err != nil {
		return fmt.Errorf("load keys: %w", err)
	}
	byHash := make(map[TokenHash]Key, len(keys))
	for _, key := range keys {
		byHash[key.Hash] = key
	}
	s.keys.Store(&byHash)
	return nil
}

// keyRefusal is refusalOf for what only happens to keys.
func keyRefusal(err error) error {
	if errors.Is(err, ErrKeyTaken) || errors.Is(err, ErrNoKey) {
		return err
	}
	return refusalOf(err)
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
