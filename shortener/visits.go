package shortener

import (
	"cmp"
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"

	"snip/quota"
)

// Visitor is what kind of visit it was, as far as a request shows it.
type Visitor int

// The kinds of visits that are told apart.
const (
	Person   Visitor = iota
	Crawler          // says in its User-Agent that it is a program
	Fetcher          // fetches a preview for a chat or a social network
	Head             // a HEAD request
	Prefetch         // a browser that loads ahead of a person who may never come
	visitors         // how many there are
)

// Bounds of what is kept of one link's visits.
const (
	VisitDays      = 400 // the newest days that had visits
	VisitReferrers = 50  // the hosts that brought most, and some late ones; the others are added up
)

// OtherReferrers stands for the hosts beyond [VisitReferrers].
const OtherReferrers = "other"

// Visits is what has been counted of a link's visits. It knows no visitor.
type Visits struct {
	Kinds     [visitors]int64
	Days      map[string]int64 // visits of persons by UTC day, such as "2026-11-29"
	Referrers map[string]int64 // visits of persons by the host of the page they came from
}

// Total is how many visits were persons'.
func (v *Visits) Total() int64 { return v.Kinds[Person] }

// Add adds other visits and keeps within the bounds.
func (v *Visits) Add(o Visits) {
	for kind, n := range o.Kinds {
		v.Kinds[kind] += n
	}
	v.Days = sum(v.Days, o.Days)
	if over := len(v.Days) - VisitDays; over > 0 {
		for _, day := range slices.Sorted(maps.Keys(v.Days))[:over] {
			delete(v.Days, day)
		}
	}
	v.Referrers = sum(v.Referrers, o.Referrers)
	others := v.Referrers[OtherReferrers]
	delete(v.Referrers, OtherReferrers)
	if len(v.Referrers) > VisitReferrers {
		for _, host := range leastOf(v.Referrers, o.Referrers) {
			others += v.Referrers[host]
			delete(v.Referrers, host)
		}
	}
	if others > 0 {
		v.Referrers[OtherReferrers] = others
	}
}

// leastOf returns the hosts that are one too many. Most places are for those that
// brought most; the last go to those that brought someone just now, or a host that
// comes late could never show how many it brings.
func leastOf(all, now map[string]int64) []string {
	const settled = VisitReferrers * 4 / 5
	hosts := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b))
	})
	rest := hosts[settled:]
	slices.SortStableFunc(rest, func(a, b string) int {
		_, aNow := now[a]
		_, bNow := now[b]
		switch {
		case aNow && !bNow:
			return -1
		case bNow && !aNow:
			return 1
		}
		return 0
	})
	return rest[VisitReferrers-settled:]
}

func sum(into, from map[string]int64) map[string]int64 {
	if into == nil && len(from) > 0 {
		into = make(map[string]int64, len(from))
	}
	for key, n := range from {
		into[key] += n
	}
	return into
}

const (
	recorderShards = 16
	// pendingLinks bounds the links of a shard whose visits wait to be stored.
	pendingLinks = 1024
	// pendingHosts bounds the referring hosts of all links of a shard that wait
	// with them; others are added up.
	pendingHosts = 2048
)

// recorder adds visits up in memory until they are stored together. A visit that
// finds no room is dropped: counting never holds a redirect up.
type recorder struct {
	seed   maphash.Seed
	shards [recorderShards]struct {
		mu      sync.Mutex
		pending map[linkDay]*tally
		hosts   int // in all of pending
		dropped int64
	}
}

func newRecorder() *recorder { return &recorder{seed: maphash.MakeSeed()} }

// linkDay is a link on a UTC day.
type linkDay struct {
	slug Slug
	day  string
}

// tally is what has been counted of one link on one day.
type tally struct {
	kinds     [visitors]int64
	referrers map[string]int64
}

// record counts a visit. The referrer may be empty.
func (r *recorder) record(slug Slug, kind Visitor, day, referrer string) {
	s := &r.shards[maphash.String(r.seed, string(slug))%recorderShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.pending[linkDay{slug, day}]
	if t == nil {
		if len(s.pending) >= pendingLinks {
			s.dropped++
			return
		}
		if s.pending == nil {
			s.pending = make(map[linkDay]*tally)
		}
		t = new(tally)
		// A copy: the text may be part of all that a request said.
		s.pending[linkDay{Slug(strings.Clone(string(slug))), day}] = t
	}
	t.kinds[kind]++
	if kind != Person || referrer == "" {
		return
	}
	if _, known := t.referrers[referrer]; !known {
		referrer = strings.Clone(referrer)
		if s.hosts++; s.hosts > pendingHosts {
			referrer = OtherReferrers
		}
		if t.referrers == nil {
			t.referrers = make(map[string]int64, 1)
		}
	}
	t.referrers[referrer]++
}

// take returns what has been recorded, and how many visits were dropped.
func (r *recorder) take() (visits map[Slug]Visits, dropped int64) {
	visits = make(map[Slug]Visits)
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		pending := s.pending
		s.pending, s.hosts = nil, 0
		dropped += s.dropped
		s.dropped = 0
		s.mu.Unlock()
		for of, t := range pending {
			v := Visits{Kinds: t.kinds, Referrers: t.referrers}
			if n := t.kinds[Person]; n > 0 {
				v.Days = map[string]int64{of.day: n}
			}
			sum := visits[of.slug]
			sum.Add(v)
			visits[of.slug] = sum
		}
	}
	return visits, dropped
}

// CountVisit counts a visit in memory. The referrer is the host of the page that
// the visitor came from, or empty. It costs a redirect next to nothing and cannot
// fail; what it counts is lost with the process unless StoreVisits comes first.
func (s *Service) CountVisit(slug Slug, kind Visitor, referrer string) {
	s.visits.record(slug, kind, quota.DayOf(s.now()).Label, referrer)
}

// storedAtOnce is how many links' visits are stored in one commit. It is small, so
// that nobody waits long behind one.
const storedAtOnce = 32

// StoreVisits stores what has been counted, in small commits with a pause after
// each, and returns how many visits are lost: those that found no room, and all
// that are left when there is an error.
func (s *Service) StoreVisits(ctx context.Context, pause func()) (lost int64, err error) {
	visits, lost := s.visits.take()
	for part := range slices.Chunk(slices.Collect(maps.Keys(visits)), storedAtOnce) {
		if err == nil {
			err = s.store.AddVisits(ctx, chosen(visits, part))
		}
		if err != nil {
			for _, slug := range part {
				for _, n := range visits[slug].Kinds {
					lost += n
				}
			}
			continue
		}
		pause()
	}
	if err != nil {
		err = refusal(err)
	}
	s.outcomes.visitsLost.Add(lost)
	return lost, err
}

func chosen(visits map[Slug]Visits, slugs []Slug) map[Slug]Visits {
	part := make(map[Slug]Visits, len(slugs))
	for _, slug := range slugs {
		part[slug] = visits[slug]
	}
	return part
}
