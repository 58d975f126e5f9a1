package shortener

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"snip/quota"
)

// slugAttempts bounds how often a generated slug that is taken is replaced. With
// 10 million links one random slug in 200,000 is taken, so eight in a row mean a
// fault.
const slugAttempts = 8

// NewLink is what a person asks for.
type NewLink struct {
	URL            string
	Slug           string // empty generates one
	ExpiresAt      string // RFC 3339 with an offset; empty is never
	MaxVisits      *int64 // 1 to 10,000; nil is any number
	ForwardQuery   bool
	ShowsTarget    bool // although it has MaxVisits
	DirectRedirect bool `json:",omitzero"` // although it has MaxVisits
}

// MaxBatch bounds the links of a batch.
const MaxBatch = 100

// Made is a link that was made, and the token that manages it.
type Made struct {
	Link  Link
	Token Token
}

// Create makes a link for who. The errors are an [*InvalidError], a
// [*quota.ExceededError], [ErrSlugTaken], [ErrBlocked], [ErrKeyReused],
// [ErrInProgress], the context's, or wrap [ErrUnavailable]; with any of them nothing
// is charged, except that an outcome unknown to the store (see [Store]) may be
// either, and that a check of the destination may have been paid for.
//
// With an Idempotency-Key that came within a day, it returns what was made then,
// whatever became of that, and charges nothing.
func (s *Service) Create(ctx context.Context, who quota.Client, n NewLink, key IdempotencyKey) (Made, error) {
	made, err := s.counted(ctx, who, demand{links: []NewLink{n}, key: key})
	if err != nil {
		if batch, ok := errors.AsType[*BatchError](err); ok {
			err = batch.Items[0].Err
		}
		return Made{}, err
	}
	return made[0], nil
}

// CreateBatch makes 1 to [MaxBatch] links in one decision, all of them or none. The
// errors are those of Create, but for a [*BatchError] in place of those of single
// links, and [ErrBatchTooLarge] where no day has room for so many: waiting is of no
// use then. Idempotency-Keys are not shared with Create.
func (s *Service) CreateBatch(ctx context.Context, who quota.Client, links []NewLink, key IdempotencyKey) ([]Made, error) {
	return s.counted(ctx, who, demand{links: links, key: key, batch: true})
}

// Invalid returns what is wrong with the links of a batch by themselves, in their
// order, and makes none.
func (s *Service) Invalid(links []NewLink) []ItemError {
	_, err := s.parse(demand{links: links}, s.instant())
	if batch, ok := errors.AsType[*BatchError](err); ok {
		return batch.Items
	}
	return nil
}

// demand is what is made in one decision.
type demand struct {
	links []NewLink
	key   IdempotencyKey
	batch bool
}

// counted makes the links, and counts how it ended.
func (s *Service) counted(ctx context.Context, who quota.Client, d demand) ([]Made, error) {
	panicked := true
	defer func() {
		if panicked {
			s.outcomes.faulty.Add(1)
		}
	}()
	// The decision's instant, read once: whenever the commit lands, it is the
	// links' creation time and picks the day that pays.
	now := s.instant()
	day := quota.DayOf(now)
	made, replayed, err := s.create(ctx, who, d, now, day)
	panicked = false
	switch {
	case err != nil:
		s.outcomes.count(err)
		s.days.count(err, day.Label)
	case replayed:
		s.outcomes.replayed.Add(1)
	default:
		s.outcomes.created.Add(int64(len(made)))
		s.days.countMade(len(made), now)
		for _, m := range made {
			s.recent.add(m.Link)
		}
	}
	return made, err
}

