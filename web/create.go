package web

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"snip/quota"
	"snip/shortener"
)

// ownedLink is what every answer tells a link's holder of it.
type ownedLink struct {
	Slug           shortener.Slug `json:"slug"`
	ShortURL       string         `json:"short_url"`
	URL            string         `json:"url"`
	CreatedAt      time.Time      `json:"created_at"`
	ExpiresAt      *time.Time     `json:"expires_at"` // null is never
	MaxVisits      *int64         `json:"max_visits"` // null is any number
	ForwardQuery   bool           `json:"forward_query"`
	ShowsTarget    bool           `json:"show_destination"`
	DirectRedirect bool           `json:"direct_redirect"`
}

func (s *server) show(link shortener.Link) ownedLink {
	return ownedLink{
		Slug:           link.Slug,
		ShortURL:       s.short + string(link.Slug),
		URL:            link.Destination,
		CreatedAt:      link.CreatedAt,
		ExpiresAt:      orNull(link.ExpiresAt, time.Time{}),
		MaxVisits:      orNull(link.MaxVisits, 0),
		ForwardQuery:   link.ForwardQuery,
		ShowsTarget:    link.ShowsTarget,
		DirectRedirect: link.DirectRedirect,
	}
}

// createdLink is the body of a 201.
type createdLink struct {
	ownedLink
	ManageToken shortener.Token `json:"manage_token"` // shown this once
}

// refusedForm is a refusal with what the form needs to be shown again.
type refusedForm struct {
	err   error
	who   quota.Client
	read  bool // whether the request got past the throttle and may cost a look into the store
	typed typedLink
	lines []int // of the links of a batch
}

func (e *refusedForm) Error() string { return e.err.Error() }
func (e *refusedForm) Unwrap() error { return e.err }

// create makes a link, or a list of them. It answers what it refuses itself, because
// the place of a large body is given up only when the answer is out, which may repeat
// the body.
func (s *server) create(w http.ResponseWriter, r *http.Request) error {
	own := place{places: &s.places}
	defer own.leave()
	var (
		counted bool
		err     error // nil also after a panic
	)
	defer func() {
		if !counted {
			s.countRefusal(err)
		}
	}()
	if err = s.createIn(w, r, &own, &counted); err != nil {
		s.writeRefusal(w, r, s.problemOf(err), err)
	}
	return nil
}

// countRefusal counts a creation that was refused before the service was asked for it.
func (s *server) countRefusal(err error) {
	if err == nil {
		s.service.CountRefusal(shortener.RefusedFaulty)
		return
	}
	if _, ok := errors.AsType[*limitedError](err); ok {
		return // the throttle has counted it
	}
	refusal := shortener.RefusedInvalid
	switch p := s.problemOf(err); {
	case p.status == http.StatusUnauthorized:
		refusal = shortener.RefusedUnauthorized
	case errors.Is(err, shortener.ErrBlocked):
		refusal = shortener.RefusedBlocked
	case p.status == http.StatusForbidden:
		refusal = shortener.RefusedForeign
	case p.code == "blocked_destination":
		refusal = shortener.RefusedDestination
	case errors.Is(err, errNoPlace):
		refusal = shortener.RefusedBusy
	case p.status >= http.StatusInternalServerError:
		refusal = shortener.RefusedFaulty
	}
	s.service.CountRefusal(refusal)
}

// createIn is create. The order of its steps is a promise: what comes from a
// foreign page spends nothing; a refusal by the throttle reads no body and
// touches no store; a body that is refused costs a token and never a unit of
// quota; the quota decides last, in the store.
//
// It sets counted before the service is asked, which counts how that ends.
func (s *server) createIn(w http.ResponseWriter, r *http.Request, own *place, counted *bool) error {
	if s.foreign.Refuses(r) {
		return s.foreignPage()
	}
	who, err := s.payer(r)
	if err != nil {
		return &refusedForm{err: err}
	}
	if s.service.Limits(who).Blocked {
		return &refusedForm{err: shortener.ErrBlocked}
	}
	if wait, ok := s.throttle.Allow(who); !ok {
		return &refusedForm{err: &limitedError{wait: wait, who: who}}
	}
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return &refusedForm{err: err, who: who, read: true}
	}
	own.who = who
	b, err := readWanted(w, r, own.take)
	var made []shortener.Made
	if err == nil {
		*counted = b.faults == nil
		made, err = s.makeAll(r.Context(), who, b, key)
	}
	if b.batch && (err == nil || errors.Is(err, quota.ErrExceeded)) {
		s.tellRemaining(w, r, who)
	}
	if err != nil {
		if len(b.typed.URL) > maxBody {
			b.typed.URL = "" // a page takes up to 75 times as much memory as it shows of that
		}
		return &refusedForm{err: s.limited(err, who, false), who: who, read: true, typed: b.typed, lines: b.lines}
	}
	return s.writeCreated(w, r, made, b.batch)
}

