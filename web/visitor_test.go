package web

import (
	"net/http"
	"strings"
	"testing"
	"unsafe"

	"snip/shortener"
)

func TestVisitorOf(t *testing.T) {
	t.Parallel()
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	known := newAgents()
	for _, row := range []struct {
		method string
		header http.Header
		want   shortener.Visitor
	}{
		{"GET", http.Header{}, shortener.Person},
		{"GET", http.Header{"User-Agent": {firefox}}, shortener.Person},
		{"HEAD", http.Header{"User-Agent": {firefox}}, shortener.Head},
		{"GET", http.Header{"User-Agent": {firefox}, "Sec-Purpose": {"prefetch;prerender"}}, shortener.Prefetch},
		{"GET", http.Header{"User-Agent": {"Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"}}, shortener.Fetcher},
		{"GET", http.Header{"User-Agent": {"facebookexternalhit/1.1"}}, shortener.Fetcher},
		{"GET", http.Header{"User-Agent": {"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"}}, shortener.Crawler},
		{"GET", http.Header{"User-Agent": {"curl/8.5.0"}}, shortener.Crawler},
		{"GET", http.Header{"User-Agent": {"Mozilla/5.0 (Linux; Android 9; CUBOT X19) AppleWebKit/537.36 Chrome/120 Mobile"}}, shortener.Person},
	} {
		for range 2 { // the second time from memory
			if got := known.visitorOf(&http.Request{Method: row.method, Header: row.header}); got != row.want {
				t.Errorf("%s %v: %d, want %d", row.method, row.header, got, row.want)
			}
		}
	}
}

func TestReferrerOf(t *testing.T) {
	t.Parallel()
	for referer, want := range map[string]string{
		"https://News.Example.org/a?b#c":      "news.example.org",
		"http://example.org":                  "example.org",
		"https://example.org:8443/":           "example.org",
		"https://user:pass@example.org/":      "example.org",
		"https://[2001:db8::1]:8443/x":        "[2001:db8::1]",
		"https://[2001:db8::1]/":              "[2001:db8::1]",
		"https://example.org?x":               "example.org",
		"":                                    "",
		"about:blank":                         "",
		"android-app://com.example/":          "",
		"https:///path":                       "",
		"https://<script>/":                   "",
		"https://exa mple.org/":               "",
		"https://münchen.example/":            "",
		"https://" + strings.Repeat("a", 300): "",
	} {
		if got := referrerOf(http.Header{"Referer": {referer}}); got != want {
			t.Errorf("%q: %q, want %q", referer, got, want)
		}
	}
	if got := referrerOf(http.Header{"Referer": {"https://a.example/", "https://b.example/"}}); got != "" {
		t.Errorf("two of them: %q", got)
	}
}

// What is remembered of a User-Agent is a copy: it may be part of a header of many
// kilobytes.
func TestAgentsHoldNoRequests(t *testing.T) {
	t.Parallel()
	known := newAgents()
	header := strings.Repeat("z", 100) + "Mozilla/5.0" + strings.Repeat("z", 100)
	name := header[100:111]
	known.kindOf(name)
	for i := range known.slots {
		if a := known.slots[i].Load(); a != nil && unsafe.StringData(a.name) == unsafe.StringData(name) {
			t.Error("it is part of the header")
		}
	}
}
