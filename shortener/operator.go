package shortener

import (
	"errors"
	"time"
)

// Entry is one thing that an operator has set. A store keeps the value as it is;
// what it means is the service's business.
type Entry struct {
	Kind  EntryKind
	Name  string // that no other entry of its kind has
	Value string
}

// EntryKind tells apart what operators set.
type EntryKind string

// The kinds.
const (
	EntryKey      EntryKind = "key"      // a [Key]
	EntryOverride EntryKind = "override" // limits of one client or network
	EntryBlock    EntryKind = "block"    // a host that links may not lead to
)

// Check returns why the service could not read the entry.
func (e Entry) Check() error {
	var err error
	switch e.Kind {
	case EntryKey:
		_, err = keyOf(e)
	case EntryOverride:
		_, err = overrideOf(e)
	case EntryBlock:
		_, err = blockOf(e)
	default:
		err = errors.New("it is of no known kind")
	}
	return err
}

// EntryChange is what becomes of an entry.
type EntryChange struct {
	Entry
	Verb EntryVerb
}

// EntryVerb says what is done to an entry.
type EntryVerb int

// What can be done. The zero verb puts an entry, whether it is there or not.
const (
	PutEntry     EntryVerb = iota
	AddEntry               // ErrEntryExists where it is there
	ReplaceEntry           // ErrNoEntry where it is not there
	RemoveEntry            // the same
	DropEntry              // removes the entry where it is there
)

// Errors about entries.
var (
	ErrEntryExists = errors.New("exists already")
	ErrNoEntry     = errors.New("does not exist")
	// ErrChanged means that an entry is no longer as it was when an act was based on it.
	ErrChanged = errors.New("was changed meanwhile; look again, and try again")
)

// Act is one act of an operator: all of it is done, and its line is in the audit
// log, or nothing. Where it has links or a clock and changes none of them, it is not
// done either.
type Act struct {
	Line AuditLine // without its number, and without what LineOf adds

	// If are the entries on which the act is based, as they were read. Unless each is
	// still there with this value, nothing is done: ErrChanged.
	If      []Entry
	Entries []EntryChange

	// TakenDown of these links becomes Reason; an empty reason brings them back.
	// Links that are unknown or deleted are left out, and those of which Meant, where
	// it is set, returns false: they may have been changed since they were chosen.
	// Meant may be called several times.
	Links  []Slug
	Meant  func(Link) bool
	Reason string
	Delete bool // of these links, taken down or not, only tombstones are left instead

	// Import are links that were made before, to be stored as they are with their
	// visits, and charged to nobody. The error is a *SlugTakenError with all that are
	// taken.
	Import []Managed

	// AcceptClock, where it is set, is the day that the clock shows. When it lies more
	// than one before the newest day that has a counted link, that day is forgotten.
	// Counters of later days are kept and continue.
	AcceptClock string
}

// Done is what has become of an act.
type Done struct {
	Links     int    // that were changed, deleted or imported
	Forgotten string // the newest day, where AcceptClock has forgotten it
}

// Nothing reports whether an act that is about links or the clock has changed none of
// them, so that it has no line.
func (a Act) Nothing(d Done) bool {
	return len(a.Links) > 0 && d.Links == 0 || a.AcceptClock != "" && d.Forgotten == ""
}

// LineOf returns the line of an act with what has become of it.
func (a Act) LineOf(d Done) AuditLine {
	line := a.Line
	line.Links = int64(d.Links)
	if d.Forgotten != "" {
		line.Note = "although " + d.Forgotten + " was counted"
	}
	return line
}

// Means reports whether the act is to be done to a link of Links.
func (a Act) Means(l Link) bool { return !l.Deleted && (a.Meant == nil || a.Meant(l)) }

// Apply returns what becomes of a link of Links.
func (a Act) Apply(l Link) Link {
	if a.Delete {
		return l.Tombstone()
	}
	l.TakenDown = a.Reason
	return l
}

// AuditLine is one line of the log of what operators did.
type AuditLine struct {
	Number uint64 // from 1, without gaps; given by the store
	At     time.Time
	Action string // such as "disable"
	Target string // what it was done to, as it was typed
	Reason string // a code, where links were taken down
	Note   string
	Links  int64 // to which it was done; 0 where it is about something else
}