func (s *Service) create(ctx context.Context, who quota.Client, d demand, now time.Time, day quota.Window) (made []Made, replayed bool, err error) {
	// First: what was made is given again also to whoever is full by now, and when it
	// would not be made any more.
	again, made, err := s.replay(ctx, who, d, now)
	if made != nil || err != nil {
		return made, true, err
	}
	links, err := s.parse(d, now)
	if err != nil {
		return nil, false, err
	}
	set := s.set.Load()
	limits, overridden := set.overrides.For(s.policy, who, now)
	if limits.Blocked {
		return nil, false, ErrBlocked
	}
	if len(links) > 1 {
		if most := mostAtOnce(limits, who, day, len(links)); most < len(links) {
			return nil, false, &InvalidError{Kind: ErrBatchTooLarge, Reason: because("has_more_links_than_a_day", "Links", len(links), "Max", most)}
		}
	}
	secret, err := s.store.EnsureSecret(ctx, day.Label)
	if err != nil {
		return nil, false, refusal(err)
	}
	// What an override has set may end within the day, so it is not remembered. Who
	// gets one is in no table any more: with each act a new one begins. And who has no
	// units for a batch may have one for a link.
	remember := func(err error) {
		if exceeded, ok := errors.AsType[*quota.ExceededError](err); ok && !overridden && len(links) == 1 {
			set.refused.Add(who, day.Label, exceeded)
		}
	}
	if exceeded := set.refused.Find(who, day.Label); exceeded != nil {
		return s.unlessDone(ctx, who, d, now, exceeded)
	}
	charges := tallied(limits, who, secret, day, int64(len(links)))
	wouldRefuse, err := s.look(ctx, charges)
	if err != nil {
		remember(err)
		return s.unlessDone(ctx, who, d, now, refusal(err))
	}
	if s.checker != nil {
		// Behind every refusal that costs nothing, because these may cost money.
		if err := s.slugsFree(ctx, links); err != nil {
			return s.unlessDone(ctx, who, d, now, err)
		}
		if err := s.check(ctx, destinationsOf(links), payer{who, day, secret, limits}, again.demandKey); err != nil {
			return nil, false, err
		}
	}
	made = make([]Made, len(links))
	for i, link := range links {
		token := NewToken()
		link.Day, link.Creator, link.Key, link.Token = day.Label, who.Creator(secret), who.Key().ID, token.Hash()
		made[i] = Made{link, token}
	}
	if err := s.place(ctx, &again, day.Label, secret, now); err != nil {
		return nil, false, refusal(err)
	}
	err = s.write(ctx, Creation{Day: day.Label, Charges: charges, Replays: again.refs}, made, again, now)
	if replay, ok := errors.AsType[*ReplayError](err); ok {
		made, err := again.open(replay.Answer)
		return made, true, err
	}
	if err != nil {
		remember(err)
		return nil, false, refusal(err)
	}
	for _, level := range wouldRefuse {
		add(&s.outcomes.wouldRefuse, level)
	}
	return made, false, nil
}

// parse returns the links as they are asked for, those without a slug without one.
// All that is wrong with them is in one [*BatchError].
func (s *Service) parse(d demand, now time.Time) ([]Link, error) {
	links := make([]Link, len(d.links))
	var wrong []ItemError
	chosen := map[Slug]bool{}
	for i, n := range d.links {
		link, err := s.parseLink(n, now)
		slug, _ := s.slugs.parse(n.Slug) // also where something else is wrong
		if err == nil && slug != "" && chosen[slug] {
			err = invalidSlug(because("is_given_twice"))
		}
		if _, ok := errors.AsType[*InvalidError](err); ok {
			wrong = append(wrong, ItemError{i, err})
		} else if err != nil {
			return nil, err
		}
		links[i], chosen[slug] = link, true
	}
	if wrong != nil {
		return nil, &BatchError{wrong}
	}
	return links, nil
}

func (s *Service) parseLink(n NewLink, now time.Time) (link Link, err error) {
	link = Link{
		CreatedAt: now, ForwardQuery: n.ForwardQuery, ShowsTarget: n.ShowsTarget,
		DirectRedirect: n.DirectRedirect,
	}
	if link.Destination, err = s.destination(n.URL); err != nil {
		return Link{}, err
	}
	if link.Slug, err = s.slugs.parse(n.Slug); err != nil {
		return Link{}, err
	}
	if link.MaxVisits, err = parseMaxVisits(n.MaxVisits); err != nil {
		return Link{}, err
	}
	if link.ExpiresAt, err = parseExpiry(n.ExpiresAt, now); err != nil {
		return Link{}, err
	}
	return link, nil
}

