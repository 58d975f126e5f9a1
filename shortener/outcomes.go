package shortener

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"snip/quota"
)

// Levels are those of a policy, the widest first.
var Levels = [...]quota.Level{quota.LevelService, quota.LevelNetwork, quota.LevelClient}

// outcomes counts what became of creations, by links where they were made, and of
// visits since the process began, for whoever watches. What was used of quota is in
// the store.
type outcomes struct {
	created, replayed, invalid, taken, blocked, unchecked, withdrawn, unavailable atomic.Int64
	destination, foreign, unauthorized, busy, faulty                              atomic.Int64

	followed, missing, ended, takenDown, failed atomic.Int64
	visitsLost                                  atomic.Int64

	refused, wouldRefuse [len(Levels)]atomic.Int64
}

// Outcomes is how many creations and visits ended how since the process began.
type Outcomes struct {
	Created, Replayed, Invalid, Taken, Blocked, Unchecked, Unavailable int64

	BlockedDestination int64
	Foreign            int64 // sent by pages of other sites
	Unauthorized       int64 // with an unknown API key, or without one where one is needed
	Busy               int64 // for want of room for a large body
	Faulty             int64 // because of a fault of the program

	Withdrawn int64 // because who asked for the link left before it was begun

	Refused     map[quota.Level]int64
	WouldRefuse map[quota.Level]int64 // by levels in a dry run

	Followed, Missing, Ended, TakenDown, Failed int64 // visits of links
	VisitsLost                                  int64 // that were to be counted
}

// Outcomes returns what has been counted so far.
func (s *Service) Outcomes() Outcomes {
	o := &s.outcomes
	all := Outcomes{
		Created:     o.created.Load(),
		Replayed:    o.replayed.Load(),
		Invalid:     o.invalid.Load(),
		Taken:       o.taken.Load(),
		Blocked:     o.blocked.Load(),
		Unchecked:   o.unchecked.Load(),
		Withdrawn:   o.withdrawn.Load(),
		Unavailable: o.unavailable.Load(),

		BlockedDestination: o.destination.Load(),
		Foreign:            o.foreign.Load(),
		Unauthorized:       o.unauthorized.Load(),
		Busy:               o.busy.Load(),
		Faulty:             o.faulty.Load(),

		Followed:    o.followed.Load(),
		Missing:     o.missing.Load(),
		Ended:       o.ended.Load(),
		TakenDown:   o.takenDown.Load(),
		Failed:      o.failed.Load(),
		VisitsLost:  o.visitsLost.Load(),
		Refused:     make(map[quota.Level]int64, len(Levels)),
		WouldRefuse: make(map[quota.Level]int64, len(Levels)),
	}
	for i, level := range Levels {
		all.Refused[level], all.WouldRefuse[level] = o.refused[i].Load(), o.wouldRefuse[i].Load()
	}
	return all
}

// Refusal is why a creation was refused before [Service.Create] was asked for it.
type Refusal int

// The refusals.
const (
	RefusedFaulty Refusal = iota // a fault of the program
	RefusedForeign
	RefusedUnauthorized
	RefusedBlocked
	RefusedInvalid
	RefusedDestination // blocked, and found with what could not be read
	RefusedBusy
)

// CountRefusal counts a creation for which neither [Service.Create] nor
// [Service.CreateBatch] was asked: these count their own.
func (s *Service) CountRefusal(r Refusal) {
	o := &s.outcomes
	switch r {
	case RefusedForeign:
		o.foreign.Add(1)
	case RefusedUnauthorized:
		o.unauthorized.Add(1)
	case RefusedBlocked:
		o.blocked.Add(1)
	case RefusedInvalid:
		o.invalid.Add(1)
	case RefusedDestination:
		o.destination.Add(1)
	case RefusedBusy:
		o.busy.Add(1)
	default:
		o.faulty.Add(1)
	}
}

// count counts how one creation was refused.
func (o *outcomes) count(err error) {
	var (
		exceeded *quota.ExceededError
		invalid  *InvalidError
	)
	switch {
	case errors.As(err, &exceeded) && slices.Contains(Levels[:], exceeded.Usage.Level):
		add(&o.refused, exceeded.Usage.Level)
	case errors.Is(err, ErrBlockedDestination):
		o.destination.Add(1)
	case errors.As(err, &invalid), errors.Is(err, ErrKeyReused), errors.Is(err, ErrInProgress):
		o.invalid.Add(1)
	case errors.Is(err, ErrSlugTaken):
		o.taken.Add(1)
	case errors.Is(err, ErrBlocked):
		o.blocked.Add(1)
	case errors.Is(err, ErrUnchecked), errors.Is(err, quota.ErrExceeded): // the latter at a level of checks
		o.unchecked.Add(1)
	case errors.Is(err, context.Canceled):
		o.withdrawn.Add(1)
	default:
		o.unavailable.Add(1)
	}
}

// countVisit counts how one visit ended.
func (o *outcomes) countVisit(err error) {
	switch {
	case err == nil:
		o.followed.Add(1)
	case errors.Is(err, ErrNotFound):
		o.missing.Add(1)
	case errors.Is(err, ErrTakenDown):
		o.takenDown.Add(1)
	case errors.Is(err, ErrGone):
		o.ended.Add(1)
	default:
		o.failed.Add(1)
	}
}

func add(counters *[len(Levels)]atomic.Int64, level quota.Level) {
	for i := range Levels {
		if Levels[i] == level {
			counters[i].Add(1)
		}
	}
}
