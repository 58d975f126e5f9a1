package web

import (
	"bytes"
	"cmp"
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
	ShowsTarget  *bool   `json:"show_destination"`

	// Of a form:
	given  []string // to find what is given twice
	visits string   // the number as it was typed
	wrong  error    // the first value that is unfit; those after it are read all the same
}

// typedLink is what somebody typed, for the form to show again.
type typedLink struct {
	URL, Slug, ExpiresAt, MaxVisits string
	ForwardQuery, ShowsTarget       bool
}

// set fills a field of a form in, once. Forms send what was left empty too.
func (f *fields) set(name, value string) error {
	if slices.Contains(f.given, name) {
		return invalidField(name, say("reason.is_given_twice"))
	}
	switch name {
	case "url":
		f.URL = &value
	case "slug":
		f.Slug = &value
	case "expires_at":
		f.ExpiresAt = &value
	case "max_visits":
		f.visits = value
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case value == "":
		case err != nil || strconv.FormatInt(n, 10) != value:
			f.wrong = cmp.Or(f.wrong, mustBe(name))
		default:
			f.MaxVisits = &n
		}
	case "forward_query":
		f.ForwardQuery = f.truth(name, value)
	case "show_destination":
		f.ShowsTarget = f.truth(name, value)
	default:
		return errUnknownField
	}
	f.given = append(f.given, name)
	return nil
}

// truth reads a field that is true or false, or left out.
func (f *fields) truth(name, value string) *bool {
	switch value {
	case "":
	case "true", "false":
		return new(value == "true")
	default:
		f.wrong = cmp.Or(f.wrong, mustBe(name))
	}
	return nil
}

// mustBe says what the named field is made of.
func mustBe(name string) error {
	reason := say("reason.must_be_a_string")
	switch name {
	case "max_visits":
		reason = say("reason.must_be_a_whole_number", "Min", 1, "Max", shortener.MaxVisits)
	case "forward_query", "show_destination":
		reason = say("reason.must_be_true_or_false")
	}
	return invalidField(name, reason)
}

var errUnknownField = errors.New("unknown field")

func (f *fields) link() shortener.NewLink {
	return shortener.NewLink{
		URL:          valueOf(f.URL),
		Slug:         valueOf(f.Slug),
		ExpiresAt:    valueOf(f.ExpiresAt),
		MaxVisits:    f.MaxVisits,
		ForwardQuery: valueOf(f.ForwardQuery),
		ShowsTarget:  valueOf(f.ShowsTarget),
	}
}

func (f *fields) typed() typedLink {
	n := f.link()
	t := typedLink{URL: n.URL, Slug: n.Slug, ExpiresAt: n.ExpiresAt, MaxVisits: f.visits, ForwardQuery: n.ForwardQuery, ShowsTarget: n.ShowsTarget}
	if n.MaxVisits != nil {
		t.MaxVisits = strconv.FormatInt(*n.MaxVisits, 10)
	}
	return t
}

// valueOf is the zero value for a field that is absent.
func valueOf[T any](field *T) (value T) {
	if field != nil {
		value = *field
	}
	return value
}

// readNewLink reads the body of a creation. With an error it returns what was
// typed all the same, as far as it was read.
func readNewLink(w http.ResponseWriter, r *http.Request) (shortener.NewLink, typedLink, error) {
	var f fields
	err := readFields(w, r, &f)
	return f.link(), f.typed(), err
}

func readFields(w http.ResponseWriter, r *http.Request, f *fields) error {
	if r.ContentLength > maxBody {
		return tooLarge()
	}
	kind, params, err := mediaTypeOf(r.Header, mediaJSON, mediaForm, mediaMultipart)
	if err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	if kind != mediaJSON && looksLikeJSON(body) {
		return invalidRequest(say("problem.looks_like_json"))
	}
	switch kind {
	case mediaJSON:
		err = parseJSON(body, f)
	case mediaForm:
		err = parseForm(body, f)
	case mediaMultipart:
		err = parseMultipart(body, params["boundary"], f)
	default:
		return unsupported(say("media.none"), mediaJSON, mediaForm, mediaMultipart)
	}
	if err == nil && f.URL == nil {
		err = invalidField("url", say("reason.is_missing"))
	}
	return err
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
			return "", nil, unsupported(say("media.compressed"), known...)
		}
	}
	lines := h["Content-Type"]
	if len(lines) == 0 {
		return "", nil, nil
	}
	kind, params, err = mime.ParseMediaType(lines[0])
	if err != nil || len(lines) > 1 {
		return "", nil, unsupported(say("media.unreadable"), known...)
	}
	if !slices.Contains(known, kind) {
		return "", nil, unsupported(say("media.unknown", "Type", quoted(kind)), known...)
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return "", nil, unsupported(say("media.charset"), known...)
	}
	return kind, params, nil
}

func unsupported(what message, known ...string) *problem {
	m := say("problem.send_json", "What", what, "JSON", mediaJSON)
	if slices.Contains(known, mediaForm) {
		m = say("problem.send_json_or_form", "What", what, "JSON", mediaJSON, "Form", mediaForm, "Multipart", mediaMultipart)
	}
	return newProblem(http.StatusUnsupportedMediaType, "unsupported_media_type", m)
}

// unusable is a problem with a body that no one field is to blame for.
func unusable(fault message) *problem { return invalidRequest(say("problem.body", "Fault", fault)) }

func tooLarge() *problem {
	return newProblem(http.StatusRequestEntityTooLarge, "too_large", say("problem.too_large", "Max", maxBody))
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
		return nil, newProblem(http.StatusRequestTimeout, "invalid_request", say("problem.late", "Seconds", wholeSeconds(bodyTimeout)))
	default:
		return nil, invalidRequest(say("problem.cut"))
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
		return unusable(say("body.no_object", "Example", `{"url": "https://example.org/"}`))
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
		return unusable(say("body.unknown_field", "Field", quoted(semantic.JSONPointer.LastToken())))
	case errors.As(err, &semantic):
		return mustBe(semantic.JSONPointer.LastToken())
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntactic):
		return unusable(say("body.twice", "Field", quoted(syntactic.JSONPointer.LastToken())))
	case errors.As(err, &syntactic):
		return unusable(say("body.no_json_near", "Byte", syntactic.ByteOffset))
	default:
		return unusable(say("body.no_json"))
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
