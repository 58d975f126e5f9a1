package web

import (
	"hash/maphash"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"snip/shortener"
)

// visitorOf returns what kind of visit a request is, as far as it shows. A program that
// calls itself a browser is taken for a person.
func (a *agents) visitorOf(r *http.Request) shortener.Visitor {
	switch {
	case r.Method == http.MethodHead:
		return shortener.Head
	case loadsAhead(r.Header):
		return shortener.Prefetch
	}
	return a.visitorNamed(r.Header)
}

// loadsAhead reports whether a browser loads a page that nobody has asked for yet:
// Sec-Purpose is in the Fetch Standard, and the others are what older browsers send.
func loadsAhead(h http.Header) bool {
	for _, name := range [...]string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"} {
		for _, line := range h[name] {
			if containsAny(strings.ToLower(line), []string{"prefetch", "prerender", "preview"}) {
				return true
			}
		}
	}
	return false
}

// agents remembers what kinds of visitors send which User-Agent: to look a new one up was
// measured to take as long as a redirect, and most visitors have one of a few. Its size
// is fixed.
type agents struct {
	crawlers crawlerList
	seed     maphash.Seed
	slots    [1024]atomic.Pointer[agent]
}

type agent struct {
	name string
	kind shortener.Visitor
}

func newAgents() (*agents, error) {
	crawlers, err := newCrawlerList()
	return &agents{crawlers: crawlers, seed: maphash.MakeSeed()}, err
}

// visitorNamed returns the kind of visitor that User-Agent names. All browsers send one.
func (a *agents) visitorNamed(h http.Header) shortener.Visitor {
	lines := h["User-Agent"]
	if len(lines) == 0 || lines[0] == "" {
		return shortener.Crawler
	}
	name := lines[0][:min(len(lines[0]), agentLength)]
	slot := &a.slots[maphash.String(a.seed, name)%uint64(len(a.slots))]
	if known := slot.Load(); known != nil && known.name == name {
		return known.kind
	}
	kind := shortener.Person
	switch lower := strings.ToLower(name); {
	case containsAny(lower, fetchers):
		kind = shortener.Fetcher
	case a.crawlers.has(lower):
		kind = shortener.Crawler
	}
	slot.Store(&agent{strings.Clone(name), kind})
	return kind
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// fetchers are what programs call themselves, in lower case, that fetch a link as soon as it
// is posted, to show what is behind it. Crawlers of search engines are none, and
// neither are the browsers inside the same companies' applications.
var fetchers = []string{
	"slackbot", "twitterbot", "facebookexternalhit", "meta-external", "discordbot", "whatsapp/", "telegrambot",
	"linkedinbot", "mattermost-bot/", "cardyb", "mastodon/", "synapse", "nextcloud server crawler", "groupmebot",
	"keybasebot", "redditbot", "pinterestbot", "vkshare", "kakaotalk-scrap", "steamchaturllookup", "iframely", "embedly",
	"google-pagerenderer", "lemmy/", "misskey/", "summalybot", "pleroma", "akkoma", "friendica",
	"preview", "unfurl", "onebox", "opengraph", // parts of many names, such as SkypeUriPreview and ZulipURLPreview
}

// referrerOf returns the host of the page that the visitor came from, in lower
// case and without a port, or the name of the application. It is empty where there is
// none that makes sense.
func referrerOf(h http.Header) string {
	lines := h["Referer"]
	if len(lines) != 1 {
		return ""
	}
	scheme, rest, ok := strings.Cut(lines[0], "://")
	if !ok || !slices.ContainsFunc(referrerSchemes, func(known string) bool { return strings.EqualFold(scheme, known) }) {
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

// referrerSchemes are those of pages, and of applications on Android and iOS.
var referrerSchemes = []string{"https", "http", "android-app", "ios-app"}

// notInHost reports whether no browser would send the character in a host.
func notInHost(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._[]:", c))
}
