package web

import (
	"hash/maphash"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"snip/shortener"
)

// visitorOf tells what kind of visit a request is, as far as it shows. Whoever
// wants to be taken for a person is.
func (a *agents) visitorOf(r *http.Request) shortener.Visitor {
	switch {
	case r.Method == http.MethodHead:
		return shortener.Head
	case strings.Contains(strings.Join(r.Header["Sec-Purpose"], " "), "prefetch"):
		return shortener.Prefetch
	}
	lines := r.Header["User-Agent"]
	if len(lines) == 0 {
		return shortener.Person
	}
	return a.kindOf(lines[0])
}

// agents remembers what kinds of visitors send which User-Agent: to look for some
// twenty words in each was measured to take as long as all the rest of a redirect,
// and most visitors have one of a few. Its size is fixed.
type agents struct {
	seed  maphash.Seed
	slots [1024]atomic.Pointer[agent]
}

type agent struct {
	name string
	kind shortener.Visitor
}

func newAgents() *agents { return &agents{seed: maphash.MakeSeed()} }

func (a *agents) kindOf(name string) shortener.Visitor {
	slot := &a.slots[maphash.String(a.seed, name)%uint64(len(a.slots))]
	if known := slot.Load(); known != nil && known.name == name {
		return known.kind
	}
	kind := shortener.Person
	switch {
	case containsAny(name, fetchers):
		kind = shortener.Fetcher
	case containsAny(strings.ToLower(name), crawlers):
		kind = shortener.Crawler
	}
	if len(name) <= 512 { // longer ones would only take memory
		slot.Store(&agent{strings.Clone(name), kind})
	}
	return kind
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// crawlers are words with which programs name themselves.
var crawlers = []string{"bot/", "bot;", "bot)", "robot", "bots", "crawl", "spider", "slurp", "curl/", "wget/", "python-requests", "go-http-client", "monitor", "headless"}

// referrerOf returns the host of the page that the visitor came from, in lower
// case and without a port, or nothing where there is none that makes sense.
func referrerOf(h http.Header) string {
	lines := h["Referer"]
	if len(lines) != 1 {
		return ""
	}
	scheme, rest, ok := strings.Cut(lines[0], "://")
	if !ok || !strings.EqualFold(scheme, "https") && !strings.EqualFold(scheme, "http") {
		return ""
	}
	host := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		host = rest[:end]
	}
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:colon]
	}
	if len(host) == 0 || len(host) > 253 || strings.ContainsFunc(host, notInHost) {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// notInHost reports whether no browser would send the character in a host.
func notInHost(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._[]:", c))
}
