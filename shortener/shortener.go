// Package shortener is what a link is and what may be done with it.
//
// It promises that a link exists if and only if its maker had quota for it: the
// link and the counters that allow it are one durable commit of a [Store], and
// whatever a store cannot count ends in a refusal. It knows no HTTP and no
// database; memstore is the shortest correct store, boltstore the durable one,
// and storetest the contract that each of them passes.
//
// Start with [Service.Create] and the contract in [Store].
package shortener

import (
	"errors"
	"fmt"
	"time"

	"snip/quota"
)

// Link leads from a slug to a destination.
type Link struct {
	Slug        Slug
	Destination string    // byte for byte as its maker gave it, but for outer white space and a missing scheme
	CreatedAt   time.Time // UTC, in whole microseconds
	ExpiresAt   time.Time // UTC, in whole microseconds; the zero time is never
	Day         string    // the UTC day whose counters paid for it, such as "2026-11-29"
	Creator     quota.Subject
	Key         quota.KeyID // of the key that made it; the zero id is none

	MaxVisits    int64 // how many visits are redirected; 0 is any number
	ForwardQuery bool  // whether a visitor's query is handed on
	ShowsTarget  bool  // whether anybody may see where it leads although it has MaxVisits
	// DirectRedirect is whether following the link is a visit, although it has MaxVisits.
	// Without it a visitor first says so, since programs follow links as well.
	DirectRedirect bool      `json:",omitzero"`
	Token          TokenHash // of the token that manages it; the zero hash is none
	TakenDown      string    // the reason's code, when an operator took it down; it leads nowhere and cannot be changed
	Deleted        bool      // what is left is a tombstone: the slug stays taken and leads nowhere
}

// Target returns what a visit needs of the link.
func (l Link) Target() Target {
	return Target{
		Destination:    Location(l.Destination),
		Host:           HostOf(l.Destination),
		ExpiresAt:      l.ExpiresAt,
		ForwardQuery:   l.ForwardQuery,
		Limited:        l.MaxVisits > 0,
		DirectRedirect: l.DirectRedirect,
		TakenDown:      l.TakenDown != "",
		Deleted:        l.Deleted,
	}
}

// Change returns the link with what the change sets.
func (l Link) Change(c Change) Link {
	if c.Destination != nil {
		l.Destination = *c.Destination
	}
	if c.ExpiresAt != nil {
		l.ExpiresAt = *c.ExpiresAt
	}
	if c.MaxVisits != nil {
		l.MaxVisits = *c.MaxVisits
	}
	if c.ForwardQuery != nil {
		l.ForwardQuery = *c.ForwardQuery
	}
	if c.ShowsTarget != nil {
		l.ShowsTarget = *c.ShowsTarget
	}
	if c.DirectRedirect != nil {
		l.DirectRedirect = *c.DirectRedirect
	}
	return l
}

// Tombstone returns what is left of the link when it is deleted: what it was
// charged to, and the token and key, so that its holder can be told that it is gone.
func (l Link) Tombstone() Link {
	return Link{Slug: l.Slug, CreatedAt: l.CreatedAt, Day: l.Day, Creator: l.Creator, Key: l.Key, Token: l.Token, Deleted: true}
}

// Target is what a visit needs of a link. Its fields are as in [Link].
type Target struct {
	Destination    string // as the Location header carries it, see [Location]
	Host           string // of the destination, see [HostOf]
	ExpiresAt      time.Time
	ForwardQuery   bool
	Limited        bool // whether each visit is to be counted by [Store.Visit]
	DirectRedirect bool
	TakenDown      bool
	Deleted        bool
}

// Ended reports whether the link leads nowhere any more at the instant now,
// whatever visits are left.
func (t Target) Ended(now time.Time) bool {
	return t.Deleted || !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt)
}

// Change says what of a link is to become what; nil leaves it as it is.
type Change struct {
	Destination    *string
	ExpiresAt      *time.Time // the zero time is never
	MaxVisits      *int64     // 0 is any number
	ForwardQuery   *bool
	ShowsTarget    *bool
	DirectRedirect *bool
}

// Errors that callers branch on. What they wrap tells the operator why.
var (
	// ErrNotFound means that no link has that slug.
	ErrNotFound = errors.New("no such link")
	// ErrGone means that the link existed and leads nowhere any more.
	ErrGone = errors.New("the link has ended")
	// ErrTakenDown means that an operator took the link down. For visitors it is a
	// kind of [ErrGone].
	ErrTakenDown = fmt.Errorf("%w: it was taken down", ErrGone)
	// ErrLocked means that a link was taken down and so cannot be changed.
	ErrLocked = errors.New("a link that was taken down cannot be changed")
	// ErrNotYours means that a token or key does not manage the link, or that there
	// is none: nobody can learn which.
	ErrNotYours = errors.New("no such link for this token")
	// ErrSlugTaken means that a chosen slug names another link already. It is what a
	// [*SlugTakenError] unwraps to.
	ErrSlugTaken = errors.New("slug taken")
	// ErrBlocked means that an operator lets who asks make no links.
	ErrBlocked = errors.New("blocked by the operator")
	// ErrUnavailable is the third outcome of a creation, beside counted and at
	// the limit: it could not be counted, so nobody was told of a link.
	ErrUnavailable = errors.New("unavailable")
)

// Kinds of [InvalidError], for callers that branch on what is wrong.
var (
	ErrInvalidURL         = errors.New("invalid destination")
	ErrInvalidSlug        = errors.New("invalid slug")
	ErrInvalidExpiry      = errors.New("invalid expiry")
	ErrInvalidMaxVisits   = errors.New("invalid number of visits")
	ErrBlockedDestination = errors.New("blocked destination")
	ErrBatchTooLarge      = errors.New("more links than may be made in a day")
)

// SlugTakenError says which slugs of a creation name other links already.
type SlugTakenError struct{ Slugs []Slug }

func (e *SlugTakenError) Error() string { return fmt.Sprintf("%v: %q", ErrSlugTaken, e.Slugs) }

// Unwrap returns [ErrSlugTaken].
func (e *SlugTakenError) Unwrap() error { return ErrSlugTaken }

// BatchError says which items of a batch are wrong. Nothing of the batch was done.
type BatchError struct{ Items []ItemError }

// ItemError says what is wrong with one item.
type ItemError struct {
	Index int   // from 0
	Err   error // an [*InvalidError], or [ErrSlugTaken]
}

func (e *BatchError) Error() string {
	return fmt.Sprintf("%d items are wrong, the first is number %d: %v", len(e.Items), e.Items[0].Index, e.Items[0].Err)
}

// Unwrap returns the error of the first item that is wrong.
func (e *BatchError) Unwrap() error { return e.Items[0].Err }

// InvalidError says which field of a new link is wrong, and why.
type InvalidError struct {
	Field  string // "url", "slug", "expires_at" or "max_visits"; empty of a batch
	Kind   error  // one of the kinds above, which it unwraps to
	Reason Reason
}

func (e *InvalidError) Error() string { return fmt.Sprintf("%s: %v", e.Field, e.Reason) }

// Unwrap returns the kind.
func (e *InvalidError) Unwrap() error { return e.Kind }
