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
	now       func() time.Time
}

// frame is what surrounds a page.
type frame struct {
	Title    string
	Unlisted bool // kept out of search engines
	Script   bool

	Prefix     string // the path that every route begins with, without a slash at its end
	Contact    string
	ContactURL string
}

// Asset returns the path of a file of package static.
func (f frame) Asset(name string) string { return f.Prefix + "/-/" + name }

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
	return &pages{templates: parsed, frame: f, rules: c.Rules, now: c.Now}, nil
}

// formPage is the form, with what was typed and why it was refused, if it was.
type formPage struct {
	URL       string         // what was typed
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

// resultPage shows a link just made.
type resultPage struct {
	ShortURL    string
	Destination string
	ExpiresAt   time.Time // zero is never
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
		URL  string
		Card card // empty; the script fills a copy of it
	}{
		frame:         p.frame.page(title, v.Problem != nil, true),
		allowanceLine: p.allowanceLine(v.Allowance),
		refusalBox:    p.refusalBox(v.Problem),
		URL:           v.URL,
	}
	return p.templates.ExecuteTemplate(w, "form", data)
}

// card is a link just made, as it is shown.
type card struct {
	ShortURL    string
	Destination string
	Ends        *clock // nil is never
}

func (p *pages) result(w io.Writer, v resultPage) error {
	data := struct {
		frame
		Card card
	}{
		frame: p.frame.page("Link made – Snip", true, true),
		Card:  card{ShortURL: v.ShortURL, Destination: v.Destination},
	}
	if !v.ExpiresAt.IsZero() {
		ends := dated(v.ExpiresAt)
		data.Card.Ends = &ends
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
	Problem *problem
	Detail  string
	Invalid bool   // whether what was typed is at fault
	Limited bool   // either Soon or Later is set then
	Soon    string // such as "in 8 seconds"
	Later   clock
}

// soon is up to where a wait is told in seconds. The script has the same bound.
const soon = 90 * time.Second

func (p *pages) refusalBox(v *problem) refusalBox {
	if v == nil {
		return refusalBox{}
	}
	box := refusalBox{
		Problem: v,
		Detail:  v.Detail,
		Invalid: v.Status == http.StatusBadRequest,
		Limited: v.Status == http.StatusTooManyRequests,
	}
	// The reasons continue the field's name, which means nothing on the page.
	if reason, ok := strings.CutPrefix(v.Detail, "url: "); ok {
		box.Detail = "This link " + reason
	}
	switch {
	case !box.Limited:
	case v.retryAfter <= soon:
		box.Soon = "in " + count(wholeSeconds(v.retryAfter), "second")
	default:
		box.Later = timeOfDay(p.now().Add(v.retryAfter))
	}
	return box
}
