package admin

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"snip/shortener"
)

// csvHeader names the columns. There are no hashes of tokens: a table is passed on.
var csvHeader = []string{
	"slug", "url", "created_at", "expires_at", "max_visits", "visits", "forward_query", "taken_down", "deleted",
	"visits_of_persons", "crawlers", "previews", "heads", "prefetches",
	"direct_redirect",
}

// newCSV begins a table as RFC 4180 has it, with a mark in front by which Excel knows
// UTF-8.
func newCSV(w io.Writer) (*csv.Writer, error) {
	if _, err := io.WriteString(w, "\ufeff"); err != nil {
		return nil, err
	}
	table := csv.NewWriter(w)
	table.UseCRLF = true
	return table, table.Write(csvHeader)
}

func csvRow(m shortener.Managed) []string {
	link, kinds := m.Link, m.Visits.Kinds
	cells := []string{
		string(link.Slug), link.Destination, csvTime(link.CreatedAt), csvTime(link.ExpiresAt), csvNumber(link.MaxVisits), csvNumber(m.Visited),
		strconv.FormatBool(link.ForwardQuery), link.TakenDown, strconv.FormatBool(link.Deleted),
		csvNumber(kinds[shortener.Person]), csvNumber(kinds[shortener.Crawler]), csvNumber(kinds[shortener.Fetcher]),
		csvNumber(kinds[shortener.Head]), csvNumber(kinds[shortener.Prefetch]),
		strconv.FormatBool(link.DirectRedirect),
	}
	for i, cell := range cells {
		cells[i] = safeCell(cell)
	}
	return cells
}

// safeCell returns text that no spreadsheet takes for a formula: an apostrophe goes
// before what could begin one, as OWASP has it
// (https://owasp.org/www-community/attacks/CSV_Injection). Nothing within a cell is
// changed: an address must stay what it is.
func safeCell(text string) string {
	if strings.HasPrefix(text, "\n") || strings.IndexAny(text, "=+-@\t\r\x00＝＋－＠") == 0 {
		return "'" + text
	}
	return text
}

func csvNumber(n int64) string { return strconv.FormatInt(n, 10) }

// csvTime is empty for never.
func csvTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}
