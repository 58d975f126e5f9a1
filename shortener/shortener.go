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
	Destination string    // byte for byte as its maker gave it, but for outer blanks and a missing scheme
	CreatedAt   time.Time // UTC, in whole microseconds
	ExpiresAt   time.Time // UTC, in whole microseconds; the zero time is never
	Day         string    // the UTC day whose counters paid for it, such as "2026-11-29"
	Creator     quota.Subject
}

// Target returns what a visit needs of the link.
func (l Link) Target() Target { return Target{Destination: l.Destination, ExpiresAt: l.ExpiresAt} }

// Target is what a visit needs of a link.
type Target struct {
	Destination string
	ExpiresAt   time.Time // as in Link
}

// Expired reports whether the link has ended at the instant now.
func (t Target) Expired(now time.Time) bool {
	return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt)
}

// Errors that callers branch on. What they wrap tells the operator why.
var (
	// ErrNotFound means that no link has that slug.
	ErrNotFound = errors.New("no such link")
	// ErrGone means that the link existed and leads nowhere any more.
	ErrGone = errors.New("the link has ended")
	// ErrSlugTaken means that a chosen slug names another link already.
	ErrSlugTaken = errors.New("slug taken")
	// ErrUnavailable is the third outcome of a creation, beside counted and at
	// the limit: it could not be counted, so nobody was told of a link.
	ErrUnavailable = errors.New("unavailable")
)

// Kinds of [InvalidError], for callers that branch on what is wrong.
var (
	ErrInvalidURL         = errors.New("invalid destination")
	ErrInvalidSlug        = errors.New("invalid slug")
	ErrInvalidExpiry      = errors.New("invalid expiry")
	ErrBlockedDestination = errors.New("blocked destination")
)

// InvalidError says which field of a new link is wrong, and what would be right.
type InvalidError struct {
	Field  string // "url", "slug" or "expires_at"
	Kind   error  // one of the kinds above, which it unwraps to
	Reason string // a sentence for the person who typed it, without a full stop
}

func (e *InvalidError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Reason) }

// Unwrap returns the kind.
func (e *InvalidError) Unwrap() error { return e.Kind }
