package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"snip/quota"
	"snip/shortener"
)

// storePause is what a 503 asks for: long enough for a store to be reopened, and
// short enough for a person to wait.
const storePause = 5 * time.Second

// problem is an answer that refuses, in the format of RFC 9457. It is an error,
// so that a handler can return one that nothing below knows.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`

	retryAfter   time.Duration // above zero on every 429 and 503
	allow        string        // the Allow header of a 405
	authenticate string        // the WWW-Authenticate header of a 401
	encoded      []byte        // the whole in JSON, where it was made beforehand
}

func (p *problem) Error() string { return p.Code + ": " + p.Detail }

// newProblem returns a problem without a type of its own, which RFC 9457 calls
// about:blank and whose title is the status's.
func newProblem(status int, code, format string, args ...any) *problem {
	return &problem{
		Type:   "about:blank",
		Title:  http.StatusText(status),
		Status: status,
		Code:   code,
		Detail: fmt.Sprintf(format, args...),
	}
}

func foreignPage() *problem {
	return newProblem(http.StatusForbidden, "forbidden", "Another site sent this request. Use the pages of this one, or a program that is not a browser.")
}

func invalidRequest(format string, args ...any) *problem {
	return newProblem(http.StatusBadRequest, "invalid_request", format, args...)
}

// limitedError is a refusal for want of a throttle's token or of quota. It does
// not say which: the answer must not either.
type limitedError struct {
	wait time.Duration
	who  quota.Client
}

func (e *limitedError) Error() string { return fmt.Sprintf("limited for %s", e.wait) }

// problemOf is where an error becomes a status, a code and a sentence. What it
// does not know is a fault of ours.
func (s *server) problemOf(err error) *problem {
	if limited, ok := errors.AsType[*limitedError](err); ok {
		p := *s.tooManyOf(limited.who)
		p.retryAfter = max(limited.wait, time.Second) // the turn of the day may have come meanwhile
		return &p
	}
	if known, ok := errors.AsType[*problem](err); ok {
		return known
	}
	var invalid *shortener.InvalidError
	switch {
	case errors.As(err, &invalid):
		return newProblem(http.StatusBadRequest, invalidCode(invalid.Kind), "%s.", invalid.Error())
	case errors.Is(err, shortener.ErrSlugTaken):
		return newProblem(http.StatusConflict, "slug_taken", "slug: is taken; choose another, or leave it out to be given a random one.")
	case errors.Is(err, shortener.ErrNotFound), errors.Is(err, echo.ErrNotFound):
		return newProblem(http.StatusNotFound, "not_found", "No link has this address. Check that it was copied in full, upper and lower case included.")
	case errors.Is(err, shortener.ErrNotYours):
		return newProblem(http.StatusNotFound, "not_found", "There is no link of that name that this token or key manages.")
	case errors.Is(err, shortener.ErrTakenDown):
		return newProblem(http.StatusGone, "gone", "This link was taken down by the operator of this service.")
	case errors.Is(err, shortener.ErrLocked):
		return newProblem(http.StatusForbidden, "forbidden", "This link was taken down by the operator of this service, so it cannot be changed.")
	case errors.Is(err, shortener.ErrGone):
		return newProblem(http.StatusGone, "gone", "This link has ended and leads nowhere any more.")
	case errors.Is(err, echo.ErrMethodNotAllowed):
		return newProblem(http.StatusMethodNotAllowed, "method_not_allowed", "This address does not know that method; the Allow header names those that it knows.")
	case errors.Is(err, shortener.ErrUnavailable), errors.Is(err, quota.ErrCannotCount),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable("The service cannot do this just now. Try again in a few seconds.")
	default:
		return newProblem(http.StatusInternalServerError, "internal", "Something went wrong here. It has been noted.")
	}
}

func unavailable(detail string) *problem {
	p := newProblem(http.StatusServiceUnavailable, "unavailable", "%s", detail)
	p.retryAfter = storePause
	return p
}

func invalidCode(kind error) string {
	switch {
	case errors.Is(kind, shortener.ErrInvalidURL):
		return "invalid_url"
	case errors.Is(kind, shortener.ErrInvalidSlug):
		return "invalid_slug"
	case errors.Is(kind, shortener.ErrInvalidExpiry):
		return "invalid_expiry"
	case errors.Is(kind, shortener.ErrBlockedDestination):
		return "blocked_destination"
	default:
		return "invalid_request"
	}
}

// tooMany returns the refusal that all limits share, written down beforehand: a
// script that does not heed it asks for it thousands of times a second.
func tooMany(r Rules, contact string) (*problem, error) {
	p := newProblem(http.StatusTooManyRequests, "rate_limited", "%s", limits(r, contact))
	var err error
	p.encoded, err = encodeJSON(p)
	return p, err
}

// tooManyOf returns the refusal for one client. Keys are few, and each has its own.
func (s *server) tooManyOf(who quota.Client) *problem {
	if key := who.Key(); key.ID != 0 {
		return newProblem(http.StatusTooManyRequests, "rate_limited", "%s", keyLimits(key, s.pages.rules, s.pages.frame.Contact))
	}
	return s.tooMany
}

// limits is what a limited client is told. It is made of the settings alone, so
// that it is the same for the throttle and for every level of the quota, and
// shows nobody what others have used.
func limits(r Rules, contact string) string {
	text := "No more links can be made just now."
	if rules := r.text(); rules != "" {
		text = "This client may make " + rules + "."
	}
	return text + " An address may be shared by several people." + waitAndTry(contact)
}

// keyLimits is limits for the holder of a key.
func keyLimits(key quota.Key, r Rules, contact string) string {
	r.Daily = key.Limit
	return "This key may make " + r.text() + "." + waitAndTry(contact)
}

// text tells the rules that are on.
func (r Rules) text() string {
	var rules []string
	if r.Daily > 0 {
		rules = append(rules, count(r.Daily, "link")+" per UTC day")
	}
	if every := pace(r.Every); every != "" {
		rules = append(rules, every)
	}
	return strings.Join(rules, " and ")
}

func waitAndTry(contact string) string {
	text := " Wait as long as the Retry-After header says, then try again."
	if contact != "" {
		text += " Contact: " + contact + "."
	}
	return text
}
