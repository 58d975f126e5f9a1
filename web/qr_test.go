package web

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snip/shortener"
)

func TestQR(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63) + "."
	for _, row := range []struct{ public, slug, short string }{
		{"https://s.example", "abc", "https://s.example/abc"},
		{"https://s.example/s/&'x", "a_B-9", "https://s.example/s/&'x/a_B-9"},
		{"https://münchen.example:8443/ß", "abc", "https://xn--mnchen-3ya.example:8443/%C3%9F/abc"},
		{
			"https://" + long + long + long + "example/" + strings.Repeat("p", 200), strings.Repeat("Z", shortener.MaxSlug),
			"https://" + long + long + long + "example/" + strings.Repeat("p", 200) + "/" + strings.Repeat("Z", shortener.MaxSlug),
		},
	} {
		s := newSite(t, siteSetup{public: row.public})
		s.put(t, shortener.Link{Slug: shortener.Slug(row.slug), Destination: "https://example.org/"})
		wantQR(t, s, row.slug, "", row.short, 256, 4, "M")
		last := 0
		for _, level := range []string{"L", "M", "Q", "H"} {
			for _, bound := range []struct{ size, margin int }{{64, 0}, {1024, 16}} {
				side := wantQR(t, s, row.slug, fmt.Sprintf("size=%d&margin=%d&level=%s", bound.size, bound.margin, level), row.short, bound.size, bound.margin, level)
				if side > bound.size { // the least that the refusal asks for
					wantQR(t, s, row.slug, fmt.Sprintf("level=%s&size=%d&margin=%d", level, side, bound.margin), row.short, side, bound.margin, level)
				}
				if bound.margin > 0 {
					continue
				}
				if side < last {
					t.Errorf("%s: level %s takes %d modules, the one below it %d", row.short, level, side, last)
				}
				last = side
			}
		}
	}
}

