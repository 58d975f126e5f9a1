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
	URL            *string `json:"url"`
	Slug           *string `json:"slug"`
	ExpiresAt      *string `json:"expires_at"`
	MaxVisits      *int64  `json:"max_visits"`
	ForwardQuery   *bool   `json:"forward_query"`
	ShowsTarget    *bool   `json:"show_destination"`
	DirectRedirect *bool   `json:"direct_redirect"`

	// Of a form:
	file   *string  // a list of destinations, instead of url
	given  []string // to find what is given twice
	visits string   // the number as it was typed
	wrong  error    // the first value that is unfit; those after it are read all the same
}

// typedLink is what somebody typed, for the form to show again.
type typedLink struct {
	URL, Slug, ExpiresAt, MaxVisits string
	ForwardQuery, ShowsTarget       bool
	DirectRedirect                  bool
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
	case "direct_redirect":
		f.DirectRedirect = f.truth(name, value)
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
	case "forward_query", "show_destination", "direct_redirect":
		reason = say("reason.must_be_true_or_false")
	}
	return invalidField(name, reason)
}

var errUnknownField = errors.New("unknown field")

func (f *fields) link() shortener.NewLink {
	return shortener.NewLink{
		URL:            valueOf(f.URL),
		Slug:           valueOf(f.Slug),
		ExpiresAt:      valueOf(f.ExpiresAt),
		MaxVisits:      f.MaxVisits,
		ForwardQuery:   valueOf(f.ForwardQuery),
		ShowsTarget:    valueOf(f.ShowsTarget),
		DirectRedirect: valueOf(f.DirectRedirect),
	}
}

// missing returns an error where the one field is not there that must be.
func (f *fields) missing() error {
	if f.URL == nil {
		return invalidField("url", say("reason.is_missing"))
	}
	return nil
}

func (f *fields) typed() typedLink {
	n := f.link()
	t := typedLink{
		URL: n.URL, Slug: n.Slug, ExpiresAt: n.ExpiresAt, MaxVisits: f.visits,
		ForwardQuery: n.ForwardQuery, ShowsTarget: n.ShowsTarget, DirectRedirect: n.DirectRedirect,
	}
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

// wanted is what a body asks for.
type wanted struct {
	links  []shortener.NewLink
	batch  bool
	lines  []int                 // where they came as lines: the number of each, from 1
	faults []shortener.ItemError // of the links that could not be read, and are empty
	typed  typedLink
}

// readWanted reads the body of a creation, and takes a place before it reads more of
// it than maxBody. With an error it returns what was typed all the same, as far as it
// was read.
func readWanted(w http.ResponseWriter, r *http.Request, takePlace func() error) (wanted, error) {
	kind, params, err := mediaTypeOf(r.Header, creationMedia...)
	most := maxBody
	if kind != "" && kind != mediaForm {
		most = maxListBody
	}
	if r.ContentLength > int64(most) {
		return wanted{}, tooLarge(sizesOfCreations)
	}
	if err != nil {
		return wanted{}, err
	}
	if r.ContentLength > maxBody {
		if err := takePlace(); err != nil {
			return wanted{}, err
		}
	}
	body, err := readBody(w, r, sizesOfCreations, func(beginning []byte) (int, error) {
		if most == maxBody || kind == mediaJSON && !beginsWith(beginning, "[") {
			return maxBody, nil
		}
		return most, takePlace()
	})
	if err != nil {
		return wanted{}, err
	}
	if kind != mediaJSON && looksLikeJSON(body) {
		return wanted{}, invalidRequest(say("problem.looks_like_json"))
	}
	switch kind {
	case mediaJSON:
		return readJSON(body)
	case mediaForm, mediaMultipart:
		return readForm(kind, params["boundary"], body)
	case mediaPlain:
		return readList(body)
	default:
		return wanted{}, unsupported(say("media.none"), creationMedia...)
	}
}

// single is what asks for one link.
func (f *fields) single() wanted {
	return wanted{links: []shortener.NewLink{f.link()}, typed: f.typed()}
}

const (
	mediaForm      = "application/x-www-form-urlencoded"
	mediaMultipart = "multipart/form-data"
	mediaPlain     = "text/plain"
)

// creationMedia are the kinds of body that ask for links.
var creationMedia = []string{mediaJSON, mediaForm, mediaMultipart, mediaPlain}

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
	if !isUTF8(params) {
		return "", nil, unsupported(say("media.charset"), known...)
	}
	return kind, params, nil
}

func isUTF8(params map[string]string) bool {
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
}

