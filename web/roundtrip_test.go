package web_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"snip/shortener"
)

// other is where links lead meanwhile.
const other = "https://example.org/other"

// acceptedDestination is a row of shortener/testdata/accepted.json.
type acceptedDestination struct{ Name, Text, Stored, Location string }

// everything is what a form, a page and a script could each take for something
// else.
var everything = acceptedDestination{
	Name:     "everything at once",
	Text:     `https://bücher.example:8443/o'neil/a//b/../c%2Fd/%25ad/100%/%zz\"<b>&amp;&lt;/é☕?abc&my%20key=1&q=a%2Bb+c&d=&a.b= e  f#x#%23ß`,
	Location: `https://xn--bcher-kva.example:8443/o'neil/a//b/../c%2Fd/%25ad/100%/%zz%5C%22%3Cb%3E&amp;&lt;/%C3%A9%E2%98%95?abc&my%20key=1&q=a%2Bb+c&d=&a.b=%20e%20%20f#x%23%23%C3%9F`,
}

// acceptedDestinations returns the rows with nothing left out.
func acceptedDestinations(t *testing.T) []acceptedDestination {
	t.Helper()
	file, err := os.ReadFile("../shortener/testdata/accepted.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []acceptedDestination
	if err := json.Unmarshal(file, &rows); err != nil {
		t.Fatal(err)
	}
	const start = "https://example.org/#"
	longest := start + strings.Repeat("x", shortener.MaxDestination-len(start))
	rows = append(rows, everything, acceptedDestination{Name: "longest", Text: longest})
	for i, row := range rows {
		rows[i].Stored = cmp.Or(row.Stored, row.Text)
		rows[i].Location = cmp.Or(row.Location, rows[i].Stored)
	}
	return rows
}

// A destination comes back as the bytes that were given, wherever it is shown,
// and however often it is saved.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	s := openSite(t, siteConfig{})
	for _, row := range acceptedDestinations(t) {
		for how, makes := range map[string]func(*linkHolder, acceptedDestination){
			"as JSON": (*linkHolder).makesAsJSON, "by form": (*linkHolder).makesByForm,
		} {
			t.Run(row.Name+" "+how, func(t *testing.T) {
				t.Parallel()
				h := &linkHolder{t: t, origin: s.origin}
				makes(h, row)
				h.wantSame("when made", row.Stored, row.Location)
				h.change(row.Stored, row.Stored)
				h.wantSame("changed to the same", row.Stored, row.Location)
				h.change(other, other)
				h.wantSame("changed", other, other)
				h.change(row.Text, row.Stored)
				h.wantSame("changed back", row.Stored, row.Location)
			})
		}
	}
}

// linkHolder is whoever has a link's token.
type linkHolder struct {
	t      *testing.T
	origin string

	Slug        string
	ManageToken string `json:"manage_token"`
}

// send follows no redirect.
func (h *linkHolder) send(method, target, accept, contentType, body string) (response *http.Response, answer []byte) {
	h.t.Helper()
	request, err := http.NewRequestWithContext(h.t.Context(), method, h.origin+target, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	if h.ManageToken != "" {
		request.Header.Set("Authorization", "Bearer "+h.ManageToken)
	}
	request.Header.Set("Content-Type", contentType)
	response, err = http.DefaultTransport.RoundTrip(request)
	if err != nil {
		h.t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err != nil {
		h.t.Fatal(err)
	}
	return response, answer
}

// wantURL asks the API, and compares the field url of its answer.
func (h *linkHolder) wantURL(method, target, body string, status int, want string) (answer []byte) {
	h.t.Helper()
	response, answer := h.send(method, target, "application/json", "application/json", body)
	var link struct{ URL string }
	if err := json.Unmarshal(answer, &link); err != nil || response.StatusCode != status || link.URL != want {
		h.t.Fatalf("%s %s: %d %q, want %d with %+q", method, target, response.StatusCode, answer, status, want)
	}
	return answer
}

func (h *linkHolder) makesAsJSON(row acceptedDestination) {
	h.t.Helper()
	answer := h.wantURL(http.MethodPost, "/api/links", object(h.t, row.Text), http.StatusCreated, row.Stored)
	if err := json.Unmarshal(answer, h); err != nil {
		h.t.Fatal(err)
	}
}

// makesByForm is a browser without script.
func (h *linkHolder) makesByForm(row acceptedDestination) {
	h.t.Helper()
	response, page := h.send(http.MethodPost, "/api/links", "text/html", "application/x-www-form-urlencoded", url.Values{"url": {row.Text}}.Encode())
	if response.StatusCode != http.StatusCreated {
		h.t.Fatalf("%d %q", response.StatusCode, page)
	}
	if got := textOf(element(h.t, page, "class", "destination")); got != row.Stored {
		h.t.Errorf("the result page shows %+q, want %+q", got, row.Stored)
	}
	h.takeToken(attribute(element(h.t, page, "class", "manage"), "href"))
}

// takeToken reads what an address of the manage page ends in.
func (h *linkHolder) takeToken(manage string) {
	h.t.Helper()
	_, named, _ := strings.Cut(manage, "/-/manage#")
	var ok bool
	if h.Slug, h.ManageToken, ok = strings.Cut(named, "."); !ok {
		h.t.Fatalf("the manage page is at %q", manage)
	}
}

// change lets the link lead elsewhere.
func (h *linkHolder) change(to, want string) {
	h.t.Helper()
	h.wantURL(http.MethodPatch, "/api/links/"+h.Slug, object(h.t, to), http.StatusOK, want)
}

// wantSame checks that every way to ask leads to the same bytes.
func (h *linkHolder) wantSame(when, stored, location string) {
	h.t.Helper()
	response, _ := h.send(http.MethodGet, "/"+h.Slug, "text/html", "", "")
	if got := response.Header.Get("Location"); response.StatusCode != http.StatusFound || got != location {
		h.t.Errorf("%s, it leads to %q with %d, want %q", when, got, response.StatusCode, location)
	}
	h.wantURL(http.MethodGet, "/api/links/"+h.Slug, "", http.StatusOK, stored)
	h.wantURL(http.MethodGet, "/"+h.Slug+"+", "", http.StatusOK, stored)
	_, page := h.send(http.MethodGet, "/"+h.Slug+"+", "text/html", "", "")
	if got := textOf(element(h.t, page, "id", "address")); got != stored {
		h.t.Errorf("%s, the preview shows %+q, want %+q", when, got, stored)
	}
}

// object is the JSON body that names a destination.
func object(t *testing.T, destination string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"url": destination})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// element returns the first element of a page whose attribute has the value.
func element(t *testing.T, page []byte, key, value string) *html.Node {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if slices.Contains(n.Attr, html.Attribute{Key: key, Val: value}) {
			return n
		}
	}
	t.Fatalf("no element has %s=%q in %q", key, value, page)
	return nil
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var text strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			text.WriteString(d.Data)
		}
	}
	return text.String()
}
