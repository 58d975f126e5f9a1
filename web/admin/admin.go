// Package admin is the operator's way into a running service: JSON over HTTP and
// a page for people, on a listener of its own and behind a token.
//
// It promises that nothing but a form to sign in is answered to whoever does not
// show the token, and that no page of another site can use an operator's browser to
// write. Signing in opens the page and nothing else. It is not for the public
// listener, and TLS ends at a proxy in front.
//
// Start with [New]; the API's routes are one table there, and the page's one in
// page.go.
package admin

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"time"

	"snip/shortener"
	"snip/web/foreign"
)

// MinToken is the shortest token, in bytes. A random one of that length cannot be
// guessed, however fast.
const MinToken = 16

// Config holds what the handler is made of.
type Config struct {
	Service *shortener.Service
	Process Process
	Backup  func(context.Context, io.Writer) error // writes a copy of the data file; nil where there is none
	Token   string                                 // at least MinToken bytes
	Listen  string                                 // the listener's address, as it is set
	Origin  string                                 // of the page, as browsers send it; empty where it has no name of its own
	Explain func(shortener.Reason) error           // says in English why a link is refused
	Log     *slog.Logger
	Now     func() time.Time
}

// server is what the handlers share.
type server struct {
	service  *shortener.Service
	copyFile func(context.Context, io.Writer) error
	process  Process
	explain  func(shortener.Reason) error
	now      func() time.Time
	gate     *gate
	log      *slog.Logger

	sessions  sessions
	templates *template.Template
}

// handler answers a request, or returns an error that becomes the answer.
type handler func(s *server, w http.ResponseWriter, r *http.Request) error

// New returns the handler.
func New(c Config) (http.Handler, error) {
	if len(c.Token) < MinToken {
		return nil, fmt.Errorf("the token must have at least %d characters", MinToken)
	}
	s := &server{
		service:  c.Service,
		copyFile: c.Backup,
		process:  c.Process,
		explain:  c.Explain,
		now:      c.Now,
		gate:     newGate(c),
		log:      c.Log,

		sessions: sessions{now: c.Now, all: make(map[[sha256.Size]byte]*session)},
	}
	var err error
	if s.templates, err = parsePage(); err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	pages, err := s.pageRoutes()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for pattern, handle := range map[string]handler{
		"GET /healthz":     (*server).healthz,
		"GET /readyz":      (*server).readyz,
		"GET /api/keys":    (*server).listKeys,
		"POST /api/keys":   (*server).createKey,
		"PATCH /api/keys":  (*server).changeKey, // of the name in the query, which a path could not hold whatever it is
		"DELETE /api/keys": (*server).revokeKey,

		"GET /api/links":          (*server).listLinks,
		"GET /api/link":           (*server).showLink,
		"POST /api/links/disable": (*server).disableLinks,
		"POST /api/links/enable":  (*server).enableLinks,
		"POST /api/links/delete":  (*server).deleteLink,

		"POST /api/links/delete-expired": (*server).deleteExpired,

		"GET /api/blocks":    (*server).listBlocks,
		"POST /api/blocks":   (*server).addBlock,
		"DELETE /api/blocks": (*server).removeBlock,

		"GET /api/quota":        (*server).showQuota,
		"GET /api/overrides":    (*server).listOverrides,
		"PUT /api/overrides":    (*server).putOverride,
		"DELETE /api/overrides": (*server).removeOverride,
		"GET /api/audit":        (*server).audit,
		"POST /api/clock":       (*server).acceptClock,
		"GET /api/status":       (*server).showStatus,
		"GET /api/history":      (*server).history,

		"GET /api/reputation/reservations": (*server).listReservations,

		"GET /api/backup":  (*server).backup,
		"GET /api/export":  (*server).export,
		"POST /api/import": (*server).importLinks,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := handle(s, w, r); err != nil {
				s.refuse(w, r, err)
			}
		})
	}
	mux.Handle("GET /metrics", newMetrics(s))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return s.guard(c.ownAddresses(), pages, mux), nil
}

