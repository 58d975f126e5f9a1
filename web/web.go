// Package web is Snip over HTTP.
package web

import (
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"snip/quota"
	"snip/shortener"
)

// Config holds what the handler is made of.
type Config struct {
	Service        *shortener.Service
	Throttle       *quota.Throttle // nil when it is off
	Rules          Rules           // what refusals and pages say
	PublicURL      *url.URL        // what short links start with; its path is the prefix that is served too
	Contact        string          // an e-mail address or a URL; empty leaves it out
	TrustedProxies []netip.Prefix
	ClientIPHeader string // such as X-Forwarded-For
	RedirectStatus int
	Log            *slog.Logger
	Now            func() time.Time
}

// Rules are the numbers that a client is told, taken from the settings.
type Rules struct {
	Daily int64         // links per client and UTC day; 0 when that level is off
	Every time.Duration // the throttle's pace; 0 when it is off
}

// New returns the public handler.
func New(c Config) (http.Handler, error) { return http.NotFoundHandler(), nil }

// ReservedSlugs returns the slugs that name a route or the public URL's path
// prefix, from the same table that the router is made of.
func ReservedSlugs(public *url.URL) []string { return nil }
