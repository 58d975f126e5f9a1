package web

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"mime"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"snip/shortener"
)

// maxListBody bounds the body of a creation that may ask for many links, in bytes.
const maxListBody = 1 << 20

// readJSON reads one object, which asks for a link, or an array of them, which is a
// batch also where it holds one.
func readJSON(body []byte) (wanted, error) {
	if beginsWith(body, "[") && !bytes.HasPrefix(body, byteOrderMark) {
		b := wanted{batch: true}
		err := b.readArray(body)
		return b, err
	}
	var f fields
	err := parseJSON(body, &f, unusable)
	return f.single(), cmp.Or(err, f.missing())
}

// readArray reads the items one by one, so that each that is wrong is found, and
// none beyond the most that may be there is read.
func (b *wanted) readArray(body []byte) error {
	// Whether a name is given twice, or text is none, is the item's own matter.
	in := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := in.ReadToken(); err != nil {
		return noJSON(in, err)
	}
	for in.PeekKind() != ']' {
		item, err := in.ReadValue()
		if err != nil {
			return noJSON(in, err)
		}
		var f fields
		fault := parseJSON(item, &f, unusableItem)
		if fault = cmp.Or(fault, f.missing()); fault != nil {
			b.faults = append(b.faults, shortener.ItemError{Index: len(b.links), Err: fault})
			f = fields{Slug: slugOf(item)}
		}
		if err := b.add(f.link()); err != nil {
			return err
		}
	}
	if _, err := in.ReadToken(); err != nil {
		return noJSON(in, err)
	}
	if _, err := in.ReadToken(); err != io.EOF {
		return noJSON(in, err)
	}
	return b.notEmpty()
}

// slugOf is the slug of an item that is wrong, or nil: another item must not have it.
func slugOf(item []byte) *string {
	var named struct {
		Slug *string `json:"slug"`
	}
	if json.Unmarshal(item, &named) != nil {
		return nil
	}
	return named.Slug
}

// noJSON is what is wrong where a decoder stands, or with what follows there.
func noJSON(in *jsontext.Decoder, err error) error {
	at := in.InputOffset()
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		at = syntactic.ByteOffset
	}
	return unusable(say("body.no_json_near", "Byte", at))
}

// readList reads a body of lines.
func readList(body []byte) (wanted, error) {
	text, ok := plainText(body)
	if !ok {
		return wanted{}, unusable(say("body.list_no_utf8"))
	}
	b := wanted{links: []shortener.NewLink{{}}}
	err := b.readLines(text)
	return b, err
}

// byteOrderMark is what some editors begin a text file with.
var byteOrderMark = []byte("\ufeff")

// plainText returns what a text file holds, without its mark.
func plainText(file []byte) (text string, ok bool) {
	return string(bytes.TrimPrefix(file, byteOrderMark)), utf8.Valid(file)
}

// setFile fills in the file of a form. One without content is a field in which none
// was chosen.
func (f *fields) setFile(contentType string, content []byte) error {
	if len(content) == 0 {
		return nil
	}
	if slices.Contains(f.given, "file") {
		return invalidField("file", say("reason.is_given_twice"))
	}
	f.given = append(f.given, "file")
	text, ok := plainText(content)
	if kind, params, err := mime.ParseMediaType(contentType); contentType != "" {
		// Programs that do not know what a file holds say octet-stream.
		ok = ok && err == nil && (kind == mediaPlain || kind == "application/octet-stream") && isUTF8(params)
	}
	if !ok {
		return invalidField("file", say("reason.must_be_plain_text"))
	}
	f.file = &text
	return nil
}

// readLines makes of the one link that is asked for a batch, of links that differ in
// their destinations only: one for each line that is not blank.
func (b *wanted) readLines(text string) error {
	each := b.links[0]
	if each.Slug != "" {
		return invalidField("slug", say("reason.names_one_link_only"))
	}
	b.links, b.batch = nil, true
	n := 0
	for line := range strings.Lines(text) {
		n++
		if each.URL = strings.TrimSpace(line); each.URL == "" {
			continue
		}
		if endsInColumn(each.URL) {
			wrong := invalidField("url", say("reason.ends_in_a_column"))
			wrong.code = "invalid_url"
			b.faults = append(b.faults, shortener.ItemError{Index: len(b.links), Err: wrong})
		}
		if err := b.add(each); err != nil {
			return err
		}
		b.lines = append(b.lines, n)
	}
	return b.notEmpty()
}

// endsInColumn reports whether a line looks like a row of a table, as in
// "https://example.org/,one": what follows its last comma is one of the columns. Kept as a
// destination, it would lead elsewhere without a word.
func endsInColumn(line string) bool {
	comma := strings.LastIndexByte(line, ',')
	if comma < 0 {
		return false
	}
	last := strings.TrimSpace(line[comma+1:])
	_, slug := shortener.ParseSlug(last)
	return slug || column.MatchString(last)
}

// column is what a table has next to an address, but for slugs: nothing, a number, a date,
// with or without the time that expires_at has, words, or the end of text in quotes.
var column = regexp.MustCompile(`^(?:\d*|\d{4}-\d\d-\d\d(?:[Tt ][\d:.]+(?:[Zz]|[+-][\d:]+)?)?|[\pL\pM\d]+(?:\s+[\pL\pM\d]+)+|.*")$`)

func (b *wanted) add(link shortener.NewLink) error {
	if len(b.links) == shortener.MaxBatch {
		return listSize()
	}
	b.links = append(b.links, link)
	return nil
}

func (b *wanted) notEmpty() error {
	if len(b.links) == 0 {
		return listSize()
	}
	return nil
}

func listSize() *problem {
	return invalidRequest(say("problem.list_size", "Max", shortener.MaxBatch))
}
