package web

import (
	"errors"
	"net/http"
	"net/url"

	"snip/shortener"
)

// linkPage is a page of the links that a key has made.
type linkPage struct {
	Links []ownedLink `json:"links"` // the newest first
	Next  *string     `json:"next"`  // the address of the next page; null on the last
}

// keyLinks lists the links of the key that the request shows.
func (s *server) keyLinks(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Vary", "Accept, Authorization")
	key, err := s.key(r)
	if err != nil {
		return err
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	before := query.Get("before")
	slug, ok := shortener.ParseSlug(before)
	notItsOwn := invalidField("before", say("reason.must_be_a_slug_of_this_key"))
	if err != nil || before != "" && !ok {
		return notItsOwn
	}
	links, err := s.service.LinksOf(r.Context(), key.ID, slug)
	if errors.Is(err, shortener.ErrNotFound) {
		return notItsOwn
	}
	if err != nil {
		return err
	}
	page := linkPage{Links: make([]ownedLink, len(links))}
	for i, link := range links {
		page.Links[i] = s.show(link)
	}
	if len(links) == shortener.PageOfLinks {
		next := s.short + "api/keys/self/links?before=" + string(links[len(links)-1].Slug)
		page.Next = &next
	}
	return writeJSON(w, r, http.StatusOK, mediaJSON, page)
}
