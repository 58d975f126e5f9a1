package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"snip/static"
)

// described serves what next serves, and fails the test for each answer that the
// OpenAPI description does not have. A benchmark is left alone.
func described(t testing.TB, prefix string, next http.Handler) http.Handler {
	t.Helper()
	if _, ok := t.(*testing.B); ok {
		return next
	}
	d, err := loadDescription()
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w}
		path := r.URL.EscapedPath()
		if rest, ok := strings.CutPrefix(path, prefix); ok && (rest == "" || rest[0] == '/') {
			path = rest
		}
		defer func() { // also when the handler drops the connection after its answer
			if a.status == 0 || preflighted(r, a.status) {
				return
			}
			if err := d.check(r.Method, path, a); err != nil {
				t.Errorf("%s %.80s is answered with %d, which static/openapi.yaml does not describe: %v", r.Method, path, a.status, err)
			}
		}()
		next.ServeHTTP(a, r)
	})
}

// preflighted reports whether an answer belongs to the Fetch Standard's protocol
// between browsers and servers, and not to ours.
func preflighted(r *http.Request, status int) bool {
	return r.Method == http.MethodOptions && status == http.StatusNoContent && r.Header.Get("Access-Control-Request-Method") != ""
}

// answer passes an answer on and keeps it.
type answer struct {
	http.ResponseWriter
	status int
	header http.Header // as they were sent
	body   bytes.Buffer
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status, a.header = status, a.Header().Clone()
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.body.Write(p)
	return a.ResponseWriter.Write(p)
}

// Unwrap lets [http.ResponseController] reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// description is static/openapi.yaml. kin-openapi reads it and its schemas; its
// own check of answers is of no use here, as it lets every HEAD, 301, 307 and 308
// pass, and headers and empty bodies that nobody described.
type description struct {
	doc   *openapi3.T
	paths []describedPath // the most exact first

	passed sync.Map // of [passed]: a schema is compiled anew each time it is asked
}

type describedPath struct {
	template string
	matches  *regexp.Regexp
	item     *openapi3.PathItem
}

// passed is a value that its schema allows.
type passed struct {
	schema *openapi3.Schema
	value  string
}

var loadDescription = sync.OnceValues(func() (*description, error) {
	doc, err := openapi3.NewLoader().LoadFromData([]byte(static.OpenAPI))
	if err != nil {
		return nil, err
	}
	d := &description{doc: doc}
	for template, item := range doc.Paths.Map() {
		d.paths = append(d.paths, describedPath{template, pathPattern(template), item})
	}
	slices.SortFunc(d.paths, func(a, b describedPath) int {
		return strings.Count(a.template, "{") - strings.Count(b.template, "{") + (len(b.template)-len(a.template))*2
	})
	return d, nil
})

var parameter = regexp.MustCompile(`\\\{[a-z]+\\\}`)

// pathPattern returns what matches the paths of a template as they stand in a
// request.
func pathPattern(template string) *regexp.Regexp {
	pattern := parameter.ReplaceAllString(regexp.QuoteMeta(template), `[^/]+`)
	pattern = strings.ReplaceAll(pattern, `\+`, `(?i:\+|%2B)[^/]*`)
	if strings.LastIndexByte(template, '/') == 0 && strings.Contains(template, "{slug}") {
		pattern += `(/[^/A-Za-z0-9]*)?` // the slash that is ignored, and the punctuation that is left off
	}
	return regexp.MustCompile("^" + pattern + "$")
}

