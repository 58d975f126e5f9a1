package admin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 64 << 10

// problem is an answer that refuses, in the format of RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func writeProblem(w http.ResponseWriter, status int, code, detail string) {
	body, err := json.Marshal(problem{"about:blank", http.StatusText(status), status, code, detail})
	if err != nil { // the detail is no valid UTF-8
		body = []byte(`{}`)
	}
	writeBytes(w, status, "application/problem+json", append(body, '\n'))
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	writeBytes(w, status, "application/json", append(body, '\n'))
	return nil
}

func writeBytes(w http.ResponseWriter, status int, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that nobody listens any more
}

// badRequest says what is wrong with a request's body.
type badRequest struct{ error }

func (e *badRequest) Unwrap() error { return e.error }

// readJSON reads one JSON value with fields that are known.
func readJSON(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := readBody(w, r, maxBody)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v, json.RejectUnknownMembers(true)); err != nil {
		return &badRequest{fmt.Errorf("the body cannot be used: %w", jsonFault(err))}
	}
	return nil
}

// readBody reads a whole body of at most so many bytes.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return nil, unread(err, "it did not arrive whole")
	}
	return body, nil
}

// unread says why a body could not be read: it is too large, or else what is given.
func unread(err error, fault string) error {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		fault = fmt.Sprintf("it has more than %d bytes", large.Limit)
	}
	return &badRequest{errors.New("the body cannot be used: " + fault)}
}

// jsonFault says what is wrong with JSON, in words that know no Go.
func jsonFault(err error) error {
	semantic, isSemantic := errors.AsType[*json.SemanticError](err)
	syntactic, isSyntactic := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case isSemantic && errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("the member %q is not known", member(semantic.JSONPointer))
	case isSemantic && semantic.JSONPointer == "":
		return errors.New("one JSON object is needed")
	case isSemantic:
		return fmt.Errorf("%s: must be %s", member(semantic.JSONPointer), kindOf(semantic.GoType))
	case isSyntactic && errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("the member %q is given twice", member(syntactic.JSONPointer))
	case isSyntactic:
		return fmt.Errorf("it is not valid JSON in UTF-8 near byte %d", syntactic.ByteOffset)
	default:
		return errors.New("it is not valid JSON")
	}
}

// member names a value as people write it, such as statistics.days, and not all of it.
func member(at jsontext.Pointer) string {
	name := strings.Join(slices.Collect(at.Tokens()), ".")
	if len(name) > 100 {
		name = strings.ToValidUTF8(name[:100], "") + "…"
	}
	return name
}

// kindOf says what a value of a Go type is in JSON.
func kindOf(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == nil:
		return "another value"
	case t == reflect.TypeFor[time.Time]():
		return "an instant such as 2026-11-29T12:00:00Z"
	case t == reflect.TypeFor[octets]():
		return "hexadecimal digits"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "a whole number that is not too large"
	}
}

// number reads a parameter of the query, from 1 to most.
func number(r *http.Request, name string, missing, most int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, &badRequest{fmt.Errorf("%s must be a whole number from 1 to %d", name, most)}
	}
	return n, nil
}
