package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"snip/shortener"
)

// follow redirects to a link's destination. It is the path that everything else
// is kept out of the way of: no middleware, no log line, header keys set in
// their canonical form without going through Set.
func (s *server) follow(w http.ResponseWriter, r *http.Request) error {
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
	s.service.CountVisit(slug, kind, referrerOf(r.Header))
	if target.Limited && kind == shortener.Fetcher {
		return s.preview(w, r)
	}
	h := w.Header()
	destination := target.Destination
	if target.ForwardQuery {
		destination = shortener.Location(withQuery(destination, r.URL.RawQuery))
	}
	h["Location"] = []string{destination}
	h["Cache-Control"] = noStore
	h["Content-Length"] = noBody
	h[robotsTag] = noIndex
	if target.Limited && kind == shortener.Head {
		delete(h, "Location") // where it leads is for those whose visit counts
		w.WriteHeader(http.StatusOK)
		return nil
	}
	w.WriteHeader(s.redirectStatus)
	return nil
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
