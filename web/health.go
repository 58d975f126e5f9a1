package web

import (
	"errors"
	"net/http"

	"snip/quota"
	"snip/shortener"
)

// health is the body of the two probes when all is well.
type health struct {
	Status string `json:"status"`
}

// healthz says that the process serves requests, and nothing of the store: a
// supervisor that restarts the process over a full disk would only add to it.
func (s *server) healthz(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, r, http.StatusOK, mediaJSON, health{Status: "ok"})
}

// readyz says whether a link could be made now. The public learns in one word
// what is in the way; the log has the rest.
func (s *server) readyz(w http.ResponseWriter, r *http.Request) error {
	err := s.service.Ready(r.Context())
	if err == nil {
		return writeJSON(w, r, http.StatusOK, mediaJSON, health{Status: "ready"})
	}
	reason := "store"
	switch {
	case errors.Is(err, quota.ErrClock):
		reason = "clock"
	case errors.Is(err, shortener.ErrBlocklist):
		reason = "blocklist"
	}
	s.faults.report("readiness: "+reason, err)
	return unavailable(say("problem.not_ready", "Reason", reason))
}