// ownAddresses returns the guard against pages of other sites. The page may be opened
// at its origin, where the listener is, at localhost and at any address: every other
// name may be one that somebody has let point to the listener.
func (c Config) ownAddresses() foreign.Guard {
	own := foreign.Guard{Hosts: []string{c.Listen}, Loopback: true, Addresses: true}
	if _, host, ok := strings.Cut(c.Origin, "://"); ok {
		own.Origins, own.Hosts = []string{c.Origin}, append(own.Hosts, host)
	}
	return own
}

// tooManyWrong is told to a peer whose tokens are not compared for now.
const tooManyWrong = "Too many wrong tokens came from this address. Try again after the time in Retry-After."

// errForeignPage means that a page of another site may have sent the request. An
// operator whose page has a name that was not set reads it, too.
var errForeignPage = errors.New("another site sent this request, or it came under a name that is not known to be this listener's: " +
	"open the page at localhost or an IP address, or set its name with --admin-url")

// guard lets requests pass that show the token, and those for the page, which asks
// for a session itself.
func (s *server) guard(own foreign.Guard, pages map[string]handler, api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		page := pages[route(r)]
		switch isForeign := own.Refuses(r); { // looked at before any token, so that such a page guesses none
		case page != nil && isForeign:
			s.refusePage(w, r, errForeignPage)
			return
		case page != nil:
			if err := page(s, w, r); err != nil {
				s.refusePage(w, r, err)
			}
			return
		case isForeign:
			s.refuse(w, r, errForeignPage)
			return
		}
		if token, shown := bearerToken(r); shown {
			wait, ok := s.gate.admits(r, token)
			switch {
			case ok:
				api.ServeHTTP(w, r)
				return
			case wait > 0:
				h.Set("Retry-After", wholeSeconds(wait))
				writeProblem(w, http.StatusTooManyRequests, "rate_limited", tooManyWrong)
				return
			}
		}
		h.Set("WWW-Authenticate", "Bearer")
		writeProblem(w, http.StatusUnauthorized, "unauthorized", "Send the admin token in the header Authorization: Bearer.")
	})
}

func route(r *http.Request) string { return r.Method + " " + r.URL.Path }

func (s *server) healthz(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz says in full what the public learns in a word.
func (s *server) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := s.service.Ready(r.Context()); err != nil {
		writeProblem(w, http.StatusServiceUnavailable, "unavailable", "Links cannot be made now: "+err.Error()+".")
		return nil
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

// refuse answers with an error.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status, code := s.judge(r, err)
	writeProblem(w, status, code, sentence(err))
}

// judge returns an error's status and code, and logs what is a fault.
func (s *server) judge(r *http.Request, err error) (status int, code string) {
	switch {
	case isAny(err, shortener.ErrInvalidKey, shortener.ErrInvalidSelection, shortener.ErrInvalidBlock, shortener.ErrInvalidOverride), errors.As(err, new(*badRequest)):
		return http.StatusBadRequest, "invalid_request"
	case isAny(err, errNoSession, errForeignPage):
		return http.StatusForbidden, "forbidden"
	case isAny(err, shortener.ErrNoEntry, shortener.ErrNotFound, shortener.ErrGone, errNoFile):
		return http.StatusNotFound, "not_found"
	case errors.Is(err, shortener.ErrEntryExists):
		return http.StatusConflict, "exists"
	case errors.Is(err, shortener.ErrChanged):
		return http.StatusConflict, "changed"
	case errors.Is(err, shortener.ErrUnavailable), errors.Is(err, context.Canceled):
		s.log.Error("an operator's request cannot be done", "method", r.Method, "path", r.URL.Path, "err", err)
		return http.StatusServiceUnavailable, "unavailable"
	default:
		s.log.Error("an operator's request failed", "method", r.Method, "path", r.URL.Path, "err", err)
		return http.StatusInternalServerError, "internal"
	}
}

func isAny(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// sentence is an error as an operator reads it.
func sentence(err error) string { return err.Error() + "." }
