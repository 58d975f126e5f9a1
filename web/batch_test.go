package web

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"snip/quota"
	"snip/shortener"
)

// multi is a form of these fields, of which the one with the name file is one.
func multi(fields ...string) string {
	var body strings.Builder
	for i := 0; i < len(fields); i += 2 {
		fmt.Fprintf(&body, "--b\r\nContent-Disposition: form-data; name=%q", fields[i])
		if fields[i] == "file" {
			body.WriteString("; filename=list.txt\r\nContent-Type: text/plain")
		}
		fmt.Fprintf(&body, "\r\n\r\n%s\r\n", fields[i+1])
	}
	return body.String() + "--b--\r\n"
}

const mediaParts = "multipart/form-data; boundary=b"

// tableOfTwo is what the table of two links shows.
var tableOfTwo = regexp.MustCompile(`^https://example\.org/1https://s\.example/(\w+)Manage ?https://example\.org/2https://s\.example/(\w+)Manage$`)

// two is a batch of two links that end, in each way to write it down.
var two = []struct{ name, mediaType, body string }{
	{"array", mediaJSON, `[{"url":"https://example.org/1","max_visits":9},{"max_visits":9,"url":"https://example.org/2"}]`},
	{"array with a charset", "application/json; charset=utf-8", "\n\t[ {\"url\":\"https://example.org/1\",\"max_visits\":9} ,\r\n{\"url\":\"https://example.org/2\",\"max_visits\":9}]\n"},
	{"form", mediaForm, "max_visits=9&slug=&url=https://example.org/1%0D%0Ahttps://example.org/2"},
	{"form with blank lines", mediaForm, "url=%0A+%0Ahttps://example.org/1+%0A%0A+https://example.org/2%0A&max_visits=9"},
	{"multipart", mediaParts, multi("max_visits", "9", "url", "https://example.org/1\r\nhttps://example.org/2")},
	{"file", mediaParts, multi("file", "https://example.org/1\nhttps://example.org/2\n", "max_visits", "9", "url", "")},
	{"file from Windows", mediaParts, multi("file", "\ufeffhttps://example.org/1\r\n\r\nhttps://example.org/2\r\n", "max_visits", "9")},
	{"file of no known type", mediaParts, strings.Replace(multi("file", "https://example.org/1\nhttps://example.org/2", "max_visits", "9"), mediaPlain, "application/octet-stream", 1)},
}

// Every way to ask for a batch, in every format that is answered.
func TestBatches(t *testing.T) {
	t.Parallel()
	for _, b := range two {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, siteSetup{every: time.Hour, burst: 3})
			ask := func(accept string) *httptest.ResponseRecorder {
				w := s.do(call{body: b.body, header: map[string]string{"Content-Type": b.mediaType, "Accept": accept}})
				wantAnswer(t, w, http.StatusCreated, "")
				if w.Header().Get("Location") != "" || w.Header().Get("Cache-Control") != "no-store" {
					t.Errorf("headers %v", w.Header())
				}
				return w
			}
			w := ask("")
			var links []createdLink
			if err := json.Unmarshal(w.Body.Bytes(), &links, json.RejectUnknownMembers(true)); err != nil {
				t.Fatal(err)
			}
			if len(links) != 2 || links[0].URL != "https://example.org/1" || links[1].URL != "https://example.org/2" ||
				links[0].ManageToken == links[1].ManageToken || valueOf(links[1].MaxVisits) != 9 || w.Header().Get("Quota-Remaining") != "48" {
				t.Errorf("%s, headers %v", w.Body, w.Header())
			}

			w = ask("text/plain")
			lines := strings.Split(w.Body.String(), "\n")
			if len(lines) != 3 || lines[2] != "" || w.Header().Get("Content-Type") != mediaText {
				t.Fatalf("%q", w.Body)
			}
			for i, short := range lines[:2] {
				wantVisit(t, s, short, fmt.Sprintf("https://example.org/%d", i+1))
			}

			w = ask("text/html")
			root, err := html.Parse(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			rows := node{root}.first(t, "tbody", "", "")
			if got := rows.text(); !tableOfTwo.MatchString(got) {
				t.Errorf("the table has %q", got)
			}
			manage := rows.first(t, "a", "class", "manage").attr("href")
			slug, token, _ := strings.Cut(strings.TrimPrefix(manage, "/-/manage#"), ".")
			wantAnswer(t, s.do(call{method: "DELETE", target: "/api/links/" + slug, header: map[string]string{"Authorization": "Bearer " + token}}), http.StatusNoContent, "")

			// Three tokens of the throttle, and six units of quota.
			wantAnswer(t, s.do(call{body: b.body, header: map[string]string{"Content-Type": b.mediaType}}), http.StatusTooManyRequests, "")
			if used := s.used(t); used != 6 {
				t.Errorf("%d used, want 6", used)
			}
		})
	}
}

