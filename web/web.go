// Package web is Snip over HTTP: routes, bodies, pages, who the client is, and
// which answer an error becomes.
//
// It promises that a link can be made at POST /api/links and nowhere else, that a
// refusal is sent before the body it refuses has been waited for, and that a
// refusal for want of quota is the same bytes whichever limit refused. It decides
// nothing about links or limits: that is [shortener.Service] and [quota.Throttle].
// TLS and HTTP/2 end at a proxy in front.
//
// Start with [New]; the routes are one table in routes.go, and the order of a
// creation's checks is the order of create.go.
package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"snip/quota"
	"snip/shortener"
	"snip/web/foreign"
)

// Config holds what the handler is made of.
type Config struct {
	Service        *shortener.Service
	Throttle       *quota.Throttle // of creations; nil when it is off
	KeysOnly       bool            // whether links are made by holders of an API key only
	Changes        *quota.Throttle // of changes to links; nil when it is off
	Rules          Rules           // what refusals and pages say
	PublicURL      *url.URL        // what short links start with; its path is the prefix that is served too
	Contact        string          // an e-mail address or a URL; empty leaves it out
	TrustedProxies []netip.Prefix
	NAT64          quota.NAT64   // with sound prefixes
	CORSOrigins    []string      // whose pages may use the API, as [ParseOrigin] reads them; none turns CORS off
	ClientIPHeader string        // X-Forwarded-For when empty
	RequestTimes   *RequestTimes // counts how long requests take; nil where nobody asks
	RedirectStatus int           // 301, 302, 307 or 308; 302 when zero
	Log            *slog.Logger
	Now            func() time.Time
}

// Rules are the numbers that a client is told, taken from the settings.
type Rules struct {
	Daily int64         // links per client and UTC day; 0 when that level is off
	Every time.Duration // the throttle's pace; 0 when it is off
}

// server is what the handlers share. All of it is fixed once New has returned,
// but for what locks itself.
type server struct {
	service        *shortener.Service
	throttle       *quota.Throttle
	changes        *quota.Throttle
	keysOnly       bool
	tooMany        *problem // the 429, but for its wait
	tooManyChanges *problem // that of changes
	site           string   // the public URL without its path
	short          string   // what a slug is appended to
	redirectStatus int
	now            func() time.Time
	log            *slog.Logger

	description  []byte // of the interface
	languages    *catalogue
	pages        *pages
	assets       map[string]asset
	clients      clientFinder
	proxies      *proxyWatch
	foreign      foreign.Guard // against pages of other sites
	corsOrigins  []string      // whose pages may use the API
	faults       *faultLog
	agents       *agents
	requestTimes *RequestTimes
	pacer        *pacer // of pages and pictures
	pageCache    *pageCache
	pictures     *otter.Cache[pictureKey, asset]
	places       places
	allow        map[string]string // the Allow header of each route
}

// New returns the public handler. It is to be served by [http.Server] over
// HTTP/1.1: elsewhere it answers the same, but leaves unread bodies to whoever
// serves it.
func New(c Config) (http.Handler, error) {
	if c.ClientIPHeader == "" {
		c.ClientIPHeader = "X-Forwarded-For"
	}
	if c.RequestTimes == nil {
		c.RequestTimes = new(RequestTimes)
	}
	switch c.RedirectStatus {
	case 0:
		c.RedirectStatus = http.StatusFound
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, fmt.Errorf("redirect status %d: must be 301, 302, 307 or 308", c.RedirectStatus)
	}
	if scheme := c.PublicURL.Scheme; scheme != "http" && scheme != "https" || c.PublicURL.Host == "" {
		return nil, fmt.Errorf("public URL %q: http or https and a host are needed", c.PublicURL)
	}
	if err := CheckPublicURL(c.PublicURL); err != nil {
		return nil, fmt.Errorf("public URL: %w", err)
	}
	languages, err := newCatalogue()
	if err != nil {
		return nil, err
	}
	pages, err := newPages(c, languages)
	if err != nil {
		return nil, err
	}
	assets, err := loadAssets()
	if err != nil {
		return nil, err
	}
	limited, err := tooMany(languages, limits(c.Rules, c.Contact, false))
	if err != nil {
		return nil, err
	}
	limitedChange, err := tooMany(languages, withContact(say("problem.limited_change"), c.Contact))
	if err != nil {
		return nil, err
	}
	pictures, err := newPictures()
	if err != nil {
		return nil, err
	}
	agents, err := newAgents()
	if err != nil {
		return nil, err
	}
	listed := make([]string, len(c.CORSOrigins))
	for i, text := range c.CORSOrigins {
		if listed[i], err = ParseOrigin(text); err != nil {
			return nil, fmt.Errorf("CORS origin %q %w", text, err)
		}
	}
	own := origin(c.PublicURL)
	_, host, _ := strings.Cut(own, "://")
	s := &server{
		service:        c.Service,
		throttle:       c.Throttle,
		changes:        c.Changes,
		keysOnly:       c.KeysOnly,
		tooMany:        limited,
		tooManyChanges: limitedChange,
		site:           siteOf(c.PublicURL),
		short:          shortBase(c.PublicURL),
		redirectStatus: c.RedirectStatus,
		now:            c.Now,
		log:            c.Log,
		description:    describe(shortBase(c.PublicURL)),
		languages:      languages,
		pages:          pages,
		assets:         assets,
		clients:        newClientFinder(c),
		proxies:        newProxyWatch(c.Log, c.ClientIPHeader),
		foreign: foreign.Guard{
			Origins:  append([]string{own}, listed...),
			Hosts:    []string{host},
			Loopback: foreign.IsLoopback(host),
		},
		corsOrigins:  listed,
		faults:       newFaultLog(c.Log, c.Now),
		agents:       agents,
		requestTimes: c.RequestTimes,
		pacer:        newPacer(),
		pageCache:    newPageCache(),
		pictures:     pictures,
	}
	return unread(withoutPrefix(prefixOf(c.PublicURL), s.cors(s.router()))), nil
}

// shortBase is what a slug is appended to.
func shortBase(u *url.URL) string { return siteOf(u) + prefixOf(u) + "/" }

// siteOf is the URL without its path. An international host is written in
// punycode: browsers and mail programs do not agree on anything else.
func siteOf(u *url.URL) string { return shortener.Location(u.Scheme + "://" + u.Host) }

// origin is the URL's origin as browsers send it: in lower case, the scheme's own
// port left out.
func origin(u *url.URL) string {
	site := strings.ToLower(siteOf(u))
	if strings.HasPrefix(site, "https:") {
		return strings.TrimSuffix(site, ":443")
	}
	return strings.TrimSuffix(site, ":80")
}
