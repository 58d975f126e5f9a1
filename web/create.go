package web

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"snip/quota"
	"snip/shortener"
)

// ownedLink is what every answer tells a link's holder of it.
type ownedLink struct {
	Slug         shortener.Slug `json:"slug"`
	ShortURL     string         `json:"short_url"`
	URL          string         `json:"url"`
	CreatedAt    time.Time      `json:"created_at"`
	ExpiresAt    *time.Time     `json:"expires_at"` // null is never
	MaxVisits    *int64         `json:"max_visits"` // null is any number
	ForwardQuery bool           `json:"forward_query"`
	ShowsTarget  bool           `json:"show_destination"`
}

func (s *server) show(link shortener.Link) ownedLink {
	return ownedLink{
		Slug:         link.Slug,
		ShortURL:     s.short + string(link.Slug),
		URL:          link.Destination,
		CreatedAt:    link.CreatedAt,
		ExpiresAt:    orNull(link.ExpiresAt, time.Time{}),
		MaxVisits:    orNull(link.MaxVisits, 0),
		ForwardQuery: link.ForwardQuery,
		ShowsTarget:  link.ShowsTarget,
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
}

func (e *refusedForm) Error() string { return e.err.Error() }
func (e *refusedForm) Unwrap() error { return e.err }

// create makes a link. The order of its steps is a promise: what comes from a
// foreign page spends nothing; a refusal by the throttle reads no body and
// touches no store; a body that is refused costs a token and never a unit of
// quota; the quota decides last, in the store.
func (s *server) create(w http.ResponseWriter, r *http.Request) error {
	if s.crossOrigin.Check(r) != nil {
		return foreignPage()
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
	wanted, typed, err := readNewLink(w, r)
	if err != nil {
		return &refusedForm{err: err, who: who, read: true, typed: typed}
	}
	made, err := s.service.Create(r.Context(), who, wanted, "")
	if err != nil {
		return &refusedForm{err: s.limited(err, who), who: who, read: true, typed: typed}
	}
	return s.writeCreated(w, r, made.Link, made.Token)
}

// limited turns a refusal for want of quota into one that says how long to wait:
// until the counter starts anew, or for the throttle where that takes longer.
func (s *server) limited(err error, who quota.Client) error {
	var exceeded *quota.ExceededError
	if !errors.As(err, &exceeded) {
		return err
	}
	return &limitedError{wait: max(exceeded.Usage.ResetAt.Sub(s.now()), s.throttle.Wait(who)), who: who}
}

func (s *server) writeCreated(w http.ResponseWriter, r *http.Request, link shortener.Link, token shortener.Token) error {
	short := s.short + string(link.Slug)
	h := w.Header()
	h.Set("Location", short)
	h.Set("Vary", "Accept")
	switch negotiate(r.Header["Accept"]) {
	case formatHTML:
		c := s.languages.choose(r)
		return writePage(w, r, c, http.StatusCreated, func(page *bytes.Buffer) error {
			return s.pages.result(page, c, resultPage{ShortURL: short, Link: link, Token: token})
		})
	case formatText:
		write(w, r, http.StatusCreated, mediaText, []byte(short+"\n"))
		return nil
	}
	return writeJSON(w, r, http.StatusCreated, mediaJSON, createdLink{s.show(link), token})
}

// orNull returns a pointer to the value, or nil where it stands for nothing.
func orNull[T comparable](value, nothing T) *T {
	if value == nothing {
		return nil
	}
	return &value
}
