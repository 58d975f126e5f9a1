package web

import (
	"net/http"
	"strings"

	"snip/static"
)

// openAPI answers with the description of this interface.
func (s *server) openAPI(w http.ResponseWriter, r *http.Request) error {
	write(w, r, http.StatusOK, "application/yaml", s.description) // RFC 9512
	return nil
}

// describe returns the description of the interface at the place that a slug is
// appended to.
func describe(short string) []byte {
	// It stands in single quotes, where YAML knows one escape.
	public := strings.ReplaceAll(strings.TrimSuffix(short, "/"), "'", "''")
	return []byte(strings.Replace(static.OpenAPI, static.OpenAPIServer, public, 1))
}
