package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"snip/shortener"
)

// follow redirects to a link's destination. It is the path that everything else
// is kept out of the way of: no middleware, no log line, header keys set in
// their canonical form without going through Set.
func (s *server) follow(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodPost {
		return s.visit(w, r)
	}
	if r.URL.Path == "" { // the absolute form of a request may leave it out
		return s.home(w, r)
	}
	if strings.Contains(r.URL.Path, "+") { // which no slug has
		return s.preview(w, r)
	}
	kind := s.agents.visitorOf(r)
	visit := s.service.Follow
	if kind == shortener.Head || kind == shortener.Fetcher {
		visit = s.service.Look // they ask about the link, and nobody goes there
	}
	slug, target, err := find(r.Context(), visit, strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil {
		return err
	}
	if target.Limited {
		if !target.DirectRedirect || kind != shortener.Person && kind != shortener.Crawler {
			return s.ask(w, r, slug, kind)
		}
		if _, target, err = lookUp(r.Context(), s.service.Visit, string(slug)); err != nil {
			return err
		}
	}
	s.service.CountVisit(slug, kind, referrerOf(r.Header))
	s.redirect(w, r, target, s.redirectStatus)
	return nil
}

func (s *server) redirect(w http.ResponseWriter, r *http.Request, target shortener.Target, status int) {
	h := w.Header()
	destination := target.Destination
	if target.ForwardQuery {
		destination = withQuery(destination, r.URL.RawQuery)
	}
	h["Location"] = []string{shortener.Location(destination)}
	h["Cache-Control"] = noStore
	h["Content-Length"] = noBody
	h[robotsTag] = noIndex
	w.WriteHeader(status)
}

// ask shows the page of a link whose visits are limited: programs follow links as people do,
// also with the names of browsers, but press no button. It is no visit.
func (s *server) ask(w http.ResponseWriter, r *http.Request, slug shortener.Slug, kind shortener.Visitor) error {
	link, err := s.shown(r.Context(), string(slug))
	if err != nil {
		return err
	}
	if kind != shortener.Person { // a person is counted with the visit
		s.service.CountVisit(slug, kind, referrerOf(r.Header))
	}
	return s.writePreview(w, r, link, true)
}

// visit counts a visit of a link whose visits are limited, and redirects: it is what the
// button of its page sends, and what scripts send. Its Referer is that page. To other links
// it is a method that they do not have.
func (s *server) visit(w http.ResponseWriter, r *http.Request) error {
	visit, foreign := s.service.Visit, s.foreign.Refuses(r)
	if foreign { // or any page could use the visits up
		visit = s.service.Look
	}
	slug, target, err := find(r.Context(), visit, strings.TrimPrefix(r.URL.Path, "/"))
	if errors.Is(err, shortener.ErrNotFound) || err == nil && !target.Limited {
		return echo.ErrMethodNotAllowed
	}
	if err != nil {
		return err
	}
	if foreign {
		return s.foreignPage()
	}
	s.service.CountVisit(slug, s.agents.visitorOf(r), "")
	s.redirect(w, r, target, http.StatusSeeOther)
	return nil
}

// takesVisits reports whether the path is that of a link with POST among its methods.
func (s *server) takesVisits(r *http.Request) bool {
	_, target, err := find(r.Context(), s.service.Look, strings.TrimPrefix(r.URL.Path, "/"))
	return err == nil && target.Limited
}

// withQuery appends a visitor's query, as it was sent, to a destination's own.
func withQuery(destination, query string) string {
	if query == "" {
		return destination
	}
	base, fragment, hasFragment := strings.Cut(destination, "#")
	switch {
	case !strings.Contains(base, "?"):
		base += "?"
	case !strings.HasSuffix(base, "?") && !strings.HasSuffix(base, "&"):
		base += "&"
	}
	base += strings.ReplaceAll(query, "#", "%23") // no browser sends one, and it would end the query here
	if hasFragment {
		base += "#" + fragment
	}
	return base
}

// visit looks a slug up, with or without counting.
type visit func(context.Context, shortener.Slug) (shortener.Target, error)

// trailing is what programs that turn text into links take along from the
// sentence around them. No slug ends with any of it.
const trailing = ".,;:!?'\"`|)]}>*& \u00a0\u200b" + "…。，、；：！？）］｝〉》」』】" + "’”»›"

// find looks the slug up that a decoded path names. Mail programs append a
// slash, and punctuation is left off only where nothing was found with it.
func find(ctx context.Context, visit visit, path string) (shortener.Slug, shortener.Target, error) {
	text := strings.TrimSuffix(path, "/")
	slug, target, err := lookUp(ctx, visit, text)
	if !errors.Is(err, shortener.ErrNotFound) {
		return slug, target, err
	}
	bare := strings.TrimRight(text, trailing)
	if bare == text {
		return slug, target, err
	}
	return lookUp(ctx, visit, strings.TrimSuffix(bare, "/"))
}

// lookUp does not ask the store for what cannot be a slug.
func lookUp(ctx context.Context, visit visit, text string) (slug shortener.Slug, target shortener.Target, err error) {
	slug, ok := shortener.ParseSlug(text)
	if !ok {
		return slug, target, shortener.ErrNotFound
	}
	target, err = visit(ctx, slug)
	switch {
	case err == nil, errors.Is(err, shortener.ErrNotFound), errors.Is(err, shortener.ErrGone),
		errors.Is(err, shortener.ErrUnavailable), errors.Is(err, context.Canceled):
		return slug, target, err
	default:
		return slug, target, fmt.Errorf("%w: follow: %w", shortener.ErrUnavailable, err)
	}
}
