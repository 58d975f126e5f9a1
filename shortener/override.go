package shortener

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"snip/quota"
)

// Override is what an operator has set for one client or network in place of the
// policy's limit.
type Override struct {
	// Target is whom it is about, as [ParseTarget] writes it.
	Target string `json:"-"`

	Limit int64     `json:"limit"`           // links per UTC day; 0 is none, and [quota.Unlimited] any number
	Until time.Time `json:"until,omitzero"`  // when it ends; the zero time is never
	Note  string    `json:"note,omitempty"`  // for other operators
	SetAt time.Time `json:"set_at,omitzero"` // UTC
}

// keyTarget begins the target of an override that is about a key.
const keyTarget = "key "

// ErrInvalidOverride means that an override cannot be meant.
var ErrInvalidOverride = errors.New("invalid override")

// PutOverride sets an override in place of the one of the same target, at once.
// The target is an address, a network, or "key" and a key's name. The errors are
// [ErrInvalidOverride], [ErrNoEntry] for a key that is not there, [ErrChanged] for one
// that was replaced meanwhile, or wrap [ErrUnavailable].
func (s *Service) PutOverride(ctx context.Context, o Override) (Override, error) {
	target, err := s.canonicalTarget(ctx, o.Target)
	if err != nil {
		return Override{}, err
	}
	o.Target, o.SetAt = target, s.instant()
	o.Until = o.Until.UTC().Truncate(time.Microsecond) // as every instant that it is compared with
	switch {
	case o.Limit < 0:
		return Override{}, fmt.Errorf("%w: limit must be at least 0", ErrInvalidOverride)
	case !o.Until.IsZero() && !o.Until.After(o.SetAt):
		return Override{}, fmt.Errorf("%w: its end must lie in the future", ErrInvalidOverride)
	}
	value, err := json.Marshal(o)
	if err != nil {
		return Override{}, err
	}
	line := AuditLine{Action: "set override", Target: o.Target, Note: o.text()}
	changes := []EntryChange{{Entry{EntryOverride, o.Target, string(value)}, PutEntry}}
	if name, ok := strings.CutPrefix(o.Target, keyTarget); ok {
		// Of a key that is revoked meanwhile it would be left for a new one of that name.
		_, err = s.onKey(ctx, line, name, 0, func(*Key) ([]EntryChange, error) { return changes, nil })
	} else {
		_, err = s.act(ctx, Act{Line: line, Entries: changes})
	}
	return o, err
}

// text is the override in the audit log.
func (o Override) text() string {
	text := fmt.Sprintf("limit %d", o.Limit)
	switch o.Limit {
	case 0:
		text = "block"
	case quota.Unlimited:
		text = "unlimited"
	}
	if !o.Until.IsZero() {
		text += " until " + o.Until.Format(time.RFC3339)
	}
	if o.Note != "" {
		text += ": " + o.Note
	}
	return text
}

// RemoveOverride makes the policy's limit hold again, at once. The errors are
// [ErrInvalidOverride], [ErrNoEntry], or wrap [ErrUnavailable].
func (s *Service) RemoveOverride(ctx context.Context, target string) error {
	entries, err := s.store.Entries(ctx, EntryOverride)
	if err != nil {
		return refusalOf(err)
	}
	// A target as it is listed may be one that is refused by now: its key is gone, or it
	// no longer stands for one client.
	name := target
	if !slices.ContainsFunc(entries, func(e Entry) bool { return e.Name == target }) {
		if name, err = s.canonicalTarget(ctx, target); err != nil {
			return err
		}
	}
	_, err = s.act(ctx, Act{
		Line:    AuditLine{Action: "remove override", Target: name},
		Entries: []EntryChange{{Entry{Kind: EntryOverride, Name: name}, RemoveEntry}},
	})
	if errors.Is(err, ErrNoEntry) {
		return fmt.Errorf("override of %s %w", name, err)
	}
	return err
}

// Overrides returns every override, those that have ended too, in the order of
// their targets.
func (s *Service) Overrides(ctx context.Context) ([]Override, error) {
	entries, err := s.store.Entries(ctx, EntryOverride)
	if err != nil {
		return nil, refusalOf(err)
	}
	overrides := make([]Override, len(entries))
	for i, e := range entries {
		if overrides[i], err = overrideOf(e); err != nil {
			return nil, fmt.Errorf("%w: override of %s: %w", ErrUnavailable, e.Name, err)
		}
	}
	return overrides, nil
}

func overrideOf(e Entry) (o Override, err error) {
	err = json.Unmarshal([]byte(e.Value), &o)
	o.Target = e.Name
	return o, err
}

// canonicalTarget returns the one spelling of a target.
func (s *Service) canonicalTarget(ctx context.Context, text string) (string, error) {
	keys, err := s.Keys(ctx)
	if err != nil {
		return "", err
	}
	byName := make(map[string]quota.KeyID, len(keys))
	for _, key := range keys {
		byName[key.Name] = key.ID
	}
	scope, err := parseTarget(text, byName, s.nat64)
	switch {
	case errors.Is(err, ErrNoEntry):
		return "", err
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrInvalidOverride, err)
	case scope.Key != 0:
		return text, nil
	}
	return scope.Prefix.String(), nil
}

// parseTarget reads an address, a network, or "key" and a key's name.
func parseTarget(text string, keys map[string]quota.KeyID, nat64 quota.NAT64) (quota.Scope, error) {
	if strings.HasPrefix(text, keyTarget) {
		return storedTarget(text, keys)
	}
	return nat64.ParseScope(text)
}

// storedTarget reads a target in its one spelling. It does not judge a prefix again:
// what stands for a client may have changed since, and then nobody is limited by it.
func storedTarget(text string, keys map[string]quota.KeyID) (quota.Scope, error) {
	if name, ok := strings.CutPrefix(text, keyTarget); ok {
		id := keys[name]
		if id == 0 {
			return quota.Scope{}, fmt.Errorf("key %q %w", name, ErrNoEntry)
		}
		return quota.Scope{Key: id}, nil
	}
	p, err := netip.ParsePrefix(text)
	return quota.Scope{Prefix: p}, err
}
