package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"snip/shortener"
	"snip/static"
)

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	if n := strings.Count(static.OpenAPI, static.OpenAPIServer); n != 1 {
		t.Fatalf("the server is named %d times", n)
	}
	for public, want := range map[string]string{
		"https://s.example":                "https://s.example",
		"https://münchen.example/s/":       "https://xn--mnchen-3ya.example/s",
		"http://[2001:db8::1]:8080/it's#x": "http://[2001:db8::1]:8080/it's",
	} {
		s := newSite(t, siteSetup{public: public})
		w := s.do(call{method: "GET", target: "/api/openapi.yaml"})
		wantAnswer(t, w, http.StatusOK, "openapi: 3.1.0\n")
		if got := w.Header().Get("Content-Type"); got != "application/yaml" {
			t.Errorf("Content-Type %q", got)
		}
		doc, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.Validate(t.Context()); err != nil { // the examples too
			t.Error(err)
		}
		if got := doc.Servers[0].URL; got != want {
			t.Errorf("server %q, want %q", got, want)
		}
	}
}

// Nothing is served that is not described, and nothing described that is not
// served.
func TestOpenAPIHasTheRoutes(t *testing.T) {
	t.Parallel()
	inOpenAPI := strings.NewReplacer("/:slug", "/{slug}", "/-/*", "/-/{file}", "/*", "/{slug}")
	var served, inDocument []string
	for _, route := range routes() {
		if route.path == "/api/links/:slug/*" {
			continue // nothing is there; it keeps these paths from the widest route
		}
		for _, method := range route.methods {
			served = append(served, inOpenAPI.Replace(route.path)+" "+method)
			if route.path == "/*" && method != http.MethodPost {
				served = append(served, "/{slug}+ "+method) // the same route: no slug has a +
			}
		}
	}
	d, err := loadDescription()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range d.doc.Paths.Map() {
		for method := range item.Operations() {
			inDocument = append(inDocument, path+" "+method)
		}
	}
	slices.Sort(served)
	slices.Sort(inDocument)
	if diff := cmp.Diff(served, inDocument); diff != "" {
		t.Errorf("-served +described:\n%s", diff)
	}
}

