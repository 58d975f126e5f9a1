package web

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/url"
	"strings"
	"unicode/utf8"
)

// readForm reads what a form asks for: one link, or as many as its field url has
// lines or its file. What else is filled in is then for each of them.
func readForm(kind, boundary string, body []byte) (wanted, error) {
	var f fields
	var err error
	if kind == mediaMultipart {
		err = parseMultipart(body, boundary, &f)
	} else {
		err = parseForm(body, &f)
	}
	b := f.single()
	switch {
	case err != nil:
		return b, err
	case f.file != nil && valueOf(f.URL) != "":
		return b, invalidField("file", say("reason.instead_of_url"))
	case f.file != nil:
		err = b.readLines(*f.file)
	case strings.Contains(strings.TrimSpace(valueOf(f.URL)), "\n"):
		err = b.readLines(*f.URL)
	default:
		err = f.missing()
	}
	return b, err
}

// parseForm reads a form-encoded body, and never the query. It is stricter than
// [url.ParseQuery], which lets an empty field pass: that is how half of a
// destination with a bare & in it would be stored.
func parseForm(body []byte, f *fields) error {
	if len(body) == 0 {
		return nil
	}
	for pair := range strings.SplitSeq(string(body), "&") {
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil {
			return unusable(say("body.escape", "Escape", quoted(badEscape(err))))
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return unusable(say("body.escape_in_field", "Field", quoted(name), "Escape", quoted(badEscape(err))))
		}
		err = setText(f, name, value)
		if errors.Is(err, errUnknownField) {
			return unusable(say("body.unknown_field_in_form", "Field", quoted(name)))
		}
		if err != nil {
			return err
		}
	}
	return f.wrong
}

// badEscape returns what QueryUnescape stumbled over.
func badEscape(err error) string {
	var escape url.EscapeError
	errors.As(err, &escape)
	return string(escape)
}

// parseMultipart reads the values of a multipart form. The body is bounded, and
// so are its parts: the first that is unknown or comes twice ends it.
func parseMultipart(body []byte, boundary string, f *fields) error {
	if boundary == "" {
		return unusable(say("body.no_boundary"))
	}
	malformed := unusable(say("body.no_multipart"))
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			return f.wrong
		}
		if err != nil {
			return malformed
		}
		name := part.FormName()
		if part.FileName() != "" && name != "file" {
			return unusable(say("body.file", "Field", quoted(name)))
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return malformed
		}
		if name == "file" {
			err = f.setFile(part.Header.Get("Content-Type"), value)
		} else {
			err = setText(f, name, string(value))
		}
		if errors.Is(err, errUnknownField) {
			return unusable(say("body.unknown_field", "Field", quoted(name)))
		}
		if err != nil {
			return err
		}
	}
}

// setText is for bodies whose format does not see to valid UTF-8 itself.
func setText(f *fields, name, value string) error {
	if !utf8.ValidString(name) || !utf8.ValidString(value) {
		return unusable(say("body.no_utf8", "Field", quoted(name)))
	}
	return f.set(name, value)
}
