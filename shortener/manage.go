package shortener

import (
	"context"
	"errors"

	"snip/quota"
)

// Managed is a link with what only its holder may know.
type Managed struct {
	Link    Link
	Visited int64 // visits counted of a link that has a limit of them
	Blocked bool  // whether its host is blocked: it leads nowhere
	Visits  Visits
}

// Holder is who may read, change and delete a link: whoever has its token, or the
// key that made it.
type Holder struct {
	Token  Token
	Key    quota.KeyID  // the zero id is none
	Client quota.Client // who asks, and pays for the check of a new destination
}

// holds reports whether the link is the holder's.
func (h Holder) holds(l Link) bool {
	return l.Token.matches(h.Token) || h.Key != 0 && l.Key == h.Key
}

// Changed is what a holder asks to change; nil leaves a field as it is.
type Changed struct {
	URL            *string
	ExpiresAt      *string // as in [NewLink]
	MaxVisits      *int64  // as in [NewLink]
	AnyVisits      bool    // lifts the limit of visits
	ForwardQuery   *bool
	ShowsTarget    *bool
	DirectRedirect *bool
}

// Link returns a link for anybody to look at. The errors are those of Follow.
func (s *Service) Link(ctx context.Context, slug Slug) (Link, error) {
	link, err := s.store.Get(ctx, slug)
	if err != nil {
		return Link{}, err
	}
	if link.TakenDown != "" || s.blocks(HostOf(link.Destination)) {
		return Link{}, ErrTakenDown
	}
	if link.Target().Ended(s.now()) {
		return Link{}, ErrGone
	}
	if link.MaxVisits > 0 {
		visited, err := s.store.Visited(ctx, slug)
		if err != nil {
			return Link{}, refusalOf(err)
		}
		if visited >= link.MaxVisits {
			return Link{}, ErrGone
		}
	}
	return link, nil
}

// Visits returns what has been stored of a link's visits, for anybody to look at.
func (s *Service) Visits(ctx context.Context, slug Slug) (Visits, error) {
	return s.store.Visits(ctx, slug)
}

// Manage returns the link to its holder. The errors are
// [ErrNotYours], [ErrGone] for one that was deleted, or the store's.
func (s *Service) Manage(ctx context.Context, slug Slug, who Holder) (Managed, error) {
	link, err := s.owned(ctx, slug, who)
	if err != nil {
		return Managed{}, err
	}
	return s.managed(ctx, link)
}

func (s *Service) managed(ctx context.Context, link Link) (m Managed, err error) {
	m.Link, m.Blocked = link, s.blocks(HostOf(link.Destination))
	if m.Visited, err = s.store.Visited(ctx, link.Slug); err != nil {
		return Managed{}, refusalOf(err)
	}
	if m.Visits, err = s.store.Visits(ctx, link.Slug); err != nil {
		return Managed{}, refusalOf(err)
	}
	return m, nil
}

// Change changes the link for its holder. A new destination passes
// every rule that a new link's does, and is refused with [ErrBlocked] to a client that
// may make none. The errors are those of Manage, an [*InvalidError], [ErrLocked],
// or, where a new destination is checked, [*quota.ExceededError]. No quota of links is charged and nothing given back.
func (s *Service) Change(ctx context.Context, slug Slug, who Holder, wanted Changed) (Managed, error) {
	before, err := s.owned(ctx, slug, who)
	if err != nil {
		return Managed{}, err
	}
	change, err := s.parseChange(wanted)
	if err != nil {
		return Managed{}, err
	}
	// What the store will refuse anyway is not paid for.
	if to := change.Destination; to != nil && *to != before.Destination && before.TakenDown == "" {
		if s.Limits(who.Client).Blocked {
			return Managed{}, ErrBlocked
		}
		if err := s.checkChange(ctx, *to, who.Client); err != nil {
			return Managed{}, err
		}
	}
	link, err := s.store.Change(ctx, slug, change)
	if err != nil {
		return Managed{}, unchanged(err)
	}
	return s.managed(ctx, link)
}

// checkChange is check for the new destination of a link that is there.
func (s *Service) checkChange(ctx context.Context, destination string, who quota.Client) error {
	if s.checker == nil {
		return nil
	}
	now := s.instant()
	day := quota.DayOf(now)
	secret, err := s.store.EnsureSecret(ctx, day.Label)
	if err != nil {
		return refusal(err)
	}
	limits, _ := s.set.Load().overrides.For(s.policy, who, now)
	err = s.check(ctx, []string{destination}, payer{who, day, secret, limits}, demandKey{})
	if found, ok := errors.AsType[*BatchError](err); ok {
		return found.Items[0].Err
	}
	return err
}

// Delete deletes the link for its holder: its slug leads nowhere from
// now on and is never given to anyone else. The errors are those of Manage, or [ErrLocked].
func (s *Service) Delete(ctx context.Context, slug Slug, who Holder) error {
	if _, err := s.owned(ctx, slug, who); err != nil {
		return err
	}
	return unchanged(s.store.Delete(ctx, slug))
}

// unchanged tells a holder why a link cannot be changed.
func unchanged(err error) error {
	if errors.Is(err, ErrTakenDown) {
		return ErrLocked
	}
	return refusalOf(err)
}

// owned returns the link if it is the holder's. An unknown slug takes the same way
// as a wrong token, as far as the store allows.
func (s *Service) owned(ctx context.Context, slug Slug, who Holder) (Link, error) {
	link, err := s.store.Get(ctx, slug)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Link{}, refusalOf(err)
	}
	switch mine := who.holds(link); {
	case !mine:
		return Link{}, ErrNotYours
	case link.Deleted:
		return Link{}, ErrGone
	}
	return link, nil
}

func (s *Service) parseChange(wanted Changed) (change Change, err error) {
	if wanted.URL != nil {
		destination, err := s.destination(*wanted.URL)
		if err != nil {
			return Change{}, err
		}
		change.Destination = &destination
	}
	if wanted.ExpiresAt != nil {
		expiresAt, err := parseExpiry(*wanted.ExpiresAt, s.instant())
		if err != nil {
			return Change{}, err
		}
		change.ExpiresAt = &expiresAt
	}
	if wanted.MaxVisits != nil || wanted.AnyVisits {
		maxVisits, err := parseMaxVisits(wanted.MaxVisits)
		if err != nil {
			return Change{}, err
		}
		change.MaxVisits = &maxVisits
	}
	change.ForwardQuery, change.ShowsTarget, change.DirectRedirect = wanted.ForwardQuery, wanted.ShowsTarget, wanted.DirectRedirect
	return change, nil
}

// refusalOf is refusal for errors that may be nil, or say that a link has ended.
func refusalOf(err error) error {
	if err == nil || errors.Is(err, ErrGone) || errors.Is(err, ErrNotFound) {
		return err
	}
	return refusal(err)
}
