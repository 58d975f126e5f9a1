package shortener

import (
	"context"
	"errors"
	"fmt"
	"time"

	"snip/quota"
)

// Creation is one demand: the links to store, all or none, and what they cost.
type Creation struct {
	Links   []Link         // at least one, with distinct slugs
	Day     string         // the UTC day of the decision's instant, and of every link
	Charges []quota.Charge // the widest level first, and the client level last; the cost of each is len(Links)

	// Answer is kept in the same commit, where an Idempotency-Key came with the demand.
	// Replays are where one that was kept for the same key may be.
	Answer  *Answer
	Replays []AnswerRef
}

// Health is how a store is; what a store does not know is zero.
type Health struct {
	Bytes      int64 // of the file
	Commits    int64 // since it was opened
	Operations int64 // that they held
	FreePages  int64 // of the file: what a commit writes goes there first
	CommitTime HistogramCounts
	LastCommit time.Duration
	WaitTime   HistogramCounts // of operations, before their commits began
	Waiting    int             // writes that are waiting
	TurnedAway int64           // writes for which there was no room to wait
	Trouble    string          // why nothing can be written; empty where it can
}

// Uncounted makes what could not be counted a kind of [ErrUnavailable], as stores
// return it.
func Uncounted(err error) error {
	uncounted := errors.Is(err, quota.ErrCannotCount) || errors.Is(err, quota.ErrInvalidCharge)
	if !uncounted || errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Store keeps links and the counters that allowed them. All methods may be
// called at once, from several handles on the same data. Values given and
// returned share no memory with the store. Any error that is not named here
// means that the operation could not be done; one of Create wraps
// [ErrUnavailable].
type Store interface {
	// Secret returns the secret that keys the subjects of a UTC day, or
	// ErrNotFound when the day has none yet. It writes nothing.
	Secret(ctx context.Context, day string) (quota.Secret, error)

	// EnsureSecret returns the day's secret, made and stored durably first when
	// there is none. It refuses with quota.ErrClock like Create, and with
	// quota.ErrCannotCount when the day has counted links but no secret.
	EnsureSecret(ctx context.Context, day string) (quota.Secret, error)

	// Counts returns what the counters hold, in order; a missing one holds nothing.
	// It may be used to refuse a creation, never to admit one.
	Counts(ctx context.Context, counters []quota.Counter) ([]quota.Count, error)

	// NewSlug returns a slug of GeneratedSlug characters from SlugAlphabet that
	// no link is likely to have, that cannot be guessed from others, and that spells no
	// word ([SpellsWord]). It writes
	// nothing, so a slug under which no link is stored may come again.
	NewSlug() Slug

	// Create stores every link, applies every
	// charge and keeps the answer in one durable commit, or does nothing of that. It checks, in this order: the
	// clock (quota.ErrClock, when Day is more than a day before the newest day that has a counted link), where it
	// has an Answer, whether one that holds at that instant is at one of Replays (*ReplayError), the charges (quota.Decide:
	// *quota.ExceededError), the slugs (*SlugTakenError, with all that are taken).
	// A counter or an answer that cannot be read is quota.ErrCannotCount.
	//
	// When ctx ends before the store has begun the operation, it is withdrawn
	// and the error is the context's. Once begun the outcome is awaited; if that
	// takes too long, the error wraps ErrUnavailable and the outcome is unknown:
	// links and counts are there together, or not at all.
	Create(ctx context.Context, c Creation) error

	// Answer returns the first answer that is kept at one of the places, or ErrNotFound.
	// They are kept as long as the counters of their days.
	Answer(ctx context.Context, refs []AnswerRef) (Answer, error)

	// Reserve, Commit and Release are those of package boltquota in durable commits of
	// their own, with the same results; in a window that has gone nothing is counted.
	// Commit keeps notices as [ReservationNotices] has them, in its own commit. Other
	// errors are as for Create.
	Reserve(ctx context.Context, r quota.Reservation) (stored quota.Reservation, already bool, err error)
	Commit(ctx context.Context, id string, actual []int64, at time.Time) (quota.Reservation, error)
	Release(ctx context.Context, id string, at time.Time) (quota.Reservation, error)

	// Reservations returns up to n reservations, in the order in which something is to
	// be done about them: settle those that are pending when they expire, and forget the
	// others.
	Reservations(ctx context.Context, n int) ([]quota.Reservation, error)

	// SettleExpired settles up to n reservations that have expired at the instant now,
	// each as it says itself, forgets those that were settled long ago, and keeps
	// notices as Commit does. It reports whether there may be more. One that cannot be
	// read keeps what it holds and the others are settled all the same; once nothing
	// else is left to do, the error is quota.ErrCannotCount.
	SettleExpired(ctx context.Context, now time.Time, n int) (more bool, err error)

	// Get returns the link, or ErrNotFound.
	Get(ctx context.Context, slug Slug) (Link, error)

	// Follow returns the target of the link that Get returns, or its error. It is
	// the call of every redirect. Once Change or Delete has returned, it never
	// returns what was before; what another process has changed in a database that
	// both share, it returns within a second.
	Follow(ctx context.Context, slug Slug) (Target, error)

	// Visit counts a visit of a link that has MaxVisits, durably, and returns its
	// target, or ErrGone when as many have been counted, or the link is deleted or
	// taken down. A link without MaxVisits is not counted. Of visits at once, just as many get
	// the target as there are left. Other errors are as for Create.
	Visit(ctx context.Context, slug Slug) (Target, error)

	// Visited returns how many visits Visit has counted.
	Visited(ctx context.Context, slug Slug) (int64, error)

	// AddVisits adds to the visits of each link, in one durable commit. Links that
	// are unknown or deleted are left out.
	AddVisits(ctx context.Context, visits map[Slug]Visits) error

	// Visits returns what AddVisits has added up; none for an unknown link.
	Visits(ctx context.Context, slug Slug) (Visits, error)

	// Change changes a link in one durable commit and returns what it has become.
	// The errors are ErrNotFound, ErrGone for one that is deleted, ErrTakenDown for
	// one that is taken down, or as for Create. It charges nothing and gives nothing
	// back.
	Change(ctx context.Context, slug Slug, change Change) (Link, error)

	// Delete leaves the link's tombstone, and nothing of its visits. The errors
	// are as for Change.
	Delete(ctx context.Context, slug Slug) error

	// LinksOf returns up to n links that the key has made and that are not deleted,
	// the newest first, and of the same instant the one with the greatest slug. With
	// a slug in before it begins behind that link, deleted or not, or returns
	// ErrNotFound when that is no link of the key's.
	LinksOf(ctx context.Context, key quota.KeyID, before Slug, n int) ([]Link, error)

	// Scan returns up to n links with their visits, tombstones too, in an order of the
	// store's own, and the mark behind which to go on; it is "" at the end, and given as
	// "" at the start. Links that come or go meanwhile may be left out. It is one read,
	// however many links there are.
	Scan(ctx context.Context, mark string, n int) (links []Managed, next string, err error)

	// Entries returns what operators have set of a kind, in the order of names.
	Entries(ctx context.Context, kind EntryKind) ([]Entry, error)

	// Act does what an operator wants in one durable commit. The errors are ErrChanged,
	// ErrEntryExists or ErrNoEntry as the verbs have it, *SlugTakenError, or as for
	// Create.
	Act(ctx context.Context, act Act) (Done, error)

	// Audit returns up to n lines of the audit log, the latest first, of those with
	// numbers below before where that is not 0.
	Audit(ctx context.Context, before uint64, n int) ([]AuditLine, error)

	// Post keeps a notice durably, unless one of the same ID was kept on that day or
	// the day after. Create does the same with the BudgetNotice of a creation, in its
	// own commit.
	Post(ctx context.Context, n Notice) error

	// Notices returns up to n notices that wait to be delivered, the oldest first.
	Notices(ctx context.Context, n int) ([]Notice, error)

	// Delivered says durably that a notice waits no more.
	Delivered(ctx context.Context, id string) error

	// Tally counts, of each day whose counters are there, the links charged at the
	// client level, the clients, and the links of the busiest of them. The earliest
	// day comes first. A store adds the tally of a day to its history, as AddHistory
	// does, before it removes the day's counters, so that the record is exact then.
	Tally(ctx context.Context) ([]DayRecord, error)

	// Busiest returns, of a day whose counters are there, up to n of a level, in the
	// order of BusiestFirst.
	Busiest(ctx context.Context, day string, level quota.Level, n int) ([]Count, error)

	// AddHistory adds to the record of a day, as DayRecord.Add does, durably, and
	// keeps the records of the latest HistoryDays days that have one.
	AddHistory(ctx context.Context, r DayRecord) error

	// History returns the records of up to n days, the latest first.
	History(ctx context.Context, n int) ([]DayRecord, error)

	// Health says how the store is, for whoever watches. It may be called at any time.
	Health() Health

	// Ready reports why a creation on the given day would fail now, or nil.
	Ready(ctx context.Context, day string) error
}
