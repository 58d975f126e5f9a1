package shortener

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"snip/quota"
)

// ErrPresent means that a link which was to be imported is there already, the same
// in all but its visits.
var ErrPresent = errors.New("is there already")

// Export returns up to n links, with all that is kept of them, in an order of the
// store's own. The marks are those of [Store.Scan].
func (s *Service) Export(ctx context.Context, mark string, n int) (links []Managed, next string, err error) {
	links, next, err = s.store.Scan(ctx, mark, n)
	for i := range links {
		links[i].Blocked = s.blocks(HostOf(links[i].Link.Destination))
	}
	return links, next, refusalOf(err)
}

// Import stores links that were made before, here or elsewhere, as they are: they
// are charged to nobody and to no day. It says of each why it was not stored: an
// [*InvalidError] or [*ImportError] where a new link would be refused too, or where something of it
// could not be kept as it is; [ErrPresent], so that an import may be repeated; or
// [ErrSlugTaken]. The audit log has a line with the numbers, in the same commit, also
// where no link was stored; unreadable is how many were refused before. The other
// error is the store's, which has then stored none, or whatever it reports as there
// already the next time.
func (s *Service) Import(ctx context.Context, links []Managed, unreadable int) ([]error, error) {
	said := make([]error, len(links))
	for i, m := range links {
		said[i] = s.importable(m)
	}
	for {
		fresh, err := s.newcomers(ctx, links, said)
		if err != nil {
			return said, err
		}
		present := 0
		for _, err := range said {
			if errors.Is(err, ErrPresent) {
				present++
			}
		}
		note := fmt.Sprintf("present %d, refused %d", present, len(links)-len(fresh)-present+unreadable)
		_, err = s.act(ctx, Act{Line: AuditLine{Action: "import", Note: note}, Import: fresh})
		if !errors.Is(err, ErrSlugTaken) {
			return said, err
		}
		// Since the look somebody took one of these slugs: the next look finds it.
	}
}

// newcomers returns the links that are not there, and says of the others why they are
// left out.
func (s *Service) newcomers(ctx context.Context, links []Managed, said []error) (fresh []Managed, err error) {
	wanted := map[Slug]Link{} // of the fresh ones
	for i, m := range links {
		if said[i] != nil {
			continue
		}
		link := m.Link
		there, again := wanted[link.Slug]
		if !again {
			there, err = s.store.Get(ctx, link.Slug)
			if errors.Is(err, ErrNotFound) {
				wanted[link.Slug] = link
				fresh = append(fresh, m)
				continue
			}
			if err != nil {
				return nil, refusalOf(err)
			}
		}
		there.Day = "" // which pays for the link is not part of it
		if said[i] = ErrSlugTaken; there == link {
			said[i] = ErrPresent
		}
	}
	return fresh, nil
}

// importable returns why a link cannot be imported as it is.
func (s *Service) importable(m Managed) error {
	link := m.Link
	if link.Slug == "" {
		return invalidImport("slug", "is needed")
	}
	slug, ok := ParseSlug(string(link.Slug))
	if !ok {
		return invalidSlug(whyNoSlug(string(link.Slug)))
	}
	if s.slugs.namesOther(slug) { // other words are for the operator to give
		return invalidSlug(reservedSlug(slug))
	}
	if err := checkTimes(link); err != nil {
		return err
	}
	if link.Deleted {
		if link != link.Tombstone() || m.Visited != 0 || m.Visits.Any() {
			return invalidImport("deleted", "leaves nothing of a link but its slug, the time it was made, creator, key and token")
		}
		return nil
	}
	destination, err := s.destinations.Parse(link.Destination)
	if err != nil {
		return err
	}
	switch {
	case destination != link.Destination:
		return invalidImport("url", "would be changed: it needs a scheme, and no blanks around it")
	case link.MaxVisits < 0 || link.MaxVisits > MaxVisits:
		return invalidImport("max_visits", fmt.Sprintf("must be a whole number from 1 to %d", MaxVisits))
	case m.Visited < 0 || m.Visited > MaxVisits:
		return invalidImport("visits", fmt.Sprintf("must be a whole number from 0 to %d", MaxVisits))
	case len(link.TakenDown) > maxReason || strings.ContainsFunc(link.TakenDown, func(c rune) bool { return c <= ' ' || c > '~' }):
		return invalidImport("taken_down", fmt.Sprintf("must be a code of up to %d visible ASCII characters without blanks", maxReason))
	}
	return checkVisits(m.Visits)
}

// maxReason bounds the code of the reason for which a link was taken down.
const maxReason = 64

// ImportError says what is wrong with a link that is to be imported, in the words of
// operators.
type ImportError struct {
	Field  string // as an export calls it
	Reason string // what follows the field's name in a sentence
}

func (e *ImportError) Error() string { return e.Field + ": " + e.Reason }

func invalidImport(field, reason string) error { return &ImportError{field, reason} }

// checkTimes refuses times that no store could keep as they are.
func checkTimes(link Link) error {
	kept := func(t time.Time) bool {
		return t.Equal(t.Truncate(time.Microsecond)) && t.Unix() >= 0 && t.UTC().Year() <= 9999
	}
	switch {
	case !kept(link.CreatedAt):
		return invalidImport("created_at", "must lie between 1970 and 9999, in whole microseconds")
	case link.ExpiresAt.IsZero():
		return nil
	case !kept(link.ExpiresAt) || !link.ExpiresAt.After(link.CreatedAt):
		return invalidImport("expires_at", "must lie after created_at and before the year 10000, in whole microseconds")
	}
	return nil
}

// checkVisits refuses statistics that [Visits.Add] would cut down.
func checkVisits(v Visits) error {
	hosts := len(v.Referrers)
	if _, ok := v.Referrers[OtherReferrers]; ok {
		hosts--
	}
	if len(v.Days) > VisitDays || hosts > VisitReferrers {
		return invalidImport("statistics", fmt.Sprintf("can hold %d days and %d referrers", VisitDays, VisitReferrers))
	}
	for day, n := range v.Days {
		if _, err := quota.DayBefore(day); err != nil || n < 1 {
			return invalidImport("statistics", "need days such as 2026-11-29, and at least 1 visit of each")
		}
	}
	for host, n := range v.Referrers {
		if host == "" || n < 1 {
			return invalidImport("statistics", "need the hosts of referrers, and at least 1 visit from each")
		}
	}
	for _, n := range v.Kinds {
		if n < 0 {
			return invalidImport("statistics", "cannot be negative")
		}
	}
	return nil
}

// Any reports whether there are any visits.
func (v *Visits) Any() bool {
	return v.Kinds != [visitors]int64{} || len(v.Days) > 0 || len(v.Referrers) > 0
}
