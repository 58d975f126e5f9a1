package web

import (
	"bytes"
	"io"
	"net/http"
)

// managePage shows the page on which a link's holder changes it. Which link it is
// and the token stand in the fragment of the page's address, so neither reaches
// the server before the script sends them to the API, the token in its header.
func (s *server) managePage(w http.ResponseWriter, r *http.Request) error {
	return writePage(w, r, http.StatusOK, func(page *bytes.Buffer) error { return s.pages.manage(page) })
}

func (p *pages) manage(w io.Writer) error {
	data := struct {
		frame
		fieldLeads
		bounds
		API string
	}{frame: p.frame.page("Manage a link – Snip", true, true), API: p.api}
	return p.templates.ExecuteTemplate(w, "manage", data)
}