// What the description gives as an example works.
func TestOpenAPIExamples(t *testing.T) {
	t.Parallel()
	d, err := loadDescription()
	if err != nil {
		t.Fatal(err)
	}
	examples := func(operation *openapi3.Operation) map[string]string {
		bodies := make(map[string]string)
		for name, example := range operation.RequestBody.Value.Content[mediaJSON].Examples {
			body, err := json.Marshal(example.Value.Value)
			if err != nil {
				t.Fatal(err)
			}
			bodies[name] = string(body)
		}
		if len(bodies) == 0 {
			t.Fatal("no examples")
		}
		return bodies
	}
	s := newSite(t, siteSetup{})
	for name, body := range examples(d.doc.Paths.Find("/api/links").Post) {
		if w := s.post(body); w.Code != http.StatusCreated {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	h := made(t, s, goodJSON)
	for name, body := range examples(d.doc.Paths.Find("/api/links/{slug}").Patch) {
		if w := h.manage("PATCH", body); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// Answers that no other test asks for, so that these are compared with their
// description too.
func TestRareAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	s.put(t, shortener.Link{Slug: "abc", Destination: "https://example.org/"})
	for _, row := range []struct {
		methods, target string
		header, value   string
		status          int
	}{
		{"GET HEAD", "/-/snip.css", "Range", "bytes=0-3", 206},
		{"GET", "/-/snip.css", "Range", "bytes=999999-", 416},
		{"GET HEAD", "/-/snip.css", "If-Match", `"other"`, 412},
		{"GET HEAD", "/-/snip.css", "If-None-Match", "*", 304},
		{"GET HEAD", "/favicon.ico", "Range", "bytes=0-3", 206},
		{"GET", "/favicon.ico", "Range", "bytes=999999-", 416},
		{"GET HEAD", "/favicon.ico", "If-Match", `"other"`, 412},
		{"GET HEAD", "/favicon.ico", "If-None-Match", "*", 304},
		{"HEAD", "/api/openapi.yaml", "", "", 200},
		{"HEAD", "/.well-known/security.txt", "", "", 404},
		{"HEAD", "/abc/qr.svg?size=0", "", "", 400},
		{"HEAD", "/abc/qr.png?size=0", "", "", 400},
		{"HEAD", "/api/links/abc", "", "", 401},
		{"HEAD", "/api/links/abc", "Authorization", "Bearer x", 404},
	} {
		for method := range strings.FieldsSeq(row.methods) {
			w := s.do(call{method: method, target: row.target, header: map[string]string{row.header: row.value}})
			if w.Code != row.status {
				t.Errorf("%s %s, %s %s: %d, want %d", method, row.target, row.header, row.value, w.Code, row.status)
			}
		}
	}
	h := made(t, s, goodJSON)
	wantAnswer(t, h.manage("HEAD", ""), http.StatusOK, "")
	wantAnswer(t, h.manage("PATCH", strings.Repeat(" ", maxBody+1)), http.StatusRequestEntityTooLarge, "too_large")
	wantAnswer(t, h.manage("DELETE", ""), http.StatusNoContent, "")
	wantAnswer(t, h.manage("HEAD", ""), http.StatusGone, "")
}

// rightAnswers are answers that the description has.
func rightAnswers() map[string]describedAnswer {
	const problem = `{"type":"about:blank","title":"%s","status":%d,"code":"%s","detail":"Something."}`
	return map[string]describedAnswer{
		"created": {"POST", "/api/links", 201, http.Header{
			"Location": {"https://s.example/abc"}, "Cache-Control": {"no-store"}, "Vary": {"Accept"}, "Content-Type": {mediaJSON},
		}, `{"slug":"abc","short_url":"https://s.example/abc","url":"https://example.org/","created_at":"2026-11-29T10:00:00Z",` +
			`"expires_at":null,"max_visits":null,"forward_query":false,"show_destination":false,"direct_redirect":false,"manage_token":"OPLHBYAJVMRSZLZYNGYJWOL37F"}` + "\n"},
		"limited": {"POST", "/api/links", 429, http.Header{
			"Retry-After": {"10"}, "Cache-Control": {"no-store"}, "Vary": {"Accept, Accept-Language"}, "Content-Language": {"en"}, "Content-Type": {mediaProblem},
		}, fmt.Sprintf(problem, "Too Many Requests", 429, "rate_limited")},
		"unknown path": {"GET", "/a/b", 404, http.Header{
			"Cache-Control": {"no-store"}, "Vary": {"Accept, Accept-Language"}, "Content-Language": {"en"}, "Content-Type": {mediaProblem},
		}, fmt.Sprintf(problem, "Not Found", 404, "not_found")},
		"unknown method": {"PUT", "/abc", 405, http.Header{
			"Allow": {"GET, HEAD"}, "Cache-Control": {"no-store"}, "Vary": {"Accept, Accept-Language"}, "Content-Language": {"en"}, "Content-Type": {mediaText},
		}, "Something.\n"},
		"redirect": {"GET", "/abc", 308, http.Header{
			"Location": {"https://example.org/"}, "Cache-Control": {"no-store"},
		}, ""},
		"head": {"HEAD", "/abc", 308, http.Header{
			"Location": {"https://example.org/"}, "Cache-Control": {"no-store"},
		}, ""},
		"head of a page": {"HEAD", "/", 200, http.Header{
			"Cache-Control": {"no-store"}, "Content-Type": {mediaHTML}, "Content-Length": {"2000"},
		}, ""},
	}
}

// describedAnswer is an answer as a row of a table.
type describedAnswer struct {
	method, path string
	status       int
	header       http.Header
	body         string
}

func (a describedAnswer) check(d *description) error {
	return d.check(a.method, a.path, &answer{status: a.status, header: a.header, body: *bytes.NewBufferString(a.body)})
}

func TestWrongAnswersAreFound(t *testing.T) {
	t.Parallel()
	d, err := loadDescription()
	if err != nil {
		t.Fatal(err)
	}
	for name, right := range rightAnswers() {
		if err := right.check(d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	replace := func(from, to string) func(*describedAnswer) {
		return func(a *describedAnswer) { a.body = strings.Replace(a.body, from, to, 1) }
	}
	header := func(name string, values ...string) func(*describedAnswer) {
		return func(a *describedAnswer) { a.header[name] = values }
	}
	status := func(n int) func(*describedAnswer) { return func(a *describedAnswer) { a.status = n } }
	for _, row := range []struct {
		of, name string
		spoil    func(*describedAnswer)
	}{
		{"created", "another status", status(200)},
		{"created", "a status of another operation", status(302)},
		{"created", "no header Cache-Control", header("Cache-Control")},
		{"created", "a remainder that is no number", header("Quota-Remaining", "many")},
		{"created", "an empty list", func(a *describedAnswer) { a.body = "[]" }},
		{"created", "a header twice", header("Location", "https://s.example/abc", "https://s.example/abc")},
		{"created", "another header's value", header("Cache-Control", "no-cache")},
		{"created", "an unknown header", header("X-Powered-By", "echo")},
		{"created", "another content type", header("Content-Type", "text/css")},
		{"created", "no content type", header("Content-Type")},
		{"created", "a number for a string", replace(`"abc"`, `7`)},
		{"created", "a missing field", replace(`"expires_at":null,`, ``)},
		{"created", "another field", replace(`"expires_at"`, `"x":1,"expires_at"`)},
		{"created", "no instant", replace(`2026-11-29T10`, `2026-11-29 10`)},
		{"created", "a limit out of bounds", replace(`"max_visits":null`, `"max_visits":0`)},
		{"created", "half a body", replace("}\n", "")},
		{"created", "no body", func(a *describedAnswer) { a.body = "" }},
		{"limited", "another status's code", replace("rate_limited", "unavailable")},
		{"limited", "another status inside", replace("429", "503")},
		{"limited", "no Retry-After", header("Retry-After")},
		{"limited", "no language", header("Content-Language")},
		{"limited", "a language that there is not", header("Content-Language", "tlh")},
		{"limited", "a field that there is not", replace(`"detail"`, `"field":"x","detail"`)},
		{"limited", "no wait", header("Retry-After", "0")},
		{"limited", "a wait that is no number", header("Retry-After", "soon")},
		{"unknown path", "a page there", status(200)},
		{"unknown path", "another code", replace("not_found", "gone")},
		{"unknown method", "other methods", header("Allow", "GET, HEAD, PUT")},
		{"unknown method", "that it works", status(204)},
		{"unknown method", "two lines", replace("\n", "\n\n")},
		{"redirect", "a body", func(a *describedAnswer) { a.body = "Moved." }},
		{"redirect", "no destination", header("Location")},
		{"redirect", "another scheme", header("Location", "javascript:alert(1)")},
		{"head", "a body", func(a *describedAnswer) { a.body = "Moved." }},
		{"head", "no destination", header("Location")},
		{"head", "another status", status(303)},
		{"head of a page", "no content type", header("Content-Type")},
	} {
		wrong, ok := rightAnswers()[row.of]
		if !ok {
			t.Fatalf("there is no answer %q", row.of)
		}
		row.spoil(&wrong)
		if wrong.check(d) == nil {
			t.Errorf("%s with %s passes", row.of, row.name)
		}
	}
}

// failedTest is a test that only remembers whether it has failed.
type failedTest struct {
	testing.TB
	failed bool
}

func (f *failedTest) Helper()               {}
func (f *failedTest) Errorf(string, ...any) { f.failed = true }

// An answer that is not described fails the test that caused it, as every test's
// requests go through the same check.
func TestUndescribedAnswersFail(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "/to"} {
		for wrong, status := range map[bool]int{false: http.StatusNotFound, true: http.StatusTeapot} {
			test := &failedTest{TB: t}
			teapot := described(test, prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Vary", "Accept, Accept-Language")
				w.Header().Set("Content-Language", "en")
				write(w, r, status, mediaText, []byte("Something.\n"))
			}))
			(&site{Handler: teapot}).do(call{method: "GET", target: prefix + "/api/quota/x"})
			if test.failed != wrong {
				t.Errorf("status %d: failed is %t", status, test.failed)
			}
		}
	}
}