// check compares an answer with what the description says of it.
func (d *description) check(method, path string, a *answer) error {
	if path == "" {
		path = "/"
	}
	responses := d.doc.Components.Responses
	found := slices.IndexFunc(d.paths, func(p describedPath) bool { return p.matches.MatchString(path) })
	if found < 0 {
		switch a.status {
		case http.StatusNotFound:
			return d.checkResponse(responses["NotFound"].Value, method, a)
		case http.StatusMethodNotAllowed:
			return d.checkResponse(responses["MethodNotAllowed"].Value, method, a)
		}
		return errors.New("there is no such path")
	}
	operations := d.paths[found].item.Operations()
	operation, ok := operations[method]
	if !ok {
		if a.status != http.StatusMethodNotAllowed {
			return errors.New("the path has no such method")
		}
		allowed := strings.Split(a.header.Get("Allow"), ", ")
		operations = maps.Clone(operations)
		if d.paths[found].template == "/{slug}" && !slices.Contains(allowed, http.MethodPost) {
			delete(operations, http.MethodPost) // which only links with a limit of visits have
		}
		if slices.Sort(allowed); !slices.Equal(allowed, slices.Sorted(maps.Keys(operations))) {
			return fmt.Errorf("the path has other methods than Allow: %s", allowed)
		}
		return d.checkResponse(responses["MethodNotAllowed"].Value, method, a)
	}
	response := operation.Responses.Status(a.status)
	if response == nil {
		return errors.New("the operation has no such status")
	}
	return d.checkResponse(response.Value, method, a)
}

// undescribed are headers that are about the connection, or tell browsers and search
// engines how to treat what they show.
var undescribed = regexp.MustCompile("^(Connection|Content-Length|Content-Security-Policy|Content-Type|Date|Referrer-Policy|Vary|X-Content-Type-Options|X-Robots-Tag|Access-Control-.*)$")

func (d *description) checkResponse(response *openapi3.Response, method string, a *answer) error {
	known := make(map[string]bool)
	for name, header := range response.Headers {
		known[http.CanonicalHeaderKey(name)] = true
		if err := d.checkHeader(header.Value, a.header.Values(name)); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	for name := range a.header {
		if !known[name] && !undescribed.MatchString(name) {
			return fmt.Errorf("it has no header %s", name)
		}
	}
	if method == http.MethodHead && a.body.Len() > 0 {
		return errors.New("HEAD has a body")
	}
	contentType := a.header.Get("Content-Type")
	if len(response.Content) == 0 {
		if contentType != "" || a.body.Len() > 0 {
			return fmt.Errorf("it has no body, and not %q %q", contentType, a.body.Bytes())
		}
		return nil
	}
	if method == http.MethodHead && contentType == "" && a.header.Get("Content-Length") == "0" {
		return nil // a body may be described for other cases of the same status
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return fmt.Errorf("content type %q: %w", contentType, err)
	}
	content, ok := response.Content[mediaType]
	if !ok {
		return fmt.Errorf("it has no content type %q", contentType)
	}
	if method == http.MethodHead || content.Schema == nil {
		return nil
	}
	var body any = a.body.String()
	if mediaType == mediaJSON || mediaType == mediaProblem {
		if err := json.Unmarshal(a.body.Bytes(), &body); err != nil {
			return fmt.Errorf("body: %w", err)
		}
	}
	if err := d.checkValue(content.Schema.Value, a.body.String(), body); err != nil {
		return fmt.Errorf("body %.200q: %w", a.body.Bytes(), err)
	}
	return nil
}

func (d *description) checkHeader(header *openapi3.Header, values []string) error {
	switch {
	case len(values) > 1:
		return fmt.Errorf("is there %d times", len(values))
	case len(values) == 1:
		var value any = values[0]
		if header.Schema.Value.Type.Is(openapi3.TypeInteger) {
			n, err := strconv.ParseInt(values[0], 10, 64)
			if err != nil {
				return err
			}
			value = float64(n)
		}
		return d.checkValue(header.Schema.Value, values[0], value)
	case header.Required:
		return errors.New("is missing")
	}
	return nil
}

func (d *description) checkValue(schema *openapi3.Schema, text string, value any) error {
	key := passed{schema, text}
	if _, ok := d.passed.Load(key); ok {
		return nil
	}
	err := schema.VisitJSON(value, openapi3.EnableJSONSchema2020())
	if wrong, ok := errors.AsType[*openapi3.SchemaError](err); ok {
		return errors.New(wrong.Reason) // without the whole schema
	}
	if err != nil {
		return err
	}
	d.passed.Store(key, struct{}{})
	return nil
}
