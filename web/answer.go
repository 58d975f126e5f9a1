package web

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"snip/quota"
	"snip/shortener"
)

// Values of headers that many answers share. They are set without a copy, so
// nothing may append to one in place: their capacity is their length.
var (
	noStore = []string{"no-store"}
	noSniff = []string{"nosniff"}
	noBody  = []string{"0"}
	noIndex = []string{"noindex"}
)

const (
	robotsTag      = "X-Robots-Tag"
	securityPolicy = "Content-Security-Policy"
)

const (
	mediaJSON    = "application/json"
	mediaProblem = "application/problem+json"
	mediaText    = "text/plain; charset=utf-8"
	mediaHTML    = "text/html; charset=utf-8"
)

// write sends a whole answer. Its length is always declared: an answer to an
// unread body leaves before the handler has ended, when net/http would not know
// it yet and fall back to chunks. Search engines are to leave it out unless the handler
// has set X-Robots-Tag, and pages have the usual policy unless it has set another.
func write(w http.ResponseWriter, r *http.Request, status int, mediaType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	if _, said := h[robotsTag]; !said {
		h[robotsTag] = noIndex
	}
	if mediaType == mediaHTML {
		if h.Get(securityPolicy) == "" {
			h.Set(securityPolicy, pageCSP)
		}
		// Not no-referrer: then a form's Origin is "null", which looks like a
		// foreign page to the check against those where there is no TLS.
		h.Set("Referrer-Policy", "same-origin")
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write(body) // an error means that nobody listens any more
	}
}

func writeJSON(w http.ResponseWriter, r *http.Request, status int, mediaType string, v any) error {
	body, err := encodeJSON(v)
	if err != nil {
		return err
	}
	write(w, r, status, mediaType, body)
	return nil
}

func encodeJSON(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	return append(body, '\n'), err
}

// writePage renders a page before anything is sent, so that one that cannot be
// rendered is still a clean 500.
func writePage(w http.ResponseWriter, r *http.Request, c choice, status int, render func(*bytes.Buffer) error) error {
	var page bytes.Buffer
	if err := render(&page); err != nil {
		return err
	}
	c.announce(w.Header())
	write(w, r, status, mediaHTML, page.Bytes())
	return nil
}

// writePaced is writePage for a page that anybody may ask for. The page must not wait for
// anything while it is rendered.
func (s *server) writePaced(w http.ResponseWriter, r *http.Request, c choice, status int, render func(*bytes.Buffer) error) error {
	return writePage(w, r, c, status, func(page *bytes.Buffer) error {
		return s.paced(r, func() error { return render(page) })
	})
}

// refuse answers a request with the error that its handler returned. It is
// echo's error handler.
func (s *server) refuse(err error, c echo.Context) {
	p := s.problemOf(err)
	if c.Response().Committed {
		s.note(p, err, c.Request())
		// Half an answer is out. Only a broken connection tells the client so.
		panic(http.ErrAbortHandler)
	}
	if p.status == http.StatusMethodNotAllowed {
		p.allow = s.allow[c.Path()]
		if c.Path() == anySlug && s.takesVisits(c.Request()) {
			p.allow += ", POST"
		}
	}
	s.writeRefusal(c.Response(), c.Request(), p, err)
}

// writeRefusal answers with the problem that the error is.
func (s *server) writeRefusal(w http.ResponseWriter, r *http.Request, p *problem, err error) {
	s.note(p, err, r)
	if err := s.writeProblem(w, r, p, err); err != nil {
		s.faults.report("page", err)
		p, t := s.problemOf(err), s.languages.english()
		t.announce(w.Header())
		write(w, r, p.status, mediaText, p.text(t))
	}
}

func (s *server) writeProblem(w http.ResponseWriter, r *http.Request, p *problem, err error) error {
	h := w.Header()
	if h.Get("Vary") == "" {
		h.Set("Vary", "Accept")
	}
	if p.retryAfter > 0 {
		// Whole seconds, as RFC 9110, section 10.2.3, has it.
		h.Set("Retry-After", strconv.FormatInt(wholeSeconds(p.retryAfter), 10))
	}
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.authenticate != "" {
		h.Set("WWW-Authenticate", p.authenticate)
	}
	c, format := s.languages.choose(r), negotiate(r.Header["Accept"])
	var refused *refusedForm
	if format == formatHTML && !errors.As(err, &refused) {
		err := s.writeMessage(w, r, c, p)
		if !errors.Is(err, errBusy) {
			return err
		}
		format = formatText // a line costs little
	}
	if format == formatHTML {
		return writePage(w, r, c, p.status, func(page *bytes.Buffer) error {
			v := formPage{Typed: refused.typed, Problem: p, Lines: refused.lines}
			if refused.read {
				v.Allowance = s.allowance(r.Context(), refused.who)
			}
			return s.pages.form(page, c, v)
		})
	}
	mediaType, body := mediaText, p.text(c.tongue)
	if format == formatJSON {
		mediaType = mediaProblem
		if body, err = p.body(c.tongue); err != nil {
			return err
		}
	}
	c.announce(h)
	write(w, r, p.status, mediaType, body)
	return nil
}

// writeMessage writes the page of a refusal. One sentence without values is the same page for
// every visitor, such as that of an unknown slug.
func (s *server) writeMessage(w http.ResponseWriter, r *http.Request, c choice, p *problem) error {
	render := func(page *bytes.Buffer) error { return s.pages.message(page, c, p) }
	if len(p.message.values) > 0 || p.field != "" || len(p.items) > 0 {
		return s.writePaced(w, r, c, p.status, render)
	}
	return s.writeCached(w, r, c, pageKey{name: p.message.key, status: p.status}, render)
}

// note logs what an operator should know of a refusal: faults of ours, loudly.
func (s *server) note(p *problem, err error, r *http.Request) {
	if p.status < http.StatusInternalServerError {
		return
	}
	var (
		panicked *panicError
		known    *problem
	)
	switch {
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		s.log.Debug("the client left before its answer", "status", 499)
	case errors.As(err, &panicked):
		s.faults.report("panic", err, "value", panicked.value, "stack", string(panicked.stack))
	case errors.As(err, &known): // whoever made it has said what there is to say
	case errors.Is(err, quota.ErrClock):
		s.faults.report("clock", err)
	case errors.Is(err, quota.ErrCannotCount):
		s.faults.report("count", err)
	case errors.Is(err, shortener.ErrUnchecked):
		s.faults.report("reputation", err)
	case errors.Is(err, shortener.ErrUnavailable):
		s.faults.report("store", err)
	case errors.Is(err, errBusy):
		s.faults.report("pages", err)
	case errors.Is(err, errNoPlace):
		s.faults.report("uploads", err)
	default:
		s.faults.report("internal", err)
	}
}
