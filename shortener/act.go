package shortener

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"snip/quota"
)

// operatorSet is what operators have set, in memory: the way of a request does not
// touch the store for it.
type operatorSet struct {
	keys      map[TokenHash]Key // by the hash of their text
	overrides quota.Overrides
	blocked   blockedHosts

	last uint64 // act in it, as the audit log numbers them

	// refused begins anew with each act: it may have raised a limit.
	refused *quota.Refusals
}

// LoadOperatorSet reads what operators have set into memory.
func (s *Service) LoadOperatorSet(ctx context.Context) error {
	s.acting.Lock()
	defer s.acting.Unlock()
	return s.loadOperatorSet(ctx)
}

// RenewOperatorSet does the same when something was done since it was read, which
// where other programs share the store may have been by them.
func (s *Service) RenewOperatorSet(ctx context.Context) error {
	s.acting.Lock()
	defer s.acting.Unlock()
	last, err := s.lastAct(ctx)
	if err != nil || last == s.set.Load().last {
		return err
	}
	return s.loadOperatorSet(ctx)
}

// lastAct returns the number of the latest line of the audit log, in which every act
// has one.
func (s *Service) lastAct(ctx context.Context) (uint64, error) {
	lines, err := s.store.Audit(ctx, 0, 1)
	if err != nil || len(lines) == 0 {
		return 0, err
	}
	return lines[0].Number, nil
}

func (s *Service) loadOperatorSet(ctx context.Context) error {
	last, err := s.lastAct(ctx) // before the rest, which may be newer
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	keys, err := s.Keys(ctx)
	if err != nil {
		return fmt.Errorf("read the keys: %w", err)
	}
	overrides, err := s.Overrides(ctx)
	if err != nil {
		return fmt.Errorf("read the overrides: %w", err)
	}
	blocks, err := s.Blocks(ctx)
	if err != nil {
		return fmt.Errorf("read the blocks: %w", err)
	}
	set := operatorSet{
		last:      last,
		keys:      make(map[TokenHash]Key, len(keys)),
		overrides: make(quota.Overrides, len(overrides)),
		blocked:   make(blockedHosts, len(blocks)),
		refused:   quota.NewRefusals(),
	}
	for _, b := range blocks {
		set.blocked[b.Host] = true
	}
	byName := make(map[string]quota.KeyID, len(keys))
	for _, key := range keys {
		set.keys[key.Hash] = key
		byName[key.Name] = key.ID
	}
	for _, o := range overrides {
		scope, err := storedTarget(o.Target, byName)
		if errors.Is(err, ErrNoEntry) {
			continue // its key was revoked
		}
		if err != nil {
			return fmt.Errorf("%w: override of %s: %w", ErrUnavailable, o.Target, err)
		}
		set.overrides[scope] = quota.Override{Limit: o.Limit, Until: o.Until}
	}
	s.set.Store(&set)
	return nil
}

// maxNote bounds what operators write down for each other, in characters: it stays
// in the audit log for good.
const maxNote = 500

// act does one act at a time and takes what has become of entries into memory, also
// when its outcome is unknown.
func (s *Service) act(ctx context.Context, a Act) (Done, error) {
	s.acting.Lock()
	defer s.acting.Unlock()
	note := a.Line.Note
	if utf8.RuneCountInString(note) > maxNote || !utf8.ValidString(note) || strings.ContainsFunc(note, unicode.IsControl) {
		return Done{}, fmt.Errorf("%w: a note must have at most %d characters, in UTF-8, and be one line",
			ErrInvalidSelection, maxNote)
	}
	a.Line.At = s.instant()
	done, err := s.store.Act(ctx, a)
	if len(a.Entries) > 0 || a.AcceptClock != "" { // others change nothing that is kept in memory
		err = cmp.Or(err, s.loadOperatorSet(context.WithoutCancel(ctx)))
	}
	for _, known := range []error{ErrEntryExists, ErrNoEntry, ErrChanged} {
		if errors.Is(err, known) {
			return Done{}, err
		}
	}
	return done, refusalOf(err)
}

// Record writes a line into the audit log about what changes nothing, such as an export.
func (s *Service) Record(ctx context.Context, action, target string) error {
	_, err := s.act(ctx, Act{Line: AuditLine{Action: action, Target: target}})
	return err
}

// Audit returns up to n lines of the log of what operators did, the latest first,
// beginning behind the line with the number before where that is not 0.
func (s *Service) Audit(ctx context.Context, before uint64, n int) ([]AuditLine, error) {
	lines, err := s.store.Audit(ctx, before, n)
	return lines, refusalOf(err)
}

// AcceptClock makes links be counted again when the clock is right and later days
// were counted by one that was wrong. It returns the newest of those days, or "" when
// the clock needed no such word.
func (s *Service) AcceptClock(ctx context.Context) (forgotten string, err error) {
	day := quota.DayOf(s.instant()).Label
	done, err := s.act(ctx, Act{Line: AuditLine{Action: "accept clock", Target: day}, AcceptClock: day})
	return done.Forgotten, err
}

// basedOn does an act that is based on an entry, again when the entry was changed
// meanwhile: act returns what is to be done in view of the entry as it is now, or why
// that is no longer what the operator means.
func (s *Service) basedOn(ctx context.Context, kind EntryKind, name string, act func(Entry) (Act, error)) error {
	for try := 1; ; try++ {
		entries, err := s.store.Entries(ctx, kind)
		if err != nil {
			return refusalOf(err)
		}
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
		if i < 0 {
			return ErrNoEntry
		}
		a, err := act(entries[i])
		if err != nil {
			return err
		}
		a.If = append(a.If, entries[i])
		if _, err = s.act(ctx, a); !errors.Is(err, ErrChanged) || try == triesOfAct {
			return err
		}
	}
}

// triesOfAct bounds how often an act is tried while others change what it is based on.
const triesOfAct = 5
