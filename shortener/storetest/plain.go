package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"snip/quota"
	"snip/shortener"
)

// call is one operation on a store: Create where there are links, what is to be
// done, or Get, where there is a slug, Ready where there is a day, else Counts.
type call struct {
	creation shortener.Creation
	slug     shortener.Slug
	do       string // "visit", "change" or "delete"; empty is Get
	change   shortener.Change
	day      string
	counters []quota.Counter
}

// on returns the store's answer: all that a caller can learn from it, as text.
func (c call) on(ctx context.Context, s shortener.Store) string {
	switch {
	case len(c.creation.Links) > 0:
		return kind(s.Create(ctx, c.creation))
	case c.do == "visit":
		target, err := s.Visit(ctx, c.slug)
		return answerOf(target, err)
	case c.do == "change":
		link, err := s.Change(ctx, c.slug, c.change)
		return answerOf(link, err)
	case c.do == "delete":
		return kind(s.Delete(ctx, c.slug))
	case c.slug != "":
		link, err := s.Get(ctx, c.slug)
		if err != nil {
			return kind(err)
		}
		// A link that is there stays, so a visit must find just that one.
		target, err := s.Follow(ctx, c.slug)
		if err != nil || target != link.Target() {
			return fmt.Sprintf("%v, but a visit finds %v, %v", link, target, err)
		}
		return fmt.Sprint(link)
	case c.day != "":
		return kind(s.Ready(ctx, c.day))
	default:
		counts, err := s.Counts(ctx, c.counters)
		if err != nil {
			return kind(err)
		}
		return fmt.Sprint(quota.Taken(counts))
	}
}

func answerOf(found any, err error) string {
	if err != nil {
		return kind(err)
	}
	return fmt.Sprint(found)
}

func (c call) String() string {
	switch {
	case len(c.creation.Links) > 0:
		text := "create"
		for _, link := range c.creation.Links {
			text += " " + string(link.Slug)
		}
		for _, charge := range c.creation.Charges {
			text += fmt.Sprintf(", %s %.2x", charge.Counter.Level, string(charge.Counter.Subject))
		}
		return text
	case c.slug != "":
		return fmt.Sprintf("%s %s", cmp.Or(c.do, "get"), c.slug)
	case c.day != "":
		return "ready " + c.day
	default:
		text := "used"
		for _, counter := range c.counters {
			text += fmt.Sprintf(" %s %.2x", counter.Level, string(counter.Subject))
		}
		return text
	}
}

// done is the answer of a creation that was stored.
const done = "done"

// kind is what a caller branches on.
func kind(err error) string {
	if err == nil {
		return done
	}
	var exceeded *quota.ExceededError
	if errors.As(err, &exceeded) {
		return refused(exceeded.Usage)
	}
	for _, sentinel := range []error{quota.ErrClock, quota.ErrCannotCount, shortener.ErrSlugTaken, shortener.ErrNotFound, shortener.ErrGone, context.Canceled} {
		if errors.Is(err, sentinel) {
			return sentinel.Error()
		}
	}
	return fmt.Sprint(err)
}

func refused(u quota.Usage) string { return fmt.Sprintf("exceeded %+v", u) }

// plain is the contract as arithmetic on maps. It shares no code with the
// stores, not even [quota.Decide]: a comparison of two that share a fault would
// find nothing.
type plain struct {
	links  map[shortener.Slug]shortener.Link
	visits map[shortener.Slug]int64
	used   map[quota.Counter]int64
	newest string // the newest day that has a counted link
}

func newPlain() plain {
	return plain{links: map[shortener.Slug]shortener.Link{}, visits: map[shortener.Slug]int64{}, used: map[quota.Counter]int64{}}
}

func (p plain) clone() plain {
	p.links, p.visits, p.used = maps.Clone(p.links), maps.Clone(p.visits), maps.Clone(p.used)
	return p
}

func (p plain) equal(other plain) bool {
	return p.newest == other.newest && maps.Equal(p.used, other.used) && maps.Equal(p.links, other.links) && maps.Equal(p.visits, other.visits)
}

// answer does what the call asks for and returns what a store must say.
func (p *plain) answer(c call) string {
	switch {
	case len(c.creation.Links) > 0:
		return p.create(c.creation)
	case c.slug != "":
		link, ok := p.links[c.slug]
		switch {
		case !ok:
			return shortener.ErrNotFound.Error()
		case c.do == "":
			return fmt.Sprint(link)
		case link.Deleted:
			return shortener.ErrGone.Error()
		}
		return p.do(c, link)
	case c.day != "":
		if p.late(c.day) {
			return quota.ErrClock.Error()
		}
		return done
	default:
		used := make([]int64, len(c.counters))
		for i, counter := range c.counters {
			used[i] = p.used[counter]
		}
		return fmt.Sprint(used)
	}
}

// do is what comes of a link that is there.
func (p *plain) do(c call, link shortener.Link) string {
	switch c.do {
	case "visit":
		if link.MaxVisits > 0 {
			if p.visits[c.slug] >= link.MaxVisits {
				return shortener.ErrGone.Error()
			}
			p.visits[c.slug]++
		}
		return fmt.Sprint(shortener.Target{Destination: shortener.Location(link.Destination), Host: shortener.HostOf(link.Destination),
			ExpiresAt: link.ExpiresAt, ForwardQuery: link.ForwardQuery, Limited: link.MaxVisits > 0, DirectRedirect: link.DirectRedirect})
	case "change":
		if c.change.Destination != nil {
			link.Destination = *c.change.Destination
		}
		if c.change.MaxVisits != nil {
			link.MaxVisits = *c.change.MaxVisits
		}
		p.links[c.slug] = link
		return fmt.Sprint(link)
	default:
		p.links[c.slug] = shortener.Link{Slug: link.Slug, CreatedAt: link.CreatedAt, Day: link.Day,
			Creator: link.Creator, Token: link.Token, Deleted: true}
		return done
	}
}

func (p *plain) create(c shortener.Creation) string {
	if p.late(c.Day) {
		return quota.ErrClock.Error()
	}
	for i, charge := range c.Charges {
		limit, first := charge.Max, charge.Cost == 1 && i+1 < len(c.Charges)
		for _, narrower := range c.Charges[i+1:] {
			first = first && p.used[narrower.Counter] == 0
		}
		if !first {
			limit -= charge.Reserved
		}
		used := p.used[charge.Counter]
		if used+charge.Cost > limit && !charge.DryRun {
			return refused(quota.Usage{Level: charge.Counter.Level, Used: used, Max: charge.Max, ResetAt: charge.ResetAt})
		}
	}
	for _, link := range c.Links {
		if _, taken := p.links[link.Slug]; taken {
			return shortener.ErrSlugTaken.Error()
		}
	}
	for _, link := range c.Links {
		p.links[link.Slug] = link
	}
	for _, charge := range c.Charges {
		p.used[charge.Counter] += charge.Cost
	}
	p.newest = max(p.newest, c.Day)
	return done
}

// late reports whether the day lies more than one before the newest.
func (p *plain) late(day string) bool {
	newest, err := time.Parse(time.DateOnly, p.newest)
	if err != nil {
		return false // nothing was counted yet
	}
	shown, err := time.Parse(time.DateOnly, day)
	return err != nil || newest.Sub(shown) > 24*time.Hour
}
