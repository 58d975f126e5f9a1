package web

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"
	"time"

	"snip/quota"
	"snip/shortener"
)

// pageCSP is the Content-Security-Policy of every page. A page is made of the
// files of package static and nothing else, so that a hostile destination that
// got past the escaping would still find nothing to run and nowhere to send to.
const pageCSP = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// visitCSP is that of the page whose form leads to another site: browsers hold each redirect
// after a form against form-action, and the destination may redirect to an application. The
// page has nothing else that could be sent.
var visitCSP = strings.Replace(pageCSP, "form-action 'self'; ", "", 1)

// pages renders every HTML page. Its methods may be called at once.
type pages struct {
	languages *catalogue
	templates []*template.Template // in each language
	spoken    map[string][]string  // the keys that each script says
	frame     frame                // without what differs from page to page
	rules     Rules
	keysOnly  bool
	api       string // what a slug is appended to, for programs
	now       func() time.Time
}

func newPages(c Config, languages *catalogue) (*pages, error) {
	f := frame{
		Prefix:     prefixOf(c.PublicURL),
		Contact:    strings.TrimPrefix(c.Contact, "mailto:"),
		ContactURL: c.Contact,
	}
	if strings.Contains(c.Contact, "@") && !strings.Contains(c.Contact, ":") {
		f.ContactURL = "mailto:" + c.Contact
	}
	p := &pages{languages: languages, frame: f, rules: c.Rules, keysOnly: c.KeysOnly, api: shortBase(c.PublicURL) + "api/links/", now: c.Now}
	for _, t := range languages.tongues {
		parsed, err := parseTemplates(t)
		if err != nil {
			return nil, err
		}
		p.templates = append(p.templates, parsed)
	}
	var err error
	p.spoken, err = spokenBy(languages)
	return p, err
}

// formPage is the form, with what was typed and why it was refused, if it was.
type formPage struct {
	Typed     typedLink
	Problem   *problem       // nil on the first visit
	Allowance *allowanceView // nil while it cannot be read
	Lines     []int          // of the links of a batch, where they came as lines
}

// allowanceView is the body of GET /api/quota.
type allowanceView struct {
	Limit     *int64    `json:"limit"` // these three are null when the client level is off
	Used      *int64    `json:"used"`
	Remaining *int64    `json:"remaining"`
	ResetsAt  time.Time `json:"resets_at"`
	Open      bool      `json:"open"`
}

// resultPage shows links just made, and the tokens that manage them.
type resultPage struct {
	Short string // what a slug is appended to
	Made  []shortener.Made
	Batch bool // whether they were asked for as a list, be it of one
}

func (p *pages) form(w io.Writer, c choice, v formPage) error {
	// The title is the first thing that a screen reader says of a new page.
	f := p.page(c, say("form.refused"), snipJS, "links.js", "form.js")
	if v.Problem == nil {
		f.Title, f.Unlisted = c.render(say("title.form")), false
	}
	f.switchAt("/")
	data := struct {
		frame
		allowanceLine
		refusalBox
		bounds
		KeysOnly bool
		MaxList  int64 // links that may be made at once

		Typed typedLink
		More  bool   // whether what most people leave empty is shown
		Cards []card // an empty one; the script fills copies of it
	}{
		frame:         f,
		allowanceLine: p.allowanceLine(c.tongue, v.Allowance),
		refusalBox:    p.refusalBox(c.tongue, v),
		KeysOnly:      p.keysOnly,
		MaxList:       shortener.MaxBatch,
		Typed:         v.Typed,
		Cards:         make([]card, 1),
	}
	if data.Limit > 0 {
		data.MaxList = min(data.MaxList, data.Limit)
	}
	data.More = data.InMore() || v.Typed != typedLink{URL: v.Typed.URL}
	return p.execute(w, c, "form", data)
}

// bounds are what the hints say of slugs and visits.
type bounds struct{}

func (bounds) MinSlug() int   { return shortener.MinSlug }
func (bounds) MaxSlug() int   { return shortener.MaxSlug }
func (bounds) MaxVisits() int { return shortener.MaxVisits }

// card is a link just made, as it is shown.
type card struct {
	ShortURL    string
	Destination string
	Ends        *clock // nil is never
	MaxVisits   int64  // 0 is any number
	ManageURL   string // its token stands in the fragment, which browsers send nowhere
	Picture     string // the path of its QR code
}

func (p *pages) result(w io.Writer, c choice, v resultPage) error {
	heading := say("made.heading")
	if v.Batch {
		heading = say("made.list", "Count", len(v.Made))
	}
	f := p.page(c, heading, snipJS)
	f.Switch = nil // there is no way back to the tokens
	data := struct {
		frame
		Heading string
		Batch   bool
		Cards   []card
	}{frame: f, Heading: c.render(heading), Batch: v.Batch}
	for _, m := range v.Made {
		data.Cards = append(data.Cards, card{
			ShortURL:    v.Short + string(m.Link.Slug),
			Destination: m.Link.Destination,
			Ends:        c.endOf(m.Link.ExpiresAt),
			MaxVisits:   m.Link.MaxVisits,
			ManageURL:   fmt.Sprintf("%s#%s.%s", f.To("/-/manage"), m.Link.Slug, m.Token),
			Picture:     f.Picture(m.Link.Slug),
		})
	}
	return p.execute(w, c, "result", data)
}

