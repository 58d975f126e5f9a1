package web

import (
	"net/http"
	"strings"

	"snip/static"
)

// openAPI answers with the description of this interface.
func (s *server) openAPI(w http.ResponseWriter, r *http.Request) error {
	// It stands in single quotes, where YAML knows one escape.
	public := strings.ReplaceAll(strings.TrimSuffix(s.short, "/"), "'", "''")
	description := strings.Replace(static.OpenAPI, static.OpenAPIServer, public, 1)
	write(w, r, http.StatusOK, "application/yaml", []byte(description)) // RFC 9512
	return nil
}
