package web

import (
	"embed"
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

//go:embed templates/*.html
var templates embed.FS

// pages renders every HTML page. Its methods may be called at once.
type pages struct {
	templates *template.Template
	frame     frame // without what differs from page to page
	rules     Rules
	api       string // what a slug is appended to, for programs
	now       func() time.Time
}

// frame is what surrounds a page.
type frame struct {
	Title    string
	Unlisted bool // kept out of search engines
	Script   bool
	Social   *social // nil leaves it to other sites what they show of the page

	Prefix     string // the path that every route begins with, without a slash at its end
	Contact    string
	ContactURL string
}

// social is what other sites show of a page, by the tags of https://ogp.me.
type social struct{ Title, Description string }

// Asset returns the path of a file of package static.
func (f frame) Asset(name string) string { return f.Prefix + "/-/" + name }

// Picture returns the path of a link's QR code.
func (f frame) Picture(slug shortener.Slug) string { return f.Prefix + "/" + string(slug) + "/qr.svg" }

// page returns the frame of one page.
func (f frame) page(title string, unlisted, script bool) frame {
	f.Title, f.Unlisted, f.Script = title, unlisted, script
	return f
}

func newPages(c Config) (*pages, error) {
	parsed, err := template.ParseFS(templates, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	f := frame{
		Prefix:     prefixOf(c.PublicURL),
		Contact:    c.Contact,
		ContactURL: c.Contact,
	}
	if strings.Contains(c.Contact, "@") && !strings.Contains(c.Contact, ":") {
		f.ContactURL = "mailto:" + c.Contact
	}
	return &pages{templates: parsed, frame: f, rules: c.Rules, api: shortBase(c.PublicURL) + "api/links/", now: c.Now}, nil
}

// formPage is the form, with what was typed and why it was refused, if it was.
type formPage struct {
	Typed     shortener.NewLink
	Problem   *problem       // nil on the first visit
	Allowance *allowanceView // nil while it cannot be read
}

// allowanceView is the body of GET /api/quota.
type allowanceView struct {
	Limit     *int64    `json:"limit"` // these three are null when the client level is off
	Used      *int64    `json:"used"`
	Remaining *int64    `json:"remaining"`
	ResetsAt  time.Time `json:"resets_at"`
	Open      bool      `json:"open"`
}

// resultPage shows a link just made, and the token that manages it.
type resultPage struct {
	ShortURL string
	Link     shortener.Link
	Token    shortener.Token
}

func (p *pages) form(w io.Writer, v formPage) error {
	title := "Snip: short links"
	if v.Problem != nil {
		title = v.Problem.Title + " – Snip" // the first thing that a screen reader says of a new page
	}
	data := struct {
		frame
		allowanceLine
		refusalBox
		bounds
		Typed shortener.NewLink
		More  bool // whether what most people leave empty is shown
		Card  card // empty; the script fills a copy of it
	}{
		frame:         p.frame.page(title, v.Problem != nil, true),
		allowanceLine: p.allowanceLine(v.Allowance),
		refusalBox:    p.refusalBox(v.Problem),
		Typed:         v.Typed,
	}
	data.More = data.InMore() || v.Typed != shortener.NewLink{URL: v.Typed.URL}
	return p.templates.ExecuteTemplate(w, "form", data)
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

func (p *pages) result(w io.Writer, v resultPage) error {
	data := struct {
		frame
		Card card
	}{
		frame: p.frame.page("Link made – Snip", true, true),
		Card: card{
			ShortURL:    v.ShortURL,
			Destination: v.Link.Destination,
			Ends:        endOf(v.Link.ExpiresAt),
			MaxVisits:   v.Link.MaxVisits,
			ManageURL:   fmt.Sprintf("%s/-/manage#%s.%s", p.frame.Prefix, v.Link.Slug, v.Token),
			Picture:     p.frame.Picture(v.Link.Slug),
		},
	}
	return p.templates.ExecuteTemplate(w, "result", data)
}

// message is the page of a refusal that has no form to return to: 404, 410, 405, 500 and so on.
func (p *pages) message(w io.Writer, v *problem) error {
	heading := v.Title
	switch v.Status { // the standard's titles are for programs
	case http.StatusNotFound:
		heading = "Nothing here"
	case http.StatusGone:
		heading = "This link has ended"
	case http.StatusMethodNotAllowed:
		heading = "That does not work here"
	case http.StatusForbidden:
		heading = "Refused"
	case http.StatusServiceUnavailable:
		heading = "Back in a moment"
	case http.StatusInternalServerError:
		heading = "Something went wrong"
	}
	data := struct {
		frame
		Heading string
		Detail  string
	}{p.frame.page(heading+" – Snip", true, false), heading, v.Detail}
	return p.templates.ExecuteTemplate(w, "message", data)
}

// allowanceLine says what is left, and when there is more.
type allowanceLine struct {
	Limit     int64 // 0 leaves the daily rule out
	Remaining int64
	Counted   bool // whether Remaining is known and true
	Closed    bool // whether a creation now would be refused for want of quota
	Resets    clock
	Pace      string // empty leaves the pace out
}

func (p *pages) allowanceLine(v *allowanceView) allowanceLine {
	line := allowanceLine{Limit: p.rules.Daily, Pace: pace(p.rules.Every)}
	if v == nil {
		line.Resets = timeOfDay(quota.DayOf(p.now()).End)
		return line
	}
	line.Closed = !v.Open
	line.Resets = timeOfDay(v.ResetsAt)
	if v.Limit != nil && v.Remaining != nil {
		line.Limit, line.Remaining = *v.Limit, *v.Remaining
		// Where a wider level is closed, what is left of the client's own is no use.
		line.Counted = v.Open || *v.Remaining == 0
	}
	return line
}

// refusalBox says why there is no link and when to come back.
type refusalBox struct {
	fieldLeads
	Field   string // which field is at fault, as the API calls it; empty where none is
	Detail  string
	Boxed   bool   // whether it is told in the box, and not beside a field below it
	Limited bool   // either Soon or Later is set then
	Soon    string // such as "in 8 seconds"
	Later   clock
}

// InMore reports whether the field at fault is one that most people leave empty.
func (b refusalBox) InMore() bool { return b.Field != "" && !b.Boxed }

// At is what is told beside a field.
func (b refusalBox) At(field string) fieldProblem {
	v := b.fieldLeads.At(field)
	if b.Field == field {
		v.Detail = b.Detail
	}
	return v
}

// soon is up to where a wait is told in seconds. The script has the same bound.
const soon = 90 * time.Second

func (p *pages) refusalBox(v *problem) refusalBox {
	if v == nil {
		return refusalBox{}
	}
	box := refusalBox{
		Detail:  v.Detail,
		Limited: v.Status == http.StatusTooManyRequests,
	}
	// The reasons continue the field's name, which means nothing on the page.
	for field, lead := range box.Leads() {
		for _, prefix := range []string{field + ": ", fmt.Sprintf("The body cannot be used: the field %q ", field)} {
			if reason, ok := strings.CutPrefix(v.Detail, prefix); ok {
				box.Field, box.Detail = field, lead+reason
			}
		}
	}
	box.Boxed = box.Field == "" || box.Field == "url"
	switch {
	case !box.Limited:
	case v.retryAfter <= soon:
		box.Soon = "in " + count(wholeSeconds(v.retryAfter), "second")
	default:
		box.Later = timeOfDay(p.now().Add(v.retryAfter))
	}
	return box
}

// fieldProblem is the place beside a field where the page says what is wrong.
type fieldProblem struct {
	Field  string
	Lead   string
	Detail string // empty where nothing is
}

// fieldLeads is what the reasons continue on a page. The script finds them there.
type fieldLeads struct{}

// Leads returns them by the names that the API gives the fields.
func (fieldLeads) Leads() map[string]string {
	return map[string]string{
		"url":        "This link ",
		"slug":       "This name ",
		"expires_at": "The end ",
		"max_visits": "The number of visits ",
	}
}

// At is a field with which nothing is wrong.
func (l fieldLeads) At(field string) fieldProblem {
	return fieldProblem{Field: field, Lead: l.Leads()[field]}
}
