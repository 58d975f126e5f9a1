package web

import (
	"io"
	"time"
)

// pages renders every HTML page.
type pages struct{}

func newPages(c Config) (*pages, error) { return &pages{}, nil }

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

func (p *pages) form(w io.Writer, v formPage) error     { return nil }
func (p *pages) result(w io.Writer, v resultPage) error { return nil }

// message is the page of a refusal that has no form to return to: 404, 410, 405, 500 and so on.
func (p *pages) message(w io.Writer, v *problem) error { return nil }
