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
)

// Errors about entries.
var (
	ErrEntryExists = errors.New("exists already")
	ErrNoEntry     = errors.New("does not exist")
)

// Act is one act of an operator: all of it is done, and its line is in the audit
// log, or nothing.
type Act struct {
	Line    AuditLine // without its number
	Entries []EntryChange

	// TakenDown of these links becomes Reason; an empty reason brings them back.
	// Links that are unknown or deleted are left out.
	Links  []Slug
	Reason string
	Delete bool // of these links, taken down or not, only tombstones are left instead
}

// AuditLine is one line of the log of what operators did.
type AuditLine struct {
	Number uint64 // from 1, without gaps; given by the store
	At     time.Time
	Action string // such as "disable"
	Target string // what it was done to, as it was typed
	Reason string // a code, where links were taken down
	Note   string
}
