package web

import (
	"bytes"
	"context"
	"net/http"

	"snip/quota"
)

// home shows the form.
func (s *server) home(w http.ResponseWriter, r *http.Request) error {
	c := s.languages.choose(r)
	w.Header()[robotsTag] = nil // the form is the one page that may be found
	var allowance *allowanceView
	if caller := s.clients.find(r); caller.fault == nil {
		allowance = s.allowance(r.Context(), caller.client)
	}
	key := pageKey{name: "form", status: http.StatusOK, allowance: s.pages.allowanceLine(c.tongue, allowance)}
	return s.writeCached(w, r, c, key, func(page *bytes.Buffer) error {
		return s.pages.form(page, c, formPage{Allowance: allowance})
	})
}

// allowance returns what a page says of the client's allowance, or nil when it
// cannot be read: a page without it is better than none.
func (s *server) allowance(ctx context.Context, who quota.Client) *allowanceView {
	if s.keysOnly && who.Key().ID == 0 {
		return nil // an address has none
	}
	a, err := s.service.Allowance(ctx, who)
	if err != nil {
		return nil
	}
	return s.viewOf(a)
}
