package shortener

import "snip/quota"

// Contents is all that a store keeps, for copying it into another store while
// nothing is written to it. Each method calls a function with one thing after the
// other, in an order that stays the same, until the function or reading returns an
// error. No two things of a kind are the same.
type Contents interface {
	// Newest returns the newest day that has a counted link, or "".
	Newest() (string, error)

	Links(use func(KeptLink) error) error // tombstones too
	Visits(use func(KeptVisits) error) error
	Secrets(use func(KeptSecret) error) error
	Counters(use func(KeptCounter) error) error // but for those that are being removed
	Reservations(use func(quota.Reservation) error) error
	Answers(use func(Answer) error) error
	Entries(use func(Entry) error) error
	Acts(use func(AuditLine) error) error
	Notices(use func(KeptNotice) error) error
	History(use func(DayRecord) error) error
}

// KeptLink is a link with how many of its visits were counted against MaxVisits.
type KeptLink struct {
	Link
	Visited int64
}

// KeptVisits is what is known of a link's visits.
type KeptVisits struct {
	Slug   Slug
	Visits Visits
}

// KeptSecret is the secret of the subjects of a period.
type KeptSecret struct {
	Period string
	Secret quota.Secret
}

// KeptCounter is a counter with what it holds.
type KeptCounter struct {
	quota.Counter
	quota.Count
}

// KeptNotice is a notice. Of one that was delivered nothing but the ID is kept, so
// that it is not told again.
type KeptNotice struct {
	Notice
	Delivered bool
}
