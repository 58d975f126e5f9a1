package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"snip/quota"
	"snip/shortener"
)

// storePause is what a 503 asks for: long enough for a store to be reopened, and
// short enough for a person to wait.
const storePause = 5 * time.Second

// checkPause is what a 503 asks for when a destination could not be checked, and it is
// not known for how long that goes on: for longer than trouble with a store.
const checkPause = time.Minute

// problem is an answer that refuses. It is an error, so that a handler can return
// one that nothing below knows, and has no language until it is written.
type problem struct {
	status  int
	code    string
	field   string  // which field is at fault, as the API calls it; empty where none is
	message message // continues the field's name where there is one, else stands for itself
	named   string  // a field of an item that the message names, of a client's choosing
	items   []itemProblem

	retryAfter   time.Duration // above zero on every 429 and 503, and where one with the same Idempotency-Key is in progress
	allow        string        // the Allow header of a 405
	authenticate string        // the WWW-Authenticate header of a 401
	written      []written     // in each language, where it was written down beforehand
}

func (p *problem) Error() string { return p.code + ": " + p.message.key }

// itemProblem is what is wrong with one item of a batch.
type itemProblem struct {
	index int // from 0
	line  int // where the items came as lines, from 1
	*problem
}

// at says where among the others the item stands, and what is wrong with it.
func (p itemProblem) at(t *tongue) string {
	if p.line > 0 {
		return t.render(say("problem.at_line", "Line", p.line, "Fault", p.detail(t)))
	}
	return t.render(say("problem.at_index", "Index", p.index, "Fault", p.detail(t)))
}

// about returns the problem with the field that its message names.
func (p *problem) about(name string) *problem {
	p.named = shortened(name)
	return p
}

// written is a problem in one language.
type written struct {
	detail string
	body   []byte // in the format of RFC 9457
}

func (p *problem) detail(t *tongue) string {
	switch {
	case p.written != nil:
		return p.written[t.index].detail
	case p.items != nil:
		first := p.items[0]
		if first.line > 0 {
			return t.render(say("problem.lines", "Count", len(p.items), "Line", first.line, "Fault", first.detail(t)))
		}
		return t.render(say("problem.items", "Count", len(p.items), "Index", first.index, "Fault", first.detail(t)))
	case p.field != "":
		return p.field + ": " + t.render(p.message)
	}
	return t.render(p.message)
}

// text is the problem as lines: one, or one for each item that is wrong.
func (p *problem) text(t *tongue) []byte {
	if p.items == nil {
		return []byte(p.detail(t) + "\n")
	}
	var lines []byte
	for _, item := range p.items {
		lines = append(append(lines, item.at(t)...), '\n')
	}
	return lines
}

func (p *problem) body(t *tongue) ([]byte, error) {
	if p.written != nil {
		return p.written[t.index].body, nil
	}
	type item struct {
		Index  int    `json:"index"`
		Line   int    `json:"line,omitzero"`
		Field  string `json:"field,omitempty"`
		Code   string `json:"code"`
		Detail string `json:"detail"`
	}
	var items []item
	for _, p := range p.items {
		items = append(items, item{p.index, p.line, cmp.Or(p.field, p.named), p.code, p.detail(t)})
	}
	return encodeJSON(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Code   string `json:"code"`
		Field  string `json:"field,omitempty"`
		Detail string `json:"detail"`
		Errors []item `json:"errors,omitempty"`
	}{"about:blank", http.StatusText(p.status), p.status, p.code, p.field, p.detail(t), items}) // RFC 9457 gives about:blank the status's title
}

func newProblem(status int, code string, m message) *problem {
	return &problem{status: status, code: code, message: m}
}

func (s *server) foreignPage() *problem {
	return newProblem(http.StatusForbidden, "forbidden", say("problem.foreign_page", "Address", s.short))
}

func invalidRequest(m message) *problem {
	return newProblem(http.StatusBadRequest, "invalid_request", m)
}

// invalidField is a problem with the named field, whose name the reason continues.
func invalidField(field string, reason message) *problem {
	p := invalidRequest(reason)
	p.field = field
	return p
}

// sentence is what a reason of package shortener says.
func sentence(r shortener.Reason) message { return message{"reason." + r.Name, r.Values} }

// limitedError is a refusal for want of a throttle's token or of quota. It does
// not say which: the answer must not either.
type limitedError struct {
	wait   time.Duration
	who    quota.Client
	change bool // whether a change of a link was asked for, and no new link
}

func (e *limitedError) Error() string { return fmt.Sprintf("limited for %s", e.wait) }

