package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/url"
	"strings"
	"unicode/utf8"
)

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
			return fmt.Errorf("%s is not a valid escape", quoted(badEscape(err)))
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return fmt.Errorf("the field %s: %s is not a valid escape; a %% is written %%25", quoted(name), quoted(badEscape(err)))
		}
		err = setText(f, name, value)
		if errors.Is(err, errUnknownField) {
			return fmt.Errorf("%w; an & that belongs to the destination is written %%26, which curl --data-urlencode does by itself", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
		return errors.New("its Content-Type has no boundary")
	}
	malformed := errors.New("it is not valid multipart/form-data")
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return malformed
		}
		name := part.FormName()
		if part.FileName() != "" {
			return fmt.Errorf("the field %s is a file; only values are understood", quoted(name))
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return malformed
		}
		if err := setText(f, name, string(value)); err != nil {
			return err
		}
	}
}

// setText is for bodies whose format does not see to valid UTF-8 itself.
func setText(f *fields, name, value string) error {
	if !utf8.ValidString(name) || !utf8.ValidString(value) {
		return fmt.Errorf("the field %s is not valid UTF-8", quoted(name))
	}
	return f.set(name, value)
}
