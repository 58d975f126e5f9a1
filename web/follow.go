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
	target, err := s.find(r.Context(), strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil {
		return err
	}
	h := w.Header()
	h["Location"] = []string{shortener.Location(target.Destination)}
	h["Cache-Control"] = noStore
	h["Content-Length"] = noBody
	w.WriteHeader(s.redirectStatus)
	return nil
}

// trailing is what programs that turn text into links take along from the
// sentence around them. No slug ends with any of it.
const trailing = ".,;:!?'\"`|)]}>*& \u00a0\u200b" + "…。，、；：！？）］｝〉》」』】" + "’”»›"

// find looks the slug up that a decoded path names. Mail programs append a
// slash, and punctuation is left off only where nothing was found with it.
func (s *server) find(ctx context.Context, path string) (shortener.Target, error) {
	text := strings.TrimSuffix(path, "/")
	target, err := s.lookUp(ctx, text)
	if !errors.Is(err, shortener.ErrNotFound) {
		return target, err
	}
	bare := strings.TrimRight(text, trailing)
	if bare == text {
		return target, err
	}
	return s.lookUp(ctx, strings.TrimSuffix(bare, "/"))
}

// lookUp does not ask the store for what cannot be a slug.
func (s *server) lookUp(ctx context.Context, text string) (shortener.Target, error) {
	slug, ok := shortener.ParseSlug(text)
	if !ok {
		return shortener.Target{}, shortener.ErrNotFound
	}
	target, err := s.service.Follow(ctx, slug)
	switch {
	case err == nil, errors.Is(err, shortener.ErrNotFound), errors.Is(err, shortener.ErrGone),
		errors.Is(err, shortener.ErrUnavailable), errors.Is(err, context.Canceled):
		return target, err
	default:
		return target, fmt.Errorf("%w: follow: %w", shortener.ErrUnavailable, err)
	}
}
