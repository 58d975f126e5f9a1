package web

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"snip/shortener"
)

func TestRefusedBodies(t *testing.T) {
	t.Parallel()
	const (
		form  = mediaForm
		multi = "multipart/form-data; boundary=b"
		hint  = `send it with the header Content-Type: application/json`
	)
	part := func(disposition, value string) string {
		return "--b\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + value + "\r\n"
	}
	for _, row := range []struct {
		name, mediaType, body string
		status                int
		detail                string // as it stands in the text answer
	}{
		{"no body", mediaJSON, "", 400, "one JSON object"},
		{"null", mediaJSON, "null", 400, "one JSON object"},
		{"a string", mediaJSON, `"https://example.org/"`, 400, "one JSON object"},
		{"no url", mediaJSON, `{}`, 400, "url: is missing"},
		{"a null url", mediaJSON, `{"url":null}`, 400, "url: is missing"},
		{"an empty url", mediaJSON, `{"url":""}`, 400, "url: "},
		{"a number", mediaJSON, `{"url":5}`, 400, "url: must be a string"},
		{"an array", mediaJSON, `{"url":["https://example.org/"]}`, 400, "url: must be a string"},
		{"an unknown field", mediaJSON, `{"url":"https://example.org/","colour":{"a":[1]}}`, 400, `unknown field "colour"`},
		{"a later field", mediaJSON, `{"url":"https://example.org/","max_clicks":1}`, 400, `unknown field "max_clicks"`},
		{"another case", mediaJSON, `{"URL":"https://example.org/"}`, 400, `unknown field "URL"`},
		{"a long unknown field", mediaJSON, `{"` + strings.Repeat("ä", 100) + `":1}`, 400, `unknown field "` + strings.Repeat("ä", 32) + `…"`},
		{"a name twice", mediaJSON, `{"url":"https://example.org/","url":"https://example.net/"}`, 400, `the field "url" is given twice`},
		{"trailing data", mediaJSON, goodJSON + `{}`, 400, "not valid JSON near byte"},
		{"cut short", mediaJSON, `{"url":"https://exam`, 400, "not valid JSON"},
		{"invalid UTF-8", mediaJSON, "{\"url\":\"https://example.org/\xff\"}", 400, "not valid JSON near byte"},
		{"half a surrogate pair", mediaJSON, `{"url":"https://example.org/\ud800"}`, 400, "not valid JSON near byte"},
		{"a raw NUL", mediaJSON, "{\"url\":\"https://example.org/\x00\"}", 400, "not valid JSON near byte"},
		{"an escaped NUL", mediaJSON, `{"url":"https://example.org/\u0000"}`, 400, "url: "},
		{"deeply nested", mediaJSON, `{"url":` + strings.Repeat("[", 30000), 400, "body cannot be used"},
		{"deeply nested and unknown", mediaJSON, `{"x":` + strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000) + "}", 400, "body cannot be used"},
		{"a long destination", mediaJSON, `{"url":"https://example.org/` + strings.Repeat("a", 9000) + `"}`, 400, "8192"},

		{"a bare ampersand", form, "url=https://example.org/?a=1&b=2", 400, `unknown field "b"; an & that belongs to the destination is written %26`},
		{"an ampersand at the end", form, "url=https://example.org/?a&", 400, `unknown field ""`},
		{"a number twice", form, "url=https://example.org/&max_visits=5&max_visits=", 400, "max_visits: is given twice"},
		{"an empty number and another", form, "url=https://example.org/&max_visits=&max_visits=5", 400, "max_visits: is given twice"},
		{"a number with a sign", form, "url=https://example.org/&max_visits=%2B5", 400, "whole number"},
		{"a number with zeros", form, "url=https://example.org/&max_visits=005", 400, "whole number"},
		{"no number", form, "url=https://example.org/&max_visits=many", 400, "whole number"},
		{"neither true nor false", form, "url=https://example.org/&forward_query=on", 400, "true or false"},
		{"a field twice", form, "url=https://example.org/?a=1&url=2", 400, "url: is given twice"},
		{"a bad escape", form, "url=https://example.org/100%&slug=abc", 400, `"%" is not a valid escape`},
		{"a bad escape in a name", form, "u%zz=1", 400, `"%zz" is not a valid escape`},
		{"not text", form, "url=https://example.org/%ff", 400, "not valid UTF-8"},
		{"a bare destination", form, "https://example.org/", 400, "unknown field"},
		{"an empty form", form, "", 400, "url: is missing"},
		{"JSON by curl -d", form, goodJSON, 400, hint},
		{"JSON without a type", "", " \n" + goodJSON, 400, hint},
		{"a batch without a type", "", `[]`, 400, hint},
		{"a form without a type", "", "url=https://example.org/", 415, "no Content-Type"},

		{"a file", multi, part(`name="url"; filename="x"`, "y") + "--b--\r\n", 400, "is a file"},
		{"an unknown part", multi, part(`name="x"`, "y") + "--b--\r\n", 400, `unknown field "x"`},
		{"a part without a name", multi, "--b\r\n\r\nx\r\n--b--\r\n", 400, `unknown field ""`},
		{"a part twice", multi, part(`name="slug"`, "abc") + part(`name="slug"`, "abd") + "--b--\r\n", 400, "slug: is given twice"},
		{"no last boundary", multi, part(`name="url"`, "https://example.org/"), 400, "not valid multipart"},
		{"no parts", multi, "x", 400, "not valid multipart"},
		{"no boundary", "multipart/form-data", "x", 400, "no boundary"},
		{"a part that is not text", multi, part(`name="url"`, "\xff") + "--b--\r\n", 400, "not valid UTF-8"},

		{"another type", "text/xml", "<url/>", 415, `"text/xml"`},
		{"JSON as text", "text/plain;charset=UTF-8", goodJSON, 400, hint},
		{"another charset", "application/json; charset=latin1", goodJSON, 415, "utf-8"},
		{"a form in another charset", "application/x-www-form-urlencoded; charset=utf-16", "url=x", 415, "utf-8"},
		{"an unreadable type", "application/json; charset", goodJSON, 415, "cannot be read"},
		{"a slash", "/", goodJSON, 415, "cannot be read"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, siteSetup{})
			header := map[string]string{"Accept": "text/plain"}
			if row.mediaType != "" {
				header["Content-Type"] = row.mediaType
			}
			w := s.do(call{body: row.body, header: header})
			wantAnswer(t, w, row.status, row.detail)
			if strings.Count(w.Body.String(), "\n") != 1 || !utf8.Valid(w.Body.Bytes()) {
				t.Errorf("not one line of text: %q", w.Body)
			}
			if used := s.used(t); used != 0 {
				t.Errorf("%d used", used)
			}
		})
	}
}

