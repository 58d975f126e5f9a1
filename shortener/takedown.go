package shortener

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Reasons are the codes of why a link may be taken down.
var Reasons = []string{"abuse", "legal", "malware", "phishing", "spam", "other"}

// Selection says which links an operator means: one of its fields is set, or none
// for all of them.
type Selection struct {
	Slug      Slug
	Host      string // of the destination, and its subdomains
	CreatorOf Slug   // what the maker of this link made on the same day
}

// ErrInvalidSelection means that a selection or a reason cannot be meant.
var ErrInvalidSelection = errors.New("invalid selection")

// String is the selection in the audit log.
func (s Selection) String() string {
	switch {
	case s.Slug != "":
		return string(s.Slug)
	case s.Host != "":
		return "host " + s.Host
	case s.CreatorOf != "":
		return "creator of " + string(s.CreatorOf)
	}
	return "all"
}

// selector returns what tells whether a link is meant.
func (s *Service) selector(ctx context.Context, sel Selection) (func(Link) bool, error) {
	set := 0
	for _, field := range []string{string(sel.Slug), sel.Host, string(sel.CreatorOf)} {
		if field != "" {
			set++
		}
	}
	switch {
	case set > 1:
		return nil, fmt.Errorf("%w: a slug, a host or a creator is meant, one of them", ErrInvalidSelection)
	case sel.Host != "":
		name, err := canonicalHost(sel.Host)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalidSelection, err)
		}
		if !strings.ContainsAny(name, ".:") {
			return nil, fmt.Errorf("%w: %q would mean every host that ends in it", ErrInvalidSelection, name)
		}
		return func(l Link) bool {
			host := HostOf(l.Destination)
			return host == name || strings.HasSuffix(host, "."+name)
		}, nil
	case sel.CreatorOf != "":
		link, err := s.store.Get(ctx, sel.CreatorOf)
		if err != nil {
			return nil, fmt.Errorf("link %s: %w", sel.CreatorOf, err)
		}
		if link.Creator == "" {
			return nil, fmt.Errorf("%w: nobody knows any more who made %s", ErrInvalidSelection, sel.CreatorOf)
		}
		return func(l Link) bool { return l.Creator == link.Creator && l.Day == link.Day }, nil
	}
	return func(Link) bool { return true }, nil
}

// scanned is how many links are looked at in one transaction.
const scanned = 1000

// Select calls use with the links that are meant, in an order of the store's own,
// until it returns false. Tombstones are left out.
func (s *Service) Select(ctx context.Context, sel Selection, use func(Link) bool) error {
	if sel.Slug != "" && sel.Host == "" && sel.CreatorOf == "" {
		link, err := s.store.Get(ctx, sel.Slug)
		if err != nil {
			return fmt.Errorf("link %s: %w", sel.Slug, err)
		}
		if link.Deleted {
			return fmt.Errorf("link %s: %w", sel.Slug, ErrGone)
		}
		use(link)
		return nil
	}
	meant, err := s.selector(ctx, sel)
	if err != nil {
		return err
	}
	for mark := ""; ; {
		links, next, err := s.store.Scan(ctx, mark, scanned)
		if err != nil {
			return refusalOf(err)
		}
		for _, m := range links {
			if !m.Link.Deleted && meant(m.Link) && !use(m.Link) {
				return nil
			}
		}
		if next == "" {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		mark = next
	}
}

// TakeDown makes the links that are meant lead nowhere, with a reason of
// [Reasons], and returns how many. Nobody but an operator can bring them back. The
// errors are [ErrInvalidSelection], [ErrNotFound], [ErrGone], or wrap
// [ErrUnavailable]; some of the links may be taken down then.
func (s *Service) TakeDown(ctx context.Context, sel Selection, reason, note string) (int, error) {
	if !slices.Contains(Reasons, reason) {
		return 0, fmt.Errorf("%w: reason must be one of %s", ErrInvalidSelection, strings.Join(Reasons, ", "))
	}
	return s.setTakenDown(ctx, sel, "disable", reason, note)
}

// BringBack makes links that were taken down lead on. The results are those of
// TakeDown.
func (s *Service) BringBack(ctx context.Context, sel Selection, note string) (int, error) {
	return s.setTakenDown(ctx, sel, "enable", "", note)
}

func (s *Service) setTakenDown(ctx context.Context, sel Selection, action, reason, note string) (done int, err error) {
	if sel == (Selection{}) {
		return 0, fmt.Errorf("%w: a slug, a host or a creator is needed", ErrInvalidSelection)
	}
	selected, err := s.selector(ctx, sel)
	if err != nil {
		return 0, err
	}
	meant := func(l Link) bool { return l.TakenDown != reason && selected(l) }
	var slugs []Slug
	flush := func() error {
		if len(slugs) == 0 {
			return nil
		}
		line := AuditLine{Action: action, Target: sel.String(), Reason: reason, Note: note}
		acted, err := s.act(ctx, Act{Line: line, Links: slugs, Meant: meant, Reason: reason})
		done += acted.Links
		slugs = slugs[:0]
		return err
	}
	var failed error
	err = s.Select(ctx, sel, func(l Link) bool {
		if meant(l) {
			slugs = append(slugs, l.Slug)
		}
		if len(slugs) == scanned {
			failed = flush()
		}
		return failed == nil
	})
	if err = errors.Join(err, failed); err == nil {
		err = flush()
	}
	return done, err
}

// Remove deletes a link as its holder could, whether it is taken down or not. The
// errors are [ErrInvalidSelection], [ErrNotFound], [ErrGone], or wrap [ErrUnavailable].
func (s *Service) Remove(ctx context.Context, slug Slug, note string) error {
	if _, err := s.selectOne(ctx, slug); err != nil {
		return err
	}
	line := AuditLine{Action: "delete", Target: string(slug), Note: note}
	done, err := s.act(ctx, Act{Line: line, Links: []Slug{slug}, Delete: true})
	if err == nil && done.Links == 0 { // somebody else was first
		err = fmt.Errorf("link %s: %w", slug, ErrGone)
	}
	return err
}

// Show returns a link to an operator, as its holder sees it. The errors are those
// of Remove.
func (s *Service) Show(ctx context.Context, slug Slug) (m Managed, err error) {
	link, err := s.selectOne(ctx, slug)
	if err != nil {
		return Managed{}, err
	}
	return s.managed(ctx, link)
}

// selectOne returns the link of a slug. An empty slug, which in a [Selection] stands
// for every link, is an error here.
func (s *Service) selectOne(ctx context.Context, slug Slug) (link Link, err error) {
	if slug == "" {
		return Link{}, fmt.Errorf("%w: a slug is needed", ErrInvalidSelection)
	}
	err = s.Select(ctx, Selection{Slug: slug}, func(l Link) bool {
		link = l
		return true
	})
	return link, err
}