// What stands for one link is answered as one, and a list of one as a list.
func TestListsOfOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	for _, row := range []struct {
		mediaType, body string
		list            bool
	}{
		{mediaJSON, goodJSON, false},
		{mediaJSON, "[" + goodJSON + "]", true},
		{mediaForm, "url=https://example.org/", false},
		{mediaForm, "url=%0D%0Ahttps://example.org/%0D%0A", false},
		{mediaForm, "slug=a-name&url=https://example.org/%0A", false},
		{mediaPlain, "https://example.org/", true},
		{mediaPlain + "; charset=utf-8", "\ufeff\n\nhttps://example.org/\n", true},
		{mediaParts, multi("file", "https://example.org/"), true},
		{mediaParts, multi("file", "", "url", "https://example.org/"), false},
		{mediaParts, strings.Replace(multi("url", "https://example.org/", "file", ""), "filename=list.txt\r\nContent-Type: text/plain", "filename=\"\"\r\nContent-Type: application/octet-stream", 1), false},
	} {
		w := s.do(call{body: row.body, header: map[string]string{"Content-Type": row.mediaType}})
		wantAnswer(t, w, http.StatusCreated, `"url":"https://example.org/"`)
		if list := strings.HasPrefix(w.Body.String(), "["); list != row.list || (w.Header().Get("Location") == "") != row.list || (w.Header().Get("Quota-Remaining") != "") != row.list {
			t.Errorf("%s %q: %v %s", row.mediaType, row.body, w.Header(), w.Body)
		}
	}
}