// makeAll makes all links that are wanted, or none.
func (s *server) makeAll(ctx context.Context, who quota.Client, b wanted, key shortener.IdempotencyKey) ([]shortener.Made, error) {
	switch {
	case !b.batch:
		made, err := s.service.Create(ctx, who, b.links[0], key)
		return []shortener.Made{made}, err
	case b.faults != nil:
		return nil, s.allFaults(b)
	}
	made, err := s.service.CreateBatch(ctx, who, b.links, key)
	if b.lines != nil {
		err = ofAllLines(err)
	}
	return made, err
}

// allFaults are those of the items that could not be read, and of the others too.
func (s *server) allFaults(b wanted) error {
	unread := func(index int) bool {
		return slices.ContainsFunc(b.faults, func(f shortener.ItemError) bool { return f.Index == index })
	}
	all := slices.Clone(b.faults)
	for _, wrong := range s.service.Invalid(b.links) {
		if !unread(wrong.Index) {
			all = append(all, wrong)
		}
	}
	slices.SortFunc(all, func(a, b shortener.ItemError) int { return a.Index - b.Index })
	return &shortener.BatchError{Items: all}
}

// ofAllLines turns what is wrong with each line alike into what it is: a fault of a
// field that is given once for all of them.
func ofAllLines(err error) error {
	batch, ok := errors.AsType[*shortener.BatchError](err)
	if !ok {
		return err
	}
	for _, item := range batch.Items {
		if invalid, ok := errors.AsType[*shortener.InvalidError](item.Err); ok && invalid.Field != "url" {
			return item.Err
		}
	}
	return err
}

// tellRemaining says how many links the client may still make today, where that is
// known. What is left of wider levels it does not say.
func (s *server) tellRemaining(w http.ResponseWriter, r *http.Request, who quota.Client) {
	if a := s.allowance(r.Context(), who); a != nil && a.Remaining != nil {
		w.Header().Set("Quota-Remaining", strconv.FormatInt(*a.Remaining, 10))
	}
}

// limited turns a refusal for want of quota into one that says how long to wait:
// until the counter starts anew, or for the throttle where that takes longer.
func (s *server) limited(err error, who quota.Client, change bool) error {
	var exceeded *quota.ExceededError
	if !errors.As(err, &exceeded) {
		return err
	}
	throttle := s.throttle
	if change {
		throttle = s.changes
	}
	return &limitedError{wait: max(exceeded.Usage.ResetAt.Sub(s.now()), throttle.Wait(who)), who: who, change: change}
}

// writeCreated answers with one link, or with all of a batch in their order. Only
// one has a place to name in Location.
func (s *server) writeCreated(w http.ResponseWriter, r *http.Request, made []shortener.Made, batch bool) error {
	h := w.Header()
	if !batch {
		h.Set("Location", s.short+string(made[0].Link.Slug))
	}
	h.Set("Vary", "Accept")
	switch negotiate(r.Header["Accept"]) {
	case formatHTML:
		c := s.languages.choose(r)
		return writePage(w, r, c, http.StatusCreated, func(page *bytes.Buffer) error {
			return s.pages.result(page, c, resultPage{Short: s.short, Made: made, Batch: batch})
		})
	case formatText:
		var lines []byte
		for _, m := range made {
			lines = append(append(append(lines, s.short...), m.Link.Slug...), '\n')
		}
		write(w, r, http.StatusCreated, mediaText, lines)
		return nil
	}
	links := make([]createdLink, len(made))
	for i, m := range made {
		links[i] = createdLink{s.show(m.Link), m.Token}
	}
	if batch {
		return writeJSON(w, r, http.StatusCreated, mediaJSON, links)
	}
	return writeJSON(w, r, http.StatusCreated, mediaJSON, links[0])
}

// orNull returns a pointer to the value, or nil where it stands for nothing.
func orNull[T comparable](value, nothing T) *T {
	if value == nothing {
		return nil
	}
	return &value
}