func unsupported(what message, known ...string) *problem {
	m := say("problem.send_json", "What", what, "JSON", mediaJSON)
	if slices.Contains(known, mediaForm) {
		m = say("problem.send_json_or_form", "What", what, "JSON", mediaJSON, "Form", mediaForm, "Multipart", mediaMultipart, "Plain", mediaPlain)
	}
	return newProblem(http.StatusUnsupportedMediaType, "unsupported_media_type", m)
}

// unusable is a problem with a body that no one field is to blame for.
func unusable(fault message) *problem { return invalidRequest(say("problem.body", "Fault", fault)) }

// unusableItem is unusable for an item of a batch.
func unusableItem(fault message) *problem { return invalidRequest(say("problem.item", "Fault", fault)) }

func tooLarge(sizes message) *problem {
	return newProblem(http.StatusRequestEntityTooLarge, "too_large", sizes)
}

// What a body may have at most. It is the same of all that ask for links, because
// that a body is an array is not known of one that is not read.
var (
	sizeOfChanges    = say("problem.too_large", "Max", maxBody)
	sizesOfCreations = say("problem.too_large_but_lists", "Max", maxBody, "List", maxListBody, "Plain", mediaPlain, "Multipart", mediaMultipart)
)

// readBody reads a whole body, within its time and as many bytes as it may have;
// sizes says how many that are. Where it has more than maxBody, most is asked how many
// one with that beginning may have.
func readBody(w http.ResponseWriter, r *http.Request, sizes message, most func(beginning []byte) (int, error)) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil // a deadline would hit net/http's own watch over the connection
	}
	// Not every writer has a connection to set a deadline on; then whoever serves
	// keeps the time. net/http lifts the deadline itself at the body's end.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	bound := maxBody
	if err == nil && len(body) > maxBody {
		if bound, err = most(body); err != nil {
			return nil, err
		}
		if len(body) <= bound {
			body, err = readRest(r, body, bound)
		}
	}
	switch {
	case err == nil && len(body) > bound:
		return nil, tooLarge(sizes)
	case err == nil:
		return body, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, newProblem(http.StatusRequestTimeout, "invalid_request", say("problem.late", "Seconds", wholeSeconds(bodyTimeout)))
	default:
		return nil, invalidRequest(say("problem.cut"))
	}
}

// readRest reads what follows the beginning of a body, and a byte beyond the bound
// where there is one. The buffer is as large as the body: one that grows takes up to
// twice as much, and its remains besides.
func readRest(r *http.Request, beginning []byte, bound int) ([]byte, error) {
	size := bound
	if r.ContentLength >= int64(len(beginning)) {
		size = min(size, int(r.ContentLength))
	}
	body := bytes.NewBuffer(make([]byte, 0, size+1+bytes.MinRead)) // that much is free at each of its reads
	body.Write(beginning)
	_, err := body.ReadFrom(io.LimitReader(r.Body, int64(size-len(beginning))+1))
	return body.Bytes(), err
}

func looksLikeJSON(body []byte) bool { return beginsWith(body, "{") || beginsWith(body, "[") }

// beginsWith reports whether JSON, be it cut off, begins with the bracket, or would
// without a byte order mark.
func beginsWith(body []byte, bracket string) bool {
	return bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(body, byteOrderMark), " \t\r\n"), []byte(bracket))
}

// parseJSON reads one object, and says what is unusable about it. The second
// version of Go's JSON package refuses what the first lets pass: names given twice
// or in another case, invalid UTF-8, half surrogate pairs.
func parseJSON(body []byte, f any, unusable func(fault message) *problem) error {
	if bytes.HasPrefix(body, byteOrderMark) {
		return unusable(say("body.byte_order_mark"))
	}
	if !beginsWith(body, "{") {
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
		name := semantic.JSONPointer.LastToken()
		return unusable(say("body.unknown_field", "Field", quoted(name))).about(name)
	case errors.As(err, &semantic):
		return mustBe(semantic.JSONPointer.LastToken())
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntactic):
		name := syntactic.JSONPointer.LastToken()
		return unusable(say("body.twice", "Field", quoted(name))).about(name)
	case errors.As(err, &syntactic):
		return unusable(say("body.no_json_near", "Byte", syntactic.ByteOffset))
	default:
		return unusable(say("body.no_json"))
	}
}

// quoted shows text from a request in a message: on one line, and not all of it.
func quoted(text string) string {
	return fmt.Sprintf("%q", shortened(text))
}

// shortened cuts text of a request to what an answer may repeat.
func shortened(text string) string {
	const most = 64
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
