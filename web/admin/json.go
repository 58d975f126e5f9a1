package admin

import (
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
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
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, v, json.RejectUnknownMembers(true))
	}
	if err != nil {
		return &badRequest{fmt.Errorf("the body cannot be used: %w", err)}
	}
	return nil
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