// itemFault is an element of the member errors.
type itemFault struct {
	Index  int    `json:"index"`
	Line   int    `json:"line"`
	Field  string `json:"field"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Every item that is wrong is named, and nothing is made.
func TestWrongItems(t *testing.T) {
	t.Parallel()
	const good = goodJSON
	at := func(index int, field, code, detail string) itemFault { return itemFault{index, 0, field, code, detail} }
	line := func(line, index int, field, code, detail string) itemFault {
		return itemFault{index, line, field, code, detail}
	}
	for _, row := range []struct {
		name, mediaType, body string
		status                int
		code                  string
		want                  []itemFault
	}{
		{"destinations", mediaJSON, `[{"url":"ftp:x"},` + good + `,{"url":"http://127.1/"}]`, 400, "invalid_url", []itemFault{
			at(0, "url", "invalid_url", "url: must start with http"), at(2, "url", "blocked_destination", "url: leads to a private"),
		}},
		{"fields", mediaJSON, `[` + good + `,{"url":"https://a.example","slug":"a b"},{"url":"https://a.example","expires_at":"x"},{"url":"https://a.example","max_visits":0}]`, 400, "invalid_slug", []itemFault{
			at(1, "slug", "invalid_slug", "slug: must not contain"), at(2, "expires_at", "invalid_expiry", "expires_at: must be"), at(3, "max_visits", "invalid_request", "max_visits: must be a whole number from 1 to 10000"),
		}},
		{"structure, and more", mediaJSON, `[{"url":"ftp:x"},{"url":"https://a.example","colour":1},{"url":5},5,{},{"url":"https://a.example","url":"b"},{"url":"https://a.example","slug":"!!!"}]`, 400, "invalid_url", []itemFault{
			at(0, "url", "invalid_url", "url: must start with http"), at(1, "colour", "invalid_request", `It cannot be used: unknown field "colour".`), at(2, "url", "invalid_request", "url: must be a string."),
			at(3, "", "invalid_request", "It cannot be used: it must be one JSON object"), at(4, "url", "invalid_request", "url: is missing"),
			at(5, "url", "invalid_request", `It cannot be used: it is not valid JSON: the field "url" is given twice.`), at(6, "slug", "invalid_slug", "slug: must not contain"),
		}},
		{"a long name", mediaJSON, `[{"url":"https://a.example","` + strings.Repeat("x", 9000) + `":1}]`, 400, "invalid_request", []itemFault{
			at(0, strings.Repeat("x", 64)+"…", "invalid_request", "It cannot be used: unknown field"),
		}},
		{"deeply nested", mediaJSON, "[" + strings.Repeat("[", 9000) + strings.Repeat("]", 9001), 400, "invalid_request", []itemFault{
			at(0, "", "invalid_request", "It cannot be used: it must be one JSON object"),
		}},
		{"taken slugs", mediaJSON, `[{"url":"https://a.example","slug":"taken"},` + good + `,{"url":"https://a.example","slug":"taken2"}]`, 409, "slug_taken", []itemFault{
			at(0, "slug", "slug_taken", "slug: is taken"), at(2, "slug", "slug_taken", "slug: is taken"),
		}},
		{"a taken slug and a wrong one", mediaJSON, `[{"url":"https://a.example","slug":"taken"},{"url":"https://a.example","slug":"a b"}]`, 400, "invalid_slug", []itemFault{
			at(1, "slug", "invalid_slug", "slug: must not contain"),
		}},
		{"a slug twice", mediaJSON, `[{"url":"https://a.example","slug":"abc"},{"url":"https://a.example","slug":"abc"}]`, 400, "invalid_slug", []itemFault{
			at(1, "slug", "invalid_slug", "slug: is given twice"),
		}},
		{"text that is none, beside what else is wrong", mediaJSON, "[{\"url\":\"\xff\"},{\"url\":\"ftp:x\"},{\"url\":\"\\ud800\"}," + good + ",{\"\xff\":1}]", 400, "invalid_request", []itemFault{
			at(0, "", "invalid_request", "It cannot be used: it is not valid JSON near byte"), at(1, "url", "invalid_url", "url: must start with http"),
			at(2, "", "invalid_request", "It cannot be used: it is not valid JSON near byte"), at(4, "", "invalid_request", "It cannot be used: it is not valid JSON near byte"),
		}},
		{"null", mediaJSON, "[null," + good + "]", 400, "invalid_request", []itemFault{at(0, "", "invalid_request", "It cannot be used: it must be one JSON object")}},
		{"the slug of a wrong item", mediaJSON, `[{"url":"ftp:x","slug":"dup-1"},{"url":"https://a.example","slug":"dup-1"},{"url":5,"slug":"dup-2"},{"slug":"dup-3"},` +
			`{"url":"https://a.example","slug":"dup-2"},{"url":"https://a.example","slug":"dup-3"},{"url":"https://a.example","slug":"!"},{"url":"https://a.example","slug":"!"}]`, 400, "invalid_url", []itemFault{
			at(0, "url", "invalid_url", "url: must start with http"), at(1, "slug", "invalid_slug", "slug: is given twice"), at(2, "url", "invalid_request", "url: must be a string"),
			at(3, "url", "invalid_request", "url: is missing"), at(4, "slug", "invalid_slug", "slug: is given twice"), at(5, "slug", "invalid_slug", "slug: is given twice"),
			at(6, "slug", "invalid_slug", "slug: must not contain"), at(7, "slug", "invalid_slug", "slug: must not contain"),
		}},
		{"lines", mediaPlain, "https://example.org/\n\n\nftp:x\n\x01\n", 400, "invalid_url", []itemFault{
			line(4, 1, "url", "invalid_url", "url: must start with http"), line(5, 2, "url", "invalid_url", "url: must not contain the control character U+0001"),
		}},
		{"rows of a table", mediaPlain, "https://example.org/1,one\nhttps://example.org/?a,b=c\nexample.org/2, two\nhttps://example.org/3,\n" +
			"https://example.org/4,four,2030-01-31T18:00:00+09:00\nhttps://example.org/5,2030-01-31\nhttps://example.org/6%2Csix\n", 400, "invalid_url", []itemFault{
			line(1, 0, "url", "invalid_url", "url: ends like a row of a table"), line(3, 2, "url", "invalid_url", "url: ends like a row"),
			line(4, 3, "url", "invalid_url", "url: ends like a row"), line(5, 4, "url", "invalid_url", "url: ends like a row"),
			line(6, 5, "url", "invalid_url", "url: ends like a row")}},
		{"rows of other tables", mediaPlain, "https://example.org/1,2\nhttps://example.org/2,2030-01-01T00:00:00Z,5\nhttps://example.org/3,\"one, two\"\nhttps://example.org/4,My title\n" +
			"https://example.org/5,one.html\nhttps://example.org/6,나의 링크\nhttps://example.org/7,a b/c\nhttps://example.org/8,_x", 400, "invalid_url", []itemFault{
			line(1, 0, "url", "invalid_url", "url: ends like a row of a table"), line(2, 1, "url", "invalid_url", "url: ends like a row"),
			line(3, 2, "url", "invalid_url", "url: ends like a row"), line(4, 3, "url", "invalid_url", "url: ends like a row"), line(6, 5, "url", "invalid_url", "url: ends like a row")}},
		{"rows in a form", mediaForm, "url=https://example.org/1,one%0Ahttps://example.org/2,two", 400, "invalid_url", []itemFault{
			line(1, 0, "url", "invalid_url", "url: ends like a row"), line(2, 1, "url", "invalid_url", "url: ends like a row")}},
		{"two on a line", mediaPlain, "https://example.org/1 https://example.org/2\nhttps://example.org/3\u200b", 400, "invalid_url", []itemFault{
			line(1, 0, "url", "invalid_url", "url: must be one address"), line(2, 1, "url", "invalid_url", "url: must not end with the invisible character U+200B")}},
		{"lines of a form", mediaForm, "url=https://example.org/%0A%0Aftp:x", 400, "invalid_url", []itemFault{line(3, 1, "url", "invalid_url", "url: must start with http")}},
		{"lines of a file", mediaParts, multi("file", "https://example.org/\rx\nftp:x"), 400, "invalid_url", []itemFault{
			line(1, 0, "url", "invalid_url", "url: must not contain the control character U+000D"), line(2, 1, "url", "invalid_url", "url: must start with http"),
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, siteSetup{})
			for _, slug := range []shortener.Slug{"taken", "taken2"} {
				s.put(t, shortener.Link{Slug: slug, Destination: "https://example.org/"})
			}
			header := map[string]string{"Content-Type": row.mediaType}
			w := s.do(call{body: row.body, header: header})
			wantAnswer(t, w, row.status, `"code":"`+row.code+`"`)
			var got struct {
				Field, Detail string
				Errors        []itemFault
			}
			decode(t, w, &got)
			same := slices.EqualFunc(got.Errors, row.want, func(got, want itemFault) bool {
				return got.Index == want.Index && got.Line == want.Line && got.Field == want.Field && got.Code == want.Code && strings.HasPrefix(got.Detail, want.Detail)
			})
			if !same || got.Field != "" {
				t.Errorf("errors (-want +got):\n%s", cmp.Diff(row.want, got.Errors))
			}
			first, text := fmt.Sprintf("at index %d. ", got.Errors[0].Index), ""
			if line := got.Errors[0].Line; line > 0 {
				first = fmt.Sprintf("in line %d. ", line)
			}
			if !strings.Contains(got.Detail, first) || !strings.HasSuffix(got.Detail, got.Errors[0].Detail) {
				t.Errorf("detail %q", got.Detail)
			}
			for _, fault := range got.Errors {
				if fault.Line > 0 {
					text += fmt.Sprintf("line %d: %s\n", fault.Line, fault.Detail)
				} else {
					text += fmt.Sprintf("index %d: %s\n", fault.Index, fault.Detail)
				}
			}
			header["Accept"] = "text/plain"
			if w := s.do(call{body: row.body, header: header}); w.Code != row.status || w.Body.String() != text {
				t.Errorf("as text: %d %q, want %q", w.Code, w.Body, text)
			}
			if used := s.used(t); used != 0 || w.Header().Get("Quota-Remaining") != "" {
				t.Errorf("%d used, headers %v", used, w.Header())
			}
		})
	}
}

// What is no list, or none of that length, has no item to name.
func TestRefusedLists(t *testing.T) {
	t.Parallel()
	const size = "A list must have 1 to 100 links."
	array := func(n int) string { return "[" + strings.Repeat(goodJSON+",", n-1) + goodJSON + "]" }
	lines := func(n int) string { return strings.Repeat("https://example.org/\n", n) }
	for _, row := range []struct {
		name, mediaType, body string
		detail                string
	}{
		{"an empty array", mediaJSON, "[]", size},
		{"101 items", mediaJSON, array(101), size},
		{"101 items, and no more of them read", mediaJSON, strings.TrimSuffix(array(101), "]") + ",{", size},
		{"101 items that are wrong", mediaJSON, "[" + strings.Repeat("5,", 100) + "5]", size},
		{"no lines", mediaPlain, "", size},
		{"blank lines", mediaPlain, "\r\n \n\t\n", size},
		{"101 lines", mediaPlain, lines(101), size},
		{"100,000 lines", mediaPlain, strings.Repeat("a.bc\n", 100_000), size},
		{"a form of 101 lines", mediaForm, "url=" + url.QueryEscape(lines(101)), size},
		{"an empty file", mediaParts, multi("file", ""), "url: is missing"},
		{"a blank file", mediaParts, multi("file", "\n"), size},
		{"a file of 101 lines", mediaParts, multi("file", lines(101)), size},
		{"a blank form", mediaForm, "url=%0A%0A", "url: must not be empty"},

		{"not closed", mediaJSON, "[" + goodJSON, "not valid JSON near byte 31"},
		{"a comma at the end", mediaJSON, "[" + goodJSON + ",]", "not valid JSON near byte"},
		{"no comma", mediaJSON, "[" + goodJSON + goodJSON + "]", "not valid JSON near byte"},
		{"trailing data", mediaJSON, "[" + goodJSON + "] 5", "not valid JSON near byte"},
		{"a second array", mediaJSON, "[" + goodJSON + "][]", "not valid JSON near byte"},
		{"trailing text", mediaJSON, "[" + goodJSON + "]x", "not valid JSON near byte"},
		{"invalid UTF-8 between items", mediaJSON, "[" + goodJSON + ",\xff]", "not valid JSON near byte"},
		{"a byte order mark", mediaJSON, "\ufeff[" + goodJSON + "]", "it begins with a byte order mark, which JSON must not have"},
		{"a byte order mark before one link", mediaJSON, "\ufeff" + goodJSON, "it begins with a byte order mark, which JSON must not have"},
		{"a long array with a byte order mark", mediaJSON, "\ufeff[" + goodJSON + "]" + strings.Repeat(" ", maxBody), "it begins with a byte order mark, which JSON must not have"},
		{"lines of JSON with a byte order mark", mediaPlain, "\ufeff[" + goodJSON + "]", "Content-Type: application/json"},
		{"deeply nested", mediaJSON, strings.Repeat("[", 30_000), "body cannot be used"},
		{"lines that are not text", mediaPlain, "https://example.org/\xff", "not valid UTF-8"},
		{"lines of JSON", mediaPlain, "[" + goodJSON + "]", "Content-Type: application/json"},

		{"lines with a slug", mediaForm, "slug=abc&url=https://a.example%0Ahttps://b.example", "slug: names one link only"},
		{"a file with a slug", mediaParts, multi("file", "https://a.example", "slug", "abc"), "slug: names one link only"},
		{"a file and an address", mediaParts, multi("file", "https://a.example", "url", "https://b.example"), "file: must not come together with url"},
		{"a file twice", mediaParts, multi("file", "https://a.example", "file", "https://b.example"), "file: is given twice"},
		{"a file in a form without files", mediaForm, "file=https://a.example", `unknown field "file"`},
		{"a file that is not text", mediaParts, multi("file", "https://a.example/\xff"), "file: must be plain text in UTF-8"},
		{"a file of another type", mediaParts, strings.Replace(multi("file", "https://a.example"), mediaPlain, "text/csv", 1), "file: must be plain text in UTF-8"},
		{"a file of another charset", mediaParts, strings.Replace(multi("file", "https://a.example"), mediaPlain, "text/plain; charset=latin1", 1), "file: must be plain text in UTF-8"},
		{"a file of no readable type", mediaParts, strings.Replace(multi("file", "https://a.example"), mediaPlain, "text/plain; charset", 1), "file: must be plain text in UTF-8"},
		{"another file", mediaParts, strings.Replace(multi("file", "https://a.example"), `name="file"`, `name="url"`, 1), `the field "url" is a file; only the field file may be one`},
		{"an end for all that has passed", mediaForm, "expires_at=2020-01-01T00:00:00Z&url=https://a.example%0Ahttps://b.example", "expires_at: must lie in the future"},
		{"a number for all that is too large", mediaParts, multi("file", "https://a.example\nhttps://b.example", "max_visits", "10001"), "max_visits: must be a whole number"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, siteSetup{policy: &quota.Policy{Client: 500}})
			w := s.do(call{body: row.body, header: map[string]string{"Content-Type": row.mediaType, "Accept": "text/plain"}})
			wantAnswer(t, w, http.StatusBadRequest, row.detail)
			if used := s.used(t); used != 0 || strings.Contains(w.Body.String(), "at index") {
				t.Errorf("%d used, %s", used, w.Body)
			}
		})
	}
	for name, c := range map[string]call{
		"array": {body: array(100), header: asJSON},
		"lines": {body: lines(100), header: map[string]string{"Content-Type": mediaPlain}},
		"form":  {body: "url=" + url.QueryEscape(lines(100)), header: map[string]string{"Content-Type": mediaForm}},
	} {
		s := newSite(t, siteSetup{policy: &quota.Policy{Client: 100}})
		w := s.do(c)
		if wantAnswer(t, w, http.StatusCreated, "[{"); s.used(t) != 100 || strings.Count(w.Body.String(), "manage_token") != 100 {
			t.Errorf("%s: %d used", name, s.used(t))
		}
	}
}

// All or nothing, and whoever is refused is told what is left of their own.
func TestBatchBeyondTheQuota(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{policy: &quota.Policy{Client: 10, Service: 15}})
	batch := func(n int, from string) call {
		return call{from: from, body: strings.Repeat("https://example.org/\n", n), header: map[string]string{"Content-Type": mediaPlain}}
	}
	ask := func(c call, status int, remaining string) *httptest.ResponseRecorder {
		t.Helper()
		w := s.do(c)
		wantAnswer(t, w, status, "")
		if got := w.Header().Get("Quota-Remaining"); got != remaining {
			t.Errorf("%d remaining: %q, want %q", w.Code, got, remaining)
		}
		return w
	}
	// No day has room for so many: waiting would be of no use.
	large := s.do(batch(11, ""))
	wantAnswer(t, large, http.StatusBadRequest, `"code":"invalid_request","detail":"The list has 11 links; this client may make 10 a day."`)
	if large.Header().Get("Quota-Remaining") != "" || large.Header().Get("Retry-After") != "" {
		t.Errorf("headers %v", large.Header())
	}
	ask(batch(7, ""), http.StatusCreated, "3")
	list := ask(batch(4, ""), http.StatusTooManyRequests, "3")
	ask(batch(3, ""), http.StatusCreated, "0")
	alone := s.post(goodJSON)
	wantAnswer(t, alone, http.StatusTooManyRequests, "")
	if !bytes.Equal(list.Body.Bytes(), alone.Body.Bytes()) || list.Header().Get("Retry-After") != "50400" || alone.Header().Get("Quota-Remaining") != "" {
		t.Errorf("a list is refused with %v %s, and one link with %v %s", list.Header(), list.Body, alone.Header(), alone.Body)
	}
	// The service's level is full for six and not for five. What is left of it is not told.
	ask(batch(6, "198.51.100.7:5000"), http.StatusTooManyRequests, "10")
	ask(batch(5, "198.51.100.7:5000"), http.StatusCreated, "5")

	unlimited := newSite(t, siteSetup{policy: &quota.Policy{Service: 5}})
	for _, n := range []int{6, 5} {
		if w := unlimited.do(batch(n, "")); w.Header().Get("Quota-Remaining") != "" {
			t.Errorf("no limit of its own: %v", w.Header())
		}
	}
}

// A page counts lines as people do, and keeps what was typed.
func TestRefusedListAsAPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{policy: &quota.Policy{Client: 3, Service: 3}})
	wantAnswer(t, s.post(goodJSON), http.StatusCreated, "")
	const text = "https://example.org/\r\n\r\nftp:x\r\n\r\nhttps://a..b/"
	ask := func(text string) node {
		w := s.do(call{body: "url=" + url.QueryEscape(text), header: map[string]string{"Content-Type": mediaForm, "Accept": "text/html"}})
		root, err := html.Parse(w.Body)
		if err != nil || w.Code < 400 {
			t.Fatal(w.Code, err)
		}
		return node{root}
	}
	page := ask(text)
	const want = "Line 3: This link must start with http:// or https://; only a host with a dot, as in example.org/page, may stand without. " +
		"Line 5: This link must not have a host with nothing before or between its dots."
	if got := page.id(t, "problem").text(); got != strings.ReplaceAll(want, ". Line", ".Line") {
		t.Errorf("problem:\n got %q\nwant %q", got, want)
	}
	if got := page.id(t, "url").value(); strings.ReplaceAll(got, "\r", "") != strings.ReplaceAll(text, "\r", "") {
		t.Errorf("the field holds %q", got)
	}
	for _, row := range []struct{ list, want string }{
		{"https://example.org/\nhttps://example.org/\nhttps://example.org/", "Fewer links are left for you today than the list has."},
		{"https://example.org/\nhttps://example.org/", "No more links can be made just now. You may share the limit with others, for example on the same IP address."}, // by then a wider level is full
	} {
		if got := ask(row.list).id(t, "problem").text(); got != row.want+" Try again at 00:00 UTC." {
			t.Errorf("problem: %q", got)
		}
		wantAnswer(t, s.do(call{from: "198.51.100.7:5000", body: goodJSON, header: asJSON}), http.StatusCreated, "")
	}
}

// An array is read as its items are alone: what passes as one link passes as a list
// of one, and what does not is a fault of item 0 or of the whole.
func FuzzReadJSON(f *testing.F) {
	for _, seed := range []string{goodJSON, `{"url":"\ud800"}`, `{"url":1}`, `{"url":"a","url":"b"}`, "[]", "{", "5", "5,5", `{"slug":null}`, goodJSON + "," + goodJSON, goodJSON + "]", `{"url":"a"}],[`} {
		f.Add([]byte(seed))
	}
	languages := testCatalogue(f)
	f.Fuzz(func(t *testing.T, item []byte) {
		single, alone := readJSON(item)
		list, err := readJSON(slices.Concat([]byte("["), item, []byte("]")))
		if err != nil {
			wantFitProblem(t, languages, err)
		}
		for _, fault := range list.faults {
			wantFitProblem(t, languages, fault.Err)
		}
		switch {
		case len(list.links) > shortener.MaxBatch:
			t.Errorf("%q: %d links", item, len(list.links))
		case alone == nil && !single.batch && (err != nil || list.faults != nil || !cmp.Equal(list.links, single.links)):
			t.Errorf("%q: alone %+v, in a list %+v, %v", item, single.links, list, err)
		case alone != nil && err == nil && len(list.links) == 1 && list.faults == nil:
			t.Errorf("%q: alone %v, in a list %+v", item, alone, list.links)
		}
	})
}

// The links of a list are its lines that are not blank, in their order.
func FuzzReadList(f *testing.F) {
	for _, seed := range []string{"", "a", "a\nb", "\ufeffa\r\n\r\nb\r\n", "\n\n", "\xff", strings.Repeat("a\n", 101), "a\rb", "\u2028a\n\u0085\n"} {
		f.Add([]byte(seed))
	}
	languages := testCatalogue(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		list, err := readList(body)
		if err != nil {
			wantFitProblem(t, languages, err)
			return
		}
		lines := strings.Split(strings.TrimPrefix(string(body), "\ufeff"), "\n")
		var want []string
		for _, line := range lines {
			if text := strings.TrimSpace(line); text != "" {
				want = append(want, text)
			}
		}
		var got []string
		for i, link := range list.links {
			got = append(got, link.URL)
			if text := strings.TrimSpace(lines[list.lines[i]-1]); text != link.URL {
				t.Errorf("%q: line %d is %q, and the link %q", body, list.lines[i], text, link.URL)
			}
		}
		if !slices.Equal(got, want) || len(got) == 0 || len(got) > shortener.MaxBatch || !list.batch {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	})
}

// All errors of a batch are the problem of the request, whoever has found them.
func TestProblemOfABatch(t *testing.T) {
	t.Parallel()
	taken, wrong := shortener.ItemError{Index: 1, Err: shortener.ErrSlugTaken}, shortener.ItemError{Index: 3, Err: invalidField("url", say("reason.is_missing"))}
	for _, row := range []struct {
		items  []shortener.ItemError
		status int
		code   string
	}{
		{[]shortener.ItemError{taken}, 409, "slug_taken"},
		{[]shortener.ItemError{wrong, taken}, 400, "invalid_request"},
		{[]shortener.ItemError{taken, wrong}, 400, "invalid_request"},
	} {
		p := (&server{}).problemOf(errors.Join(&shortener.BatchError{Items: row.items}))
		if p.status != row.status || p.code != row.code || len(p.items) != len(row.items) {
			t.Errorf("%+v: %+v", row.items, p)
		}
	}
}
