package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var slugShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{1,62}[A-Za-z0-9]$`)

// drawSlug draws what may be asked for: a slug of any length, also at its bounds
// and beyond, the beginning of a route in any case, or none, which is given a
// generated one.
func drawSlug(names []string) *rapid.Generator[string] {
	anyCase := rapid.Custom(func(t *rapid.T) string {
		name := []byte(rapid.SampledFrom(names).Draw(t, "name"))
		for i, c := range name {
			if 'a' <= c && c <= 'z' && rapid.Bool().Draw(t, "capital") {
				name[i] -= 'a' - 'A'
			}
		}
		return string(name)
	})
	letter := rapid.RuneFrom([]rune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"))
	long := func(least, most int) *rapid.Generator[string] { return rapid.StringOfN(letter, least, most, -1) }
	return rapid.OneOf(long(3, 64), long(2, 4), long(63, 65), anyCase, rapid.Just(""))
}

// Whatever slug can be made names a link in every way until the link is deleted,
// and no other can be made: those of routes in no case.
func TestAnySlug(t *testing.T) {
	t.Parallel()
	for _, public := range []string{"https://s.example", "https://s.example/Go/to"} {
		t.Run(public, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(public)
			if err != nil {
				t.Fatal(err)
			}
			names := []string{strings.ToLower(firstSegment(u.Path))}
			for _, route := range routes() {
				names = append(names, firstSegment(route.path))
			}
			rapid.Check(t, func(rt *rapid.T) {
				asked := drawSlug(names).Draw(rt, "slug")
				l := namedLink{TB: rt, site: newSite(t, siteSetup{public: public}), below: prefixOf(u) + "/"}
				body := fmt.Sprintf(`{"url":"https://example.org/","slug":%q}`, asked)
				reserved := slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, asked) })
				if asked != "" && (reserved || !slugShape.MatchString(asked)) {
					l.want("POST", "api/links", body, http.StatusBadRequest)
					return
				}
				w := l.want("POST", "api/links", body, http.StatusCreated)
				if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil || asked != "" && l.Slug != asked {
					rt.Fatalf("asked for %q, got %q, %v", asked, w.Body, err)
				}
				l.live(public)
			})
		})
	}
}

// namedLink is a link on its way through a life.
type namedLink struct {
	rapid.TB `json:"-"`
	site     *site
	below    string

	Slug  string
	Token string `json:"manage_token"`
}

// want asks for what lies below the public URL, with the link's token once there
// is a link.
func (l *namedLink) want(method, target, body string, status int) *httptest.ResponseRecorder {
	l.Helper()
	c := call{method: method, target: l.below + target, body: body, header: map[string]string{"Content-Type": "application/json"}}
	if method != "POST" {
		c.header["Authorization"] = "Bearer " + l.Token
	}
	w := l.site.do(c)
	if w.Code != status {
		l.Fatalf("%s %s%s: %d %q, want %d", method, l.below, target, w.Code, w.Body, status)
	}
	return w
}

// live does with a link all that can be done, deleting it at last.
func (l *namedLink) live(public string) {
	l.Helper()
	managed := "api/links/" + l.Slug
	l.wantVisits("https://example.org/")
	for _, target := range []string{l.Slug + "+", managed} {
		w := l.want("GET", target, "", http.StatusOK)
		var shown struct{ Slug, URL string }
		if err := json.Unmarshal(w.Body.Bytes(), &shown); err != nil || shown.Slug != l.Slug || shown.URL != "https://example.org/" {
			l.Fatalf("GET %s: %q, %v", target, w.Body, err)
		}
	}
	wantQR(l, l.site, strings.TrimPrefix(l.below, "/")+l.Slug, "", public+"/"+l.Slug, 256, 4, "M")
	l.want("PATCH", managed, `{"url":"https://example.net/"}`, http.StatusOK)
	l.wantVisits("https://example.net/")

	l.want("DELETE", managed, "", http.StatusNoContent)
	for _, target := range []string{l.Slug, l.Slug + "/", l.Slug + "+", l.Slug + "/qr.svg", l.Slug + "/qr.png", managed} {
		l.want("GET", target, "", http.StatusGone)
	}
	l.want("POST", "api/links", fmt.Sprintf(`{"url":"https://example.org/","slug":%q}`, l.Slug), http.StatusConflict)
}

func (l *namedLink) wantVisits(location string) {
	l.Helper()
	for _, target := range []string{l.Slug, l.Slug + "/"} {
		for _, method := range []string{"GET", "HEAD"} {
			w := l.want(method, target, "", http.StatusFound)
			if got := w.Header().Get("Location"); got != location {
				l.Fatalf("%s %s leads to %q, want %q", method, target, got, location)
			}
		}
	}
}