func TestTheQueryIsNoBody(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	w := s.do(call{target: "/api/links?url=https://example.org/", body: "", header: map[string]string{"Content-Type": mediaForm}})
	wantAnswer(t, w, http.StatusBadRequest, "url: is missing")
	w = s.do(call{target: "/api/links?slug=abcd", body: "url=https://example.org/", header: map[string]string{"Content-Type": mediaForm}})
	if wantAnswer(t, w, http.StatusCreated, ""); strings.Contains(w.Body.String(), "abcd") {
		t.Errorf("the query was read: %s", w.Body)
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	for encoding, status := range map[string]int{"identity": 201, "Identity": 201, "gzip": 415, "identity, gzip": 415, "br": 415} {
		s := newSite(t, siteSetup{})
		w := s.do(call{body: goodJSON, header: map[string]string{"Content-Type": mediaJSON, "Content-Encoding": encoding}})
		wantAnswer(t, w, status, "")
	}
	s := newSite(t, siteSetup{})
	r := httptest.NewRequest(http.MethodPost, "/api/links", strings.NewReader(goodJSON))
	r.Header["Content-Type"] = []string{mediaJSON, mediaForm}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	wantAnswer(t, w, http.StatusUnsupportedMediaType, "cannot be read")
}

// An object and a form may have less than what may be a list. One that says that it
// is too large, whatever it is, is not read at all.
func TestBodySize(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	object := func(size int) string { return goodJSON + strings.Repeat(" ", size-len(goodJSON)) }
	array := func(size int) string { return "[" + goodJSON + "]" + strings.Repeat(" ", size-len(goodJSON)-2) }
	lines := func(size int) string { return "https://example.org/" + strings.Repeat("\n", size-20) }
	form := func(size int) string { return "url=https://example.org/" + strings.Repeat("+", size-24) }
	multi := func(size int) string {
		const head, end = "--b\r\nContent-Disposition: form-data; name=url\r\n\r\nhttps://example.org/", "\r\n--b--\r\n"
		return head + strings.Repeat(" ", size-len(head)-len(end)) + end
	}
	for _, row := range []struct {
		name, mediaType string
		most, declared  int // bytes that are read, and up to which a length that is announced is waited for
		body            func(size int) string
	}{
		{"object", mediaJSON, maxBody, maxListBody, object},
		{"array", mediaJSON, maxListBody, maxListBody, array},
		{"lines", mediaPlain, maxListBody, maxListBody, lines},
		{"form", mediaForm, maxBody, maxBody, form},
		{"multipart", "multipart/form-data; boundary=b", maxListBody, maxListBody, multi},
	} {
		header := map[string]string{"Content-Type": row.mediaType}
		wantAnswer(t, s.do(call{body: row.body(row.most), header: header}), http.StatusCreated, "")
		wantAnswer(t, s.do(call{body: row.body(row.most + 1), header: header}), http.StatusRequestEntityTooLarge, "not be larger than 65536 bytes, or 1048576 where it is a JSON array, text/plain or multipart/form-data.")

		declared := &countedBody{Reader: strings.NewReader("")}
		r := httptest.NewRequest(http.MethodPost, "/api/links", declared)
		r.Header.Set("Content-Type", row.mediaType)
		r.ContentLength = int64(row.declared) + 1
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if wantAnswer(t, w, http.StatusRequestEntityTooLarge, `"code":"too_large"`); declared.read != 0 {
			t.Errorf("%s: read %d bytes of a body that said it was too large", row.name, declared.read)
		}

		endless := &countedBody{Reader: io.MultiReader(strings.NewReader(row.body(100)[:1]), neverEnding{})}
		r = httptest.NewRequest(http.MethodPost, "/api/links", endless)
		r.Header.Set("Content-Type", row.mediaType)
		r.ContentLength = -1
		w = httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if wantAnswer(t, w, http.StatusRequestEntityTooLarge, `"code":"too_large"`); endless.read != row.most+1 {
			t.Errorf("%s: read %d bytes of an endless body", row.name, endless.read)
		}
	}
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// Whatever passes as a form is what the standard library makes of it, no more
// and no less.
func FuzzParseForm(f *testing.F) {
	for _, seed := range []string{"", "url=https%3A%2F%2Fexample.org&slug=a+b", "url=a&url=b", "url=%zz", "url=a&b", "expires_at=&url=;", "url=a&max_visits=5&forward_query=true", "max_visits=&forward_query=", "max_visits=05"} {
		f.Add([]byte(seed))
	}
	languages := testCatalogue(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		var got fields
		if err := parseForm(body, &got); err != nil {
			wantFitProblem(t, languages, err)
			return
		}
		want, err := url.ParseQuery(strings.ReplaceAll(string(body), ";", "%3B"))
		if err != nil {
			t.Fatalf("accepts %q: %v", body, err)
		}
		link := shortener.NewLink{URL: want.Get("url"), Slug: want.Get("slug"), ExpiresAt: want.Get("expires_at"),
			ForwardQuery: want.Get("forward_query") == "true"}
		if text := want.Get("max_visits"); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatalf("accepts %q: %v", body, err)
			}
			link.MaxVisits = &n
		}
		if !cmp.Equal(got.link(), link) {
			t.Errorf("%q: %+v, want %+v", body, got.link(), link)
		}
		for name, values := range want {
			if len(values) != 1 || !slices.Contains([]string{"url", "slug", "expires_at", "max_visits", "forward_query"}, name) {
				t.Errorf("accepts %q", body)
			}
		}
	})
}