// message is the page of a refusal that has no form to return to: 404, 410, 405, 500 and so on.
func (p *pages) message(w io.Writer, c choice, v *problem) error {
	heading := say("message.refused") // the standard's titles are for programs
	switch v.status {
	case http.StatusNotFound:
		heading = say("message.not_found")
	case http.StatusGone:
		heading = say("message.gone")
	case http.StatusMethodNotAllowed:
		heading = say("message.method")
	case http.StatusServiceUnavailable:
		heading = say("message.unavailable")
	case http.StatusInternalServerError:
		heading = say("message.internal")
	}
	f := p.page(c, heading)
	if v.status >= http.StatusInternalServerError {
		f.switchAt("/") // the address may be a short link's, where the query would be taken for a visitor's
	}
	data := struct {
		frame
		Heading string
		Detail  string
	}{f, c.render(heading), v.detail(c.tongue)}
	return p.execute(w, c, "message", data)
}

// allowanceLine says what is left, and when there is more.
type allowanceLine struct {
	Limit     int64 // 0 leaves the daily rule out
	Remaining int64
	Counted   bool // whether Remaining is known and true
	Closed    bool // whether a creation now would be refused for want of quota
	Blocked   bool // whether the operator lets the client make none, for as long as that holds
	Resets    clock
	Pace      string // a sentence; empty leaves it out
}

func (p *pages) allowanceLine(t *tongue, v *allowanceView) allowanceLine {
	line := allowanceLine{Limit: p.rules.Daily}
	if p.keysOnly {
		line.Limit = 0 // each key has its own
	}
	if every := pace(p.rules.Every); every != nil {
		line.Pace = t.render(say("allowance.pace", "Pace", *every))
	}
	if v == nil {
		line.Resets = timeOfDay(quota.DayOf(p.now()).End)
		return line
	}
	line.Closed = !v.Open
	line.Resets = timeOfDay(v.ResetsAt)
	if v.Limit != nil && v.Remaining != nil {
		line.Limit, line.Remaining = *v.Limit, *v.Remaining
		line.Blocked = line.Limit == 0
		// Where a wider level is closed, what is left of the client's own is no use.
		line.Counted = v.Open || *v.Remaining == 0
	}
	return line
}

// refusalBox says why there is no link and when to come back.
type refusalBox struct {
	tongue  *tongue
	Field   string // which field is at fault, as the API calls it; empty where none is
	Detail  string
	Wrong   []string // what is wrong with which line of a list
	Boxed   bool     // whether it is told in the box, and not beside a field below it
	Limited bool     // either Soon or Later is set then
	Fewer   bool     // whether there is something left, but not for the whole list
	Soon    int64    // in seconds
	Later   clock
}

// InMore reports whether the field at fault is one that most people leave empty.
func (b refusalBox) InMore() bool { return b.Field != "" && !b.Boxed }

// At is what is told beside a field.
func (b refusalBox) At(field string) fieldProblem {
	told, _ := lead(field, "{{.Reason}}")
	v := fieldProblem{Field: field, Lead: b.tongue.render(told)}
	if b.Field == field {
		v.Detail = b.Detail
	}
	return v
}

// soon is up to where a wait is told in seconds. The script has the same bound.
const soon = 90 * time.Second

func (p *pages) refusalBox(t *tongue, v formPage) refusalBox {
	box := refusalBox{tongue: t}
	if v.Problem == nil {
		return box
	}
	box.Limited = v.Problem.status == http.StatusTooManyRequests
	box.Field, box.Detail = told(t, v.Problem)
	for _, item := range v.Problem.items {
		_, detail := told(t, item.problem)
		box.Wrong = append(box.Wrong, t.render(say("refused.line", "Line", cmp.Or(item.line, item.index+1), "Problem", detail)))
	}
	box.Boxed = box.Field == "" || box.Field == "url"
	if v.Allowance != nil {
		left := valueOf(v.Allowance.Remaining)
		box.Fewer = 0 < left && left < int64(len(v.Lines))
	}
	switch {
	case !box.Limited:
	case v.Problem.retryAfter <= soon:
		box.Soon = wholeSeconds(v.Problem.retryAfter)
	default:
		box.Later = timeOfDay(p.now().Add(v.Problem.retryAfter))
	}
	return box
}

// told is what a problem says on a page, and of which of its fields.
func told(t *tongue, p *problem) (field, detail string) {
	if m, ok := lead(p.field, p.message); ok {
		return p.field, t.render(m)
	}
	return "", p.detail(t)
}

// fieldProblem is the place beside a field where the page says what is wrong.
type fieldProblem struct {
	Field  string
	Lead   string // what a reason continues, for the script to put it in
	Detail string // empty where nothing is
}

// lead returns what a reason says on a page, where the API's name of the field
// means nothing.
func lead(field string, reason any) (m message, ok bool) {
	switch field {
	case "url":
		m = say("lead.url", "Reason", reason)
	case "slug":
		m = say("lead.slug", "Reason", reason)
	case "expires_at":
		m = say("lead.expires_at", "Reason", reason)
	case "max_visits":
		m = say("lead.max_visits", "Reason", reason)
	default:
		return message{}, false
	}
	return m, true
}