// problemOf is where an error becomes a status, a code and a sentence. What it
// does not know is a fault of ours.
func (s *server) problemOf(err error) *problem {
	if limited, ok := errors.AsType[*limitedError](err); ok {
		refusal := s.tooManyChanges
		if !limited.change {
			refusal = s.tooManyOf(limited.who)
		}
		p := *refusal
		p.retryAfter = max(limited.wait, time.Second) // the turn of the day may have come meanwhile
		return &p
	}
	if batch, ok := errors.AsType[*shortener.BatchError](err); ok {
		var lines []int
		if refused, ok := errors.AsType[*refusedForm](err); ok {
			lines = refused.lines
		}
		return s.itemsProblem(batch.Items, lines)
	}
	if known, ok := errors.AsType[*problem](err); ok {
		return known
	}
	var invalid *shortener.InvalidError
	switch {
	case errors.As(err, &invalid):
		p := invalidField(invalid.Field, sentence(invalid.Reason))
		p.code = invalidCode(invalid.Kind)
		return p
	case errors.Is(err, shortener.ErrSlugTaken):
		return &problem{status: http.StatusConflict, code: "slug_taken", field: "slug", message: say("reason.is_taken")}
	case errors.Is(err, shortener.ErrKeyReused):
		return newProblem(http.StatusUnprocessableEntity, "idempotency_key_reused", say("problem.key_reused"))
	case errors.Is(err, shortener.ErrInProgress):
		p := newProblem(http.StatusConflict, "idempotency_in_progress", say("problem.in_progress"))
		p.retryAfter = time.Second
		return p
	case errors.Is(err, shortener.ErrNotFound), errors.Is(err, echo.ErrNotFound):
		return newProblem(http.StatusNotFound, "not_found", say("problem.not_found"))
	case errors.Is(err, shortener.ErrNotYours):
		return newProblem(http.StatusNotFound, "not_found", say("problem.not_yours"))
	case errors.Is(err, shortener.ErrTakenDown):
		return newProblem(http.StatusGone, "gone", say("problem.taken_down"))
	case errors.Is(err, shortener.ErrLocked):
		return newProblem(http.StatusForbidden, "forbidden", say("problem.locked"))
	case errors.Is(err, shortener.ErrBlocked):
		return newProblem(http.StatusForbidden, "forbidden", say("problem.blocked"))
	case errors.Is(err, shortener.ErrGone):
		return newProblem(http.StatusGone, "gone", say("problem.gone"))
	case errors.Is(err, echo.ErrMethodNotAllowed):
		return newProblem(http.StatusMethodNotAllowed, "method_not_allowed", say("problem.method"))
	case errors.Is(err, shortener.ErrUnchecked):
		p := unavailable(say("problem.unchecked"))
		p.retryAfter = checkPause
		if paused, ok := errors.AsType[*shortener.PausedError](err); ok {
			p.retryAfter = max(paused.Until.Sub(s.now()), time.Second)
		}
		return p
	case errors.Is(err, errBusy):
		p := unavailable(say("problem.busy"))
		p.retryAfter = busyPause
		return p
	case errors.Is(err, errNoPlace):
		p := unavailable(say("problem.no_place", "Seconds", wholeSeconds(placePause), "Max", maxBody))
		p.retryAfter = placePause
		return p
	case errors.Is(err, shortener.ErrUnavailable), errors.Is(err, quota.ErrCannotCount),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable(say("problem.unavailable"))
	default:
		return newProblem(http.StatusInternalServerError, "internal", say("problem.internal"))
	}
}

// itemsProblem has the status and code of the first item that is not refused for
// its slug being taken: that is a matter of the moment, and what else is wrong is not.
// The lines are those that the items came as, if they did.
func (s *server) itemsProblem(wrong []shortener.ItemError, lines []int) *problem {
	all := &problem{}
	for _, item := range wrong {
		p := s.problemOf(item.Err)
		if all.items == nil || all.status == http.StatusConflict && p.status != http.StatusConflict {
			all.status, all.code = p.status, p.code
		}
		found := itemProblem{index: item.Index, problem: p}
		if lines != nil {
			found.line = lines[item.Index]
		}
		all.items = append(all.items, found)
	}
	return all
}

func unavailable(m message) *problem {
	p := newProblem(http.StatusServiceUnavailable, "unavailable", m)
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

// tooMany returns a refusal that all limits share, written down beforehand: a
// script that does not heed it asks for it thousands of times a second.
func tooMany(c *catalogue, m message) (*problem, error) {
	p := newProblem(http.StatusTooManyRequests, "rate_limited", m)
	beforehand := *p
	for _, t := range c.tongues {
		body, err := p.body(t)
		if err != nil {
			return nil, err
		}
		beforehand.written = append(beforehand.written, written{p.detail(t), body})
	}
	return &beforehand, nil
}

// tooManyOf returns the refusal for one client. Those with limits of their own are
// few, and get one that is made for them.
func (s *server) tooManyOf(who quota.Client) *problem {
	rules := s.pages.rules
	key := who.Key().ID != 0
	if rules.Daily = s.service.Limits(who).Client; rules.Daily == s.pages.rules.Daily && !key {
		return s.tooMany
	}
	if rules.Daily == quota.Unlimited {
		rules.Daily = 0
	}
	return newProblem(http.StatusTooManyRequests, "rate_limited", limits(rules, s.pages.frame.Contact, key))
}

// limits is what a limited client is told. It is made of the settings alone, so
// that it is the same for the throttle and for every level of the quota, and
// shows nobody what others have used.
func limits(r Rules, contact string, key bool) message {
	daily, every := say("limited.daily", "Count", r.Daily), pace(r.Every)
	rules := say("limited.neither")
	switch {
	case key && r.Daily > 0 && every != nil:
		rules = say("limited.key_both", "Daily", daily, "Pace", *every)
	case key && r.Daily > 0:
		rules = say("limited.key_one", "Rule", daily)
	case r.Daily > 0 && every != nil:
		rules = say("limited.both", "Daily", daily, "Pace", *every)
	case r.Daily > 0:
		rules = say("limited.one", "Rule", daily)
	case every != nil:
		rules = say("limited.one", "Rule", *every)
	}
	limited := say("problem.limited", "Rules", rules)
	if key { // nobody shares it by chance
		limited = say("problem.limited_key", "Rules", rules)
	}
	return withContact(limited, contact)
}

// withContact adds whom the limited may ask, where that is known.
func withContact(limited message, contact string) message {
	if contact == "" {
		return limited
	}
	return say("problem.limited_contact", "Limited", limited, "Contact", contact)
}
