package web

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"snip/shortener"
)

// shownLink is a link as anybody may see it.
type shownLink struct {
	Slug      shortener.Slug `json:"slug"`
	ShortURL  string         `json:"short_url"`
	URL       *string        `json:"url"` // null where each visit is counted: it would be one for free
	CreatedAt time.Time      `json:"created_at"`
	ExpiresAt *time.Time     `json:"expires_at"` // null is never
}

// preview shows where a link leads, and does not go there.
func (s *server) preview(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Vary", "Accept, User-Agent")
	link, err := s.shown(r.Context(), previewed(r.URL.Path))
	if err != nil {
		return err
	}
	short, limited := s.short+string(link.Slug), hidesTarget(link)
	wanted := negotiate(r.Header["Accept"])
	if s.agents.visitorNamed(r.Header) == shortener.Fetcher { // and takes anything, but reads tags of pages
		wanted = formatHTML
	}
	switch {
	case wanted == formatHTML:
		return s.writePreview(w, r, link, false)
	case wanted == formatText && limited:
		c := s.languages.choose(r)
		c.announce(w.Header())
		write(w, r, http.StatusOK, mediaText, []byte(c.render(say("preview.limited_line"))+"\n"))
		return nil
	case wanted == formatText:
		write(w, r, http.StatusOK, mediaText, []byte(link.Destination+"\n"))
		return nil
	}
	v := shownLink{Slug: link.Slug, ShortURL: short, CreatedAt: link.CreatedAt, ExpiresAt: orNull(link.ExpiresAt, time.Time{})}
	if !limited {
		v.URL = &link.Destination
	}
	return writeJSON(w, r, http.StatusOK, mediaJSON, v)
}

// shown returns the link of a slug as anybody may see it.
func (s *server) shown(ctx context.Context, slug string) (link shortener.Link, err error) {
	_, _, err = lookUp(ctx, func(ctx context.Context, slug shortener.Slug) (t shortener.Target, err error) {
		link, err = s.service.Link(ctx, slug)
		return link.Target(), err
	}, slug)
	return link, err
}

// writePreview writes the page that shows a link, which may stand at the short link itself.
func (s *server) writePreview(w http.ResponseWriter, r *http.Request, link shortener.Link, here bool) error {
	if link.MaxVisits > 0 {
		w.Header().Set(securityPolicy, visitCSP)
	}
	c, visits := s.languages.choose(r), ""
	if link.MaxVisits == 0 {
		if v, err := s.service.Visits(r.Context(), link.Slug); err == nil { // a page without them is better than none
			visits = c.render(say("preview.visits", "Count", v.Total()))
		}
	}
	return s.writePaced(w, r, c, http.StatusOK, func(page *bytes.Buffer) error {
		v := previewOf(c.tongue, link, s.short+string(link.Slug))
		v.Here, v.OneLanguage = here, here && link.ForwardQuery && r.URL.RawQuery != ""
		v.Visits = visits
		return s.pages.preview(page, c, v)
	})
}

// hidesTarget reports whether nobody may see where a link leads without a visit
// that counts.
func hidesTarget(l shortener.Link) bool { return l.MaxVisits > 0 && !l.ShowsTarget }

// previewed returns the text before the + of a decoded path, with what visits
// tolerate after it.
func previewed(path string) string {
	text := strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	if bare := strings.TrimRight(text, trailing); bare != text {
		text = strings.TrimSuffix(bare, "/")
	}
	return strings.TrimSuffix(text, "+")
}

// previewPage is what the page shows of a link.
type previewPage struct {
	Slug        shortener.Slug
	ShortURL    string
	Counted     bool // whether the button is a visit that is counted
	Limited     bool // hides the destination
	Here        bool // whether the button's visit is one of the page's own address
	OneLanguage bool // whether the page in another language would lose a query that is handed on
	Host        shortener.PlainHost
	Address     []piece // the destination
	Made        string  // a day in UTC
	Ends        *clock  // nil is never
	Visits      string  // a sentence; empty where they cannot be told
}

func previewOf(t *tongue, link shortener.Link, short string) previewPage {
	v := previewPage{
		Slug:     link.Slug,
		ShortURL: short,
		Counted:  link.MaxVisits > 0,
		Limited:  hidesTarget(link),
		Made:     link.CreatedAt.UTC().Format(t.render(say("layout.day"))),
		Ends:     t.endOf(link.ExpiresAt),
	}
	if !v.Limited {
		v.Host = shortener.PlainHostOf(link.Destination)
		v.Address = pieces(link.Destination)
	}
	return v
}

func (p *pages) preview(w io.Writer, c choice, v previewPage) error {
	files := []string{"preview.css"}
	if v.Ends != nil {
		files = append(files, snipJS)
	}
	if v.Counted {
		files = append(files, "visit.js")
	}
	f := p.page(c, say("preview.heading"), files...)
	if f.switchAt("/" + string(v.Slug) + "+"); v.OneLanguage {
		f.Switch = nil
	}
	data := struct {
		frame
		previewPage
		ReportURL string
	}{
		frame:       f,
		previewPage: v,
		ReportURL:   reportURL(p.frame.ContactURL, v.ShortURL),
	}
	data.Social = v.social(c.tongue)
	return p.execute(w, c, "preview", data)
}

// social tells the host at most: where it is international, as punycode, because
// there is no room for a warning.
func (v previewPage) social(t *tongue) *social {
	title, description := say("social.title"), say("social.whole")
	if host := cmp.Or(v.Host.Punycode, v.Host.Name); host != "" {
		title = say("social.title_host", "Host", host)
	}
	if v.Limited {
		description = say("social.limited")
	}
	return &social{t.render(title), t.render(description)}
}

// piece is a part of an address: text, or one character that cannot be seen as
// it is.
type piece struct {
	Text string
	Code string // such as U+202E, or empty for text
}

// maxMarks bounds the characters of an address that are marked one by one: each costs a page
// as much as some hundred of the others.
const maxMarks = 100

// pieces takes an address apart into what is read and what only changes how that
// looks. Joined again the pieces are the same bytes, up to the bound; from there on the rest is one
// piece, in which such characters are percent-encoded, as a visit sends them.
func pieces(address string) []piece {
	var all []piece
	start, marks := 0, 0
	for i, c := range address {
		if !shortener.Invisible(c) {
			continue
		}
		if start < i {
			all = append(all, piece{Text: address[start:i]})
		}
		if marks++; marks > maxMarks {
			return append(all, encodedPiece(address[i:]))
		}
		start = i + len(string(c))
		all = append(all, piece{Text: string(c), Code: fmt.Sprintf("%U", c)})
	}
	if start < len(address) {
		all = append(all, piece{Text: address[start:]})
	}
	return all
}

// encodedPiece is text whose characters that cannot be seen are percent-encoded; its mark is how many.
func encodedPiece(text string) piece {
	var b strings.Builder
	count := 0
	for _, c := range text {
		if shortener.Invisible(c) {
			count++
			b.WriteString(url.PathEscape(string(c)))
		} else {
			b.WriteRune(c)
		}
	}
	return piece{Text: b.String(), Code: fmt.Sprintf("U+… ×%d", count)}
}

// reportURL is the contact's address for a report of one link.
func reportURL(contact, short string) string {
	if !strings.HasPrefix(contact, "mailto:") {
		return contact
	}
	separator := "?"
	if strings.Contains(contact, "?") {
		separator = "&"
	}
	// A mail program takes + for what it is (RFC 6068, section 5).
	return contact + separator + "subject=" + strings.ReplaceAll(url.QueryEscape(short), "+", "%20")
}