// Whatever passes as JSON is text, and errors are one line of it.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{goodJSON, `{"url":"\ud800"}`, `{"url":1}`, `{"\n":1}`, `{"url":"a","url":"b"}`, "[]", "{", `{"slug":null}`} {
		f.Add([]byte(seed))
	}
	languages := testCatalogue(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		var got fields
		if err := parseJSON(body, &got, unusable); err != nil {
			wantFitProblem(t, languages, err)
			return
		}
		link := got.link()
		if !utf8.ValidString(link.URL + link.Slug + link.ExpiresAt) {
			t.Errorf("%q: %+v is not text", body, link)
		}
		if !bytes.HasSuffix(bytes.TrimRight(body, " \t\r\n"), []byte("}")) {
			t.Errorf("accepts %q", body)
		}
	})
}

// Whatever passes as a multipart form can be written anew from what was read of
// it, and is then read the same; errors are one line of text.
func FuzzParseMultipart(f *testing.F) {
	part := func(disposition, value string) string {
		return "--b\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + value + "\r\n"
	}
	url := part(`name="url"`, "https://example.org/")
	for _, seed := range []string{
		url + "--b--\r\n", url + part(`name=slug`, "abc") + "--b--", "preamble\r\n" + url + "--b--\r\nepilogue",
		url + url + "--b--\r\n", url, "--b--\r\n", "--b\n\nx\n--b--\n", part(`name="url"; filename="x"`, "y") + "--b--\r\n",
		part(`name="file"; filename="x"`, "y\n\nz") + part("name=slug", "") + "--b--\r\n", part(`name="file"`, "\ufeffy\r\n") + "--b--\r\n",
		part(`name="ur\"l"`, "\xff") + "--b--\r\n", "--b\r\nContent-Transfer-Encoding: quoted-printable\r\nContent-Disposition: form-data; name=url\r\n\r\n=41\r\n--b--\r\n",
	} {
		f.Add([]byte(seed), "b")
	}
	f.Add([]byte(url), "")
	f.Add([]byte(url), "b\r\n")
	languages := testCatalogue(f)
	f.Fuzz(func(t *testing.T, body []byte, boundary string) {
		var got fields
		if err := parseMultipart(body, boundary, &got); err != nil {
			wantFitProblem(t, languages, err)
			return
		}
		link := got.link()
		if !utf8.ValidString(link.URL + link.Slug + link.ExpiresAt) {
			t.Errorf("%q: %+v is not text", body, link)
		}
		var anew bytes.Buffer
		w := multipart.NewWriter(&anew)
		values := map[string]string{"url": valueOf(got.URL), "slug": valueOf(got.Slug), "expires_at": valueOf(got.ExpiresAt), "file": valueOf(got.file)}
		if got.MaxVisits != nil {
			values["max_visits"] = fmt.Sprint(*got.MaxVisits)
		}
		if got.ForwardQuery != nil {
			values["forward_query"] = fmt.Sprint(*got.ForwardQuery)
		}
		for _, name := range got.given {
			if err := w.WriteField(name, values[name]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if len(got.given) == 0 {
			return // a form without parts, which the writer ends as no reader takes it
		}
		var again fields
		if err := parseMultipart(anew.Bytes(), w.Boundary(), &again); err != nil || !cmp.Equal(again.link(), link) {
			t.Errorf("%q: %+v, and again %+v, %v", body, link, again.link(), err)
		}
	})
}
