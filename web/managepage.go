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
	c := s.languages.choose(r)
	key := pageKey{name: "manage", status: http.StatusOK}
	return s.writeCached(w, r, c, key, func(page *bytes.Buffer) error { return s.pages.manage(page, c) })
}

func (p *pages) manage(w io.Writer, c choice) error {
	data := struct {
		frame
		refusalBox
		bounds
		API string
	}{refusalBox: refusalBox{tongue: c.tongue}, frame: p.page(c, say("manage.heading"), snipJS, "links.js", "chart.js", "manage.js"), API: p.api}
	return p.execute(w, c, "manage", data)
}
