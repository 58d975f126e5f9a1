package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"snip/shortener"
)

// bodyTimeout is how long an admitted client may take to send its body.
const bodyTimeout = 10 * time.Second

// fields are those of a new link, as every kind of body has them; nil is absent.
type fields struct {
	URL          *string `json:"url"`
	Slug         *string `json:"slug"`
	ExpiresAt    *string `json:"expires_at"`
	MaxVisits    *int64  `json:"max_visits"`
	ForwardQuery *bool   `json:"forward_query"`

	given []string // of a form, to find what is given twice
}

// set fills a field of a form in, once. Forms send what was left empty too.
func (f *fields) set(name, value string) error {
	if slices.Contains(f.given, name) {
		return fmt.Errorf("the field %s is given twice", name)
	}
	switch name {
	case "url":
		f.URL = &value
	case "slug":
		f.Slug = &value
	case "expires_at":
		f.ExpiresAt = &value
	case "max_visits":
		if value == "" {
			break
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != value {
			return mustBe(name)
		}
		f.MaxVisits = &n
	case "forward_query":
		if value == "" {
			break
		}
		if value != "true" && value != "false" {
			return mustBe(name)
		}
		f.ForwardQuery = new(value == "true")
	default:
		return fmt.Errorf("%w %s", errUnknownField, quoted(name))
	}
	f.given = append(f.given, name)
	return nil
}

// mustBe says what the named field is made of.
func mustBe(name string) error {
	kind := "a string"
	switch name {
	case "max_visits":
		kind = fmt.Sprintf("a whole number from 1 to %d", shortener.MaxVisits)
	case "forward_query":
		kind = "true or false"
	}
	return fmt.Errorf("the field %s must be %s", quoted(name), kind)
}

var errUnknownField = errors.New("unknown field")

func (f *fields) link() shortener.NewLink {
	n := shortener.NewLink{URL: valueOf(f.URL), Slug: valueOf(f.Slug), ExpiresAt: valueOf(f.ExpiresAt), MaxVisits: f.MaxVisits}
	if f.ForwardQuery != nil {
		n.ForwardQuery = *f.ForwardQuery
	}
	return n
}

func valueOf(field *string) string {
	if field == nil {
		return ""
	}
	return *field
}

// readNewLink reads the body of a creation. With an error it returns what it
// understood before, for the form to show again.
func readNewLink(w http.ResponseWriter, r *http.Request) (shortener.NewLink, error) {
	if r.ContentLength > maxBody {
		return shortener.NewLink{}, tooLarge()
	}
	kind, params, err := mediaTypeOf(r.Header, mediaJSON, mediaForm, mediaMultipart)
	if err != nil {
		return shortener.NewLink{}, err
	}
	body, err := readBody(w, r)
	if err != nil {
		return shortener.NewLink{}, err
	}
	if kind != mediaJSON && looksLikeJSON(body) {
		return shortener.NewLink{}, invalidRequest("The body looks like JSON; send it with the header Content-Type: application/json.")
	}
	var f fields
	switch kind {
	case mediaJSON:
		err = parseJSON(body, &f)
	case mediaForm:
		err = parseForm(body, &f)
	case mediaMultipart:
		err = parseMultipart(body, params["boundary"], &f)
	default:
		return shortener.NewLink{}, unsupported("The request has no Content-Type.", mediaJSON, mediaForm, mediaMultipart)
	}
	if err == nil && f.URL == nil {
		err = errors.New("the field url is missing; it holds the destination")
	}
	if err != nil {
		return f.link(), invalidRequest("The body cannot be used: %s.", err)
	}
	return f.link(), nil
}

const (
	mediaForm      = "application/x-www-form-urlencoded"
	mediaMultipart = "multipart/form-data"
)

// mediaTypeOf returns which of the known kinds of body the headers announce; the
// empty string is none at all.
func mediaTypeOf(h http.Header, known ...string) (kind string, params map[string]string, err error) {
	for _, encoding := range h["Content-Encoding"] {
		if !strings.EqualFold(strings.TrimSpace(encoding), "identity") {
			return "", nil, unsupported("The body must not be compressed.", known...)
		}
	}
	lines := h["Content-Type"]
	if len(lines) == 0 {
		return "", nil, nil
	}
	kind, params, err = mime.ParseMediaType(lines[0])
	if err != nil || len(lines) > 1 {
		return "", nil, unsupported("The Content-Type cannot be read.", known...)
	}
	if !slices.Contains(known, kind) {
		return "", nil, unsupported("The Content-Type "+quoted(kind)+" is not one that is understood.", known...)
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return "", nil, unsupported("The only charset that is understood is utf-8.", known...)
	}
	return kind, params, nil
}

func unsupported(what string, known ...string) *problem {
	if !slices.Contains(known, mediaForm) {
		return newProblem(http.StatusUnsupportedMediaType, "unsupported_media_type",
			"%s Send the header Content-Type: %s with a JSON object.", what, mediaJSON)
	}
	return newProblem(http.StatusUnsupportedMediaType, "unsupported_media_type",
		"%s Send the header Content-Type: %s with a JSON object, or a form as %s or %s.", what, mediaJSON, mediaForm, mediaMultipart)
}

func tooLarge() *problem {
	return newProblem(http.StatusRequestEntityTooLarge, "too_large", "The body must not be larger than %d bytes.", maxBody)
}

// readBody reads a whole body, within its bounds in size and time.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil // a deadline would hit net/http's own watch over the connection
	}
	// Not every writer has a connection to set a deadline on; then whoever serves
	// keeps the time. net/http lifts the deadline itself at the body's end.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	var over *http.MaxBytesError
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &over):
		return nil, tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, newProblem(http.StatusRequestTimeout, "invalid_request", "The body did not come within %s.", bodyTimeout)
	default:
		return nil, invalidRequest("The body could not be read to its end.")
	}
}

func looksLikeJSON(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	return len(body) > 0 && (body[0] == '{' || body[0] == '[')
}

// parseJSON reads one object. The second version of Go's JSON package refuses
// what the first lets pass: names given twice or in another case, invalid UTF-8,
// half surrogate pairs.
func parseJSON(body []byte, f any) error {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("it must be one JSON object, such as {\"url\": \"https://example.org/\"}")
	}
	err := json.Unmarshal(body, f, json.RejectUnknownMembers(true))
	var (
		semantic  *json.SemanticError
		syntactic *jsontext.SyntacticError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &semantic) && errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("%w %s", errUnknownField, quoted(semantic.JSONPointer.LastToken()))
	case errors.As(err, &semantic):
		return mustBe(semantic.JSONPointer.LastToken())
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntactic):
		return fmt.Errorf("it is not valid JSON: the field %s is given twice", quoted(syntactic.JSONPointer.LastToken()))
	case errors.As(err, &syntactic):
		return fmt.Errorf("it is not valid JSON near byte %d", syntactic.ByteOffset)
	default:
		return errors.New("it is not valid JSON")
	}
}

// quoted shows text from a request in a message: on one line, and not all of it.
func quoted(text string) string {
	const most = 64
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}