// write gives slugs to the links that have none and stores all of them. Generated
// slugs that are taken are drawn again; for those that were chosen it returns a
// [*BatchError].
func (s *Service) write(ctx context.Context, c Creation, made []Made, again replayable, now time.Time) error {
	generated := make([]bool, len(made))
	for i, m := range made {
		generated[i] = m.Link.Slug == ""
	}
	for range slugAttempts {
		if err := s.draw(made); err != nil {
			return err
		}
		c.Links = nil // a store may still have those of the attempt before
		for _, m := range made {
			c.Links = append(c.Links, m.Link)
		}
		var err error
		if c.Answer, err = again.seal(now, made); err != nil {
			return err
		}
		err = s.store.Create(ctx, c)
		taken, ok := errors.AsType[*SlugTakenError](err)
		if !ok {
			return err
		}
		var wrong []ItemError
		for i, link := range c.Links {
			switch {
			case !slices.Contains(taken.Slugs, link.Slug):
			case generated[i]:
				made[i].Link.Slug = ""
			default:
				wrong = append(wrong, ItemError{i, ErrSlugTaken})
			}
		}
		if wrong != nil {
			return &BatchError{wrong}
		}
	}
	return errSlugsTaken
}

var errSlugsTaken = fmt.Errorf("%w: %d times in a row generated slugs were taken", ErrUnavailable, slugAttempts)

// draw gives a slug to each of the links that has none.
func (s *Service) draw(made []Made) error {
	given := make(map[Slug]bool, len(made))
	for _, m := range made {
		given[m.Link.Slug] = true
	}
	for i := range made {
		slug := &made[i].Link.Slug
		for n := 0; *slug == ""; n++ {
			if n == slugAttempts {
				return errSlugsTaken
			}
			if drawn := s.store.NewSlug(); !s.slugs.isReserved(drawn) && !given[drawn] {
				*slug, given[drawn] = drawn, true
			}
		}
	}
	return nil
}

// mostAtOnce returns how many of n links a day of which nothing is used yet has room
// for.
func mostAtOnce(limits quota.Policy, who quota.Client, day quota.Window, n int) int {
	charges := limits.Charges(who, quota.Secret{}, day, 1)
	unused := make([]int64, len(charges))
	return sort.Search(n, func(fewer int) bool {
		for i := range charges {
			charges[i].Cost = int64(fewer) + 1
		}
		_, err := quota.Decide(charges, unused)
		return err != nil
	})
}

// look refuses a full client by reading only, so that refusals neither write nor
// wait behind creations. Only the store's own transaction admits. It returns the
// levels that refuse in a dry run only.
func (s *Service) look(ctx context.Context, charges []quota.Charge) ([]quota.Level, error) {
	used, err := s.used(ctx, charges)
	if err != nil {
		return nil, err
	}
	if _, err := quota.Decide(charges, used); err != nil {
		return nil, err
	}
	return quota.WouldRefuse(charges, used), nil
}

// slugsFree refuses chosen slugs that are taken by reading only, as write does, for whoever
// has quota. Only the store's own transaction knows that they are free.
func (s *Service) slugsFree(ctx context.Context, links []Link) error {
	var taken []ItemError
	for i, link := range links {
		if link.Slug == "" {
			continue
		}
		switch _, err := s.store.Get(ctx, link.Slug); {
		case err == nil:
			taken = append(taken, ItemError{i, ErrSlugTaken})
		case !errors.Is(err, ErrNotFound):
			return refusal(err)
		}
	}
	if taken != nil {
		return &BatchError{taken}
	}
	return nil
}

// tallied returns the charges of the limits, with one at the client level. Where that level is off,
// for everyone or by an override, the charge admits any number, so that the links and
// clients of a day can be counted from its counters.
func tallied(limits quota.Policy, who quota.Client, secret quota.Secret, day quota.Window, cost int64) []quota.Charge {
	charges := limits.Charges(who, secret, day, cost)
	if n := len(charges); n > 0 && charges[n-1].Counter.Level == quota.LevelClient {
		return charges
	}
	return append(charges, quota.Charge{
		Counter: quota.Counter{Level: quota.LevelClient, Subject: who.Creator(secret), Period: day.Label},
		Cost:    cost,
		Max:     quota.Unlimited,
		ResetAt: day.End,
	})
}

func destinationsOf(links []Link) []string {
	destinations := make([]string, len(links))
	for i, link := range links {
		destinations[i] = link.Destination
	}
	return destinations
}

func (s *Service) used(ctx context.Context, charges []quota.Charge) ([]int64, error) {
	return taken(ctx, s.store, charges)
}

// taken returns what is taken of the charges' counters, by reading only.
func taken(ctx context.Context, store Store, charges []quota.Charge) ([]int64, error) {
	counters := make([]quota.Counter, len(charges))
	for i, c := range charges {
		counters[i] = c.Counter
	}
	counts, err := store.Counts(ctx, counters)
	return quota.Taken(counts), err
}
