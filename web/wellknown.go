package web

import (
	"fmt"
	"net/http"
	"time"

	"snip/shortener"
)

// robots lets crawlers have pages and redirects: each says itself that it is not for
// search engines, which is heeded only where it is read.
func (s *server) robots(w http.ResponseWriter, r *http.Request) error {
	text := []byte("User-agent: *\n")
	for _, path := range []string{apiRoot, "/*/qr.", "/healthz", "/readyz"} {
		text = fmt.Appendf(text, "Disallow: %s%s\n", s.pages.frame.Prefix, path)
	}
	write(w, r, http.StatusOK, mediaText, text)
	return nil
}

// favicon is the icon at the address that is asked for where a page names none.
func (s *server) favicon(w http.ResponseWriter, r *http.Request) error {
	r = r.Clone(r.Context())
	r.URL.Path = "/-/snip.svg"
	return s.asset(w, r)
}

// securityTxt says where to report a fault, in the format of RFC 9116. It expires
// a year, which is the most that the RFC recommends, after the day on which it
// is asked for: a running service knows its operator's contact. Its place is at the
// root of the host, whatever the path prefix.
func (s *server) securityTxt(w http.ResponseWriter, r *http.Request) error {
	contact := s.pages.frame.ContactURL
	if contact == "" {
		return shortener.ErrNotFound
	}
	expires := s.now().UTC().Truncate(24*time.Hour).AddDate(1, 0, 0)
	body := fmt.Sprintf("Contact: %s\nExpires: %s\nCanonical: %s/.well-known/security.txt\n",
		contact, expires.Format(time.RFC3339), s.site)
	write(w, r, http.StatusOK, mediaText, []byte(body))
	return nil
}