// Whatever can be a slug can be shown, in every way that the bounds allow.
func TestQROfAnySlug(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		slug := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_-]{1,62}[A-Za-z0-9]`).Draw(rt, "slug")
		size := rapid.IntRange(64, 1024).Draw(rt, "size")
		margin := rapid.IntRange(0, 16).Draw(rt, "margin")
		level := rapid.SampledFrom([]string{"L", "M", "Q", "H"}).Draw(rt, "level")
		s := newSite(t, siteSetup{public: "https://s.example/go"})
		s.put(t, shortener.Link{Slug: shortener.Slug(slug), Destination: "https://example.org/"})
		wantQR(rt, s, slug, fmt.Sprintf("size=%d&margin=%d&level=%s", size, margin, level), "https://s.example/go/"+slug, size, margin, level)
	})
}

func TestQRAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	s.put(t, shortener.Link{Slug: "abc", Destination: "https://example.org/"})
	for target, mediaType := range map[string]string{"/abc/qr.svg": "image/svg+xml", "/abc/qr.png?size=1024": "image/png"} {
		get := s.get(target)
		h := get.Header()
		for name, want := range map[string]string{
			"Content-Type": mediaType, "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff", "X-Robots-Tag": "noindex",
			"Content-Length": strconv.Itoa(get.Body.Len()),
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s %q, want %q", target, name, h.Get(name), want)
			}
		}
		if policy := h.Get("Content-Security-Policy"); mediaType == "image/svg+xml" && policy != "default-src 'none'" {
			t.Errorf("%s: policy %q", target, policy)
		}
		head := s.do(call{method: http.MethodHead, target: target})
		if head.Code != http.StatusOK || head.Body.Len() != 0 || !maps.EqualFunc(head.Header(), h, slices.Equal) {
			t.Errorf("HEAD %s: %d %v, GET has %v", target, head.Code, head.Header(), h)
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "FOO", "get"} {
			w := s.do(call{method: method, target: target, body: goodJSON, header: asJSON})
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, target, w.Code, w.Header().Get("Allow"))
			}
		}
	}
}

// A cache may keep a picture, and is told each time whether it is still the one. A link that
// is gone has none.
func TestQRIsKeptByCaches(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	h := made(t, s, `{"url":"https://example.org/","slug":"abc"}`)
	s.put(t, shortener.Link{Slug: "def", Destination: "https://example.org/"})
	tags := make(map[string]string)
	for _, target := range []string{"/abc/qr.svg", "/abc/qr.png", "/abc/qr.png?size=512", "/def/qr.png"} {
		tag := s.get(target).Header().Get("ETag")
		if other := tags[tag]; other != "" || len(tag) < len(`"01234567"`) {
			t.Errorf("%s has the tag %s, and so has %q", target, tag, other)
		}
		tags[tag] = target
	}
	again := func(tag string) int {
		return s.do(call{method: http.MethodGet, target: tags[tag], header: map[string]string{"If-None-Match": tag}}).Code
	}
	for tag, target := range tags {
		if status := again(tag); status != http.StatusNotModified {
			t.Errorf("%s: %d for the same picture, want 304", target, status)
		}
	}
	wantAnswer(t, h.manage("DELETE", ""), http.StatusNoContent, "")
	for tag, target := range tags {
		if status := again(tag); strings.HasPrefix(target, "/abc") && status != http.StatusGone {
			t.Errorf("%s: %d after the link was deleted, want 410", target, status)
		}
	}
}

// A picture holds the public URL, whatever the request says of the host.
func TestQRIsNotMadeOfTheRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{public: "https://s.example/go", proxies: []string{"203.0.113.0/24"}})
	s.put(t, shortener.Link{Slug: "abc", Destination: "https://example.org/"})
	want := s.get("/abc/qr.svg").Body.String()
	for _, target := range []string{"http://evil.example/abc/qr.svg", "/go/abc/qr.svg", "/%61bc/qr.svg", "/abc/qr.svg?", "/abc/qr.svg?level=M&margin=4&size=256"} {
		w := s.do(call{method: http.MethodGet, target: target, header: map[string]string{
			"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http", "X-Forwarded-Prefix": "/evil", "Forwarded": "host=evil.example", "Accept": "text/html",
		}})
		if w.Code != http.StatusOK || w.Body.String() != want {
			t.Errorf("%s: %d, another picture: %s", target, w.Code, w.Body)
		}
	}
}

func TestQRLeadsNowhere(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	s.put(t, shortener.Link{Slug: "abc", Destination: "https://example.org/"})
	s.put(t, shortener.Link{Slug: "old", Destination: "https://example.org/", ExpiresAt: s.time.now()})
	s.put(t, shortener.Link{Slug: "gone", Deleted: true})
	for path, status := range map[string]int{
		"/abc/qr.svg": 200, "/abc/qr.png": 200,
		"/none/qr.svg": 404, "/none/qr.png": 404, "/ABC/qr.svg": 404, "/ab/qr.svg": 404, "/api/qr.svg": 404, "/healthz/qr.png": 404,
		"/old/qr.svg": 410, "/old/qr.png": 410, "/gone/qr.svg": 410, "/gone/qr.png": 410,
		// The slug and nothing else, and nothing below it but the two pictures.
		"/abc./qr.svg": 404, "/abc%2F/qr.svg": 404, "//qr.svg": 404, "/%2Fabc/qr.svg": 404, "//abc/qr.svg": 404, "/abc//qr.svg": 404,
		"/abc/qr": 404, "/abc/qr.gif": 404, "/abc/qr.svg/": 404, "/abc/qr.svgz": 404, "/abc/QR.svg": 404, "/abc%2Fqr.svg": 404,
		"/abc/x/qr.svg": 404, "/abc/qr.svg/qr.svg": 404, "/x/abc/qr.svg": 404, "/abc/": 302, "/qr.svg": 404, "/-/qr.svg": 404,
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			w := s.do(call{method: method, target: path})
			if w.Code != status {
				t.Errorf("%s %s: %d, want %d", method, path, w.Code, status)
			}
		}
	}
	s.store.fail = func() error { return shortener.ErrUnavailable }
	wantAnswer(t, s.get("/abc/qr.svg"), http.StatusServiceUnavailable, `"code":"unavailable"`)
}

func TestQRIsNoVisit(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	s.put(t, shortener.Link{Slug: "once", Destination: "https://example.org/", MaxVisits: 1})
	for _, target := range []string{"/once/qr.svg", "/once/qr.png", "/once/qr.svg"} {
		wantAnswer(t, s.get(target), http.StatusOK, "")
	}
	wantVisit(t, s, "/once", "https://example.org/")
	wantAnswer(t, s.get("/once"), http.StatusGone, "gone")
}

func TestQRParameters(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	s.put(t, shortener.Link{Slug: "abc", Destination: "https://example.org/"})
	const (
		size   = "The parameter size must be a whole number from 64 to 1024."
		margin = "The parameter margin must be a whole number from 0 to 16."
		level  = "The parameter level must be L, M, Q or H, in upper case."
	)
	for query, want := range map[string]string{
		"size=63": size, "size=1025": size, "size=": size, "size": size, "size=-64": size, "size=%2B64": size, "size=+64": size, "size=64.0": size,
		"size=0x40": size, "size=1_0_0": size, "size=65600": size, "size=99999999999999999999": size, "size=%EF%BC%96%EF%BC%94": size, "size=100%00": size,
		"margin=17": margin, "margin=-1": margin, "margin=": margin, "margin=4px": margin,
		"level=": level, "level=m": level, "level=X": level, "level=LM": level, "level=low": level,
		"size=100&size=100":         "The parameter size must be given once.",
		"margin=1&level=L&margin=2": "The parameter margin must be given once.",
		"level=L&level=":            "The parameter level must be given once.",
		"colour=red":                `The parameter "colour" is not one of a QR code, which are size, margin and level.`,
		"Size=100":                  `The parameter "Size" is not`,
		"=1":                        `The parameter "" is not`,
		"%00%0A%3Cb%3E=1":           `The parameter "\x00\n<b>" is not`,
		"size=100;margin=1":         "The query cannot be read.",
		"size=%zz":                  "The query cannot be read.",
		"size=100&x=" + strings.Repeat("y", 9000) + "&" + strings.Repeat("z", 9000): `The parameter "x" is not`,
		strings.Repeat("z", 9000): `The parameter "` + strings.Repeat("z", 64) + `…" is not`,
	} {
		for _, path := range []string{"/abc/qr.svg?", "/abc/qr.png?"} {
			w := s.do(call{method: http.MethodGet, target: path + query, header: map[string]string{"Accept": "text/plain"}})
			if w.Code != http.StatusBadRequest || !strings.HasPrefix(w.Body.String(), want) {
				t.Errorf("%s%.80s: %d %s want %s", path, query, w.Code, w.Body, want)
			}
			wantAnswer(t, s.get(path+query), http.StatusBadRequest, `"code":"invalid_request"`)
		}
	}
	if n := s.store.calls.Load(); n != 0 {
		t.Errorf("%d calls to the store", n)
	}
}

// An address may be longer than the higher levels have room for.
func TestQROfAVeryLongAddress(t *testing.T) {
	t.Parallel()
	public := "https://s.example/" + strings.Repeat("p", 1300)
	s := newSite(t, siteSetup{public: public})
	s.put(t, shortener.Link{Slug: "abc", Destination: "https://example.org/"})
	for _, path := range []string{"/abc/qr.svg", "/abc/qr.png"} {
		wantAnswer(t, s.get(path+"?level=H"), http.StatusBadRequest, "The parameter level must be lower")
	}
	wantQR(t, s, "abc", "level=Q&margin=16", public+"/abc", 256, 16, "Q")
}

func BenchmarkQR(b *testing.B) {
	s := newSite(b, siteSetup{})
	s.put(b, shortener.Link{Slug: "abcdefg", Destination: "https://example.org/"})
	for _, target := range []string{"/abcdefg/qr.svg", "/abcdefg/qr.png", "/abcdefg/qr.png?size=1024"} {
		b.Run(target, func(b *testing.B) {
			r, err := http.NewRequest(http.MethodGet, target, nil)
			if err != nil {
				b.Fatal(err)
			}
			w := &discard{header: make(http.Header)}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				s.ServeHTTP(w, r)
			}
			if w.header.Get("Content-Type") == mediaProblem {
				b.Fatal("refused")
			}
		})
	}
}
