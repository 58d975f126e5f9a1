// Package foreign tells requests that pages of other sites have sent.
//
// It promises that a browser's request that may change something is taken for the
// service's own only when the page that sent it stood under a name for which nobody
// else can answer. That Origin and Host agree is not enough: the owner of
// evil.example can let it point to the service's address (DNS rebinding), and then
// they agree. The package promises nothing about programs, which can send any header.
//
// Start with [Guard].
package foreign

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Guard tells requests that pages of other sites have sent. It is safe for
// concurrent use.
type Guard struct {
	// Origins are trusted whatever name a request arrives under, because a proxy in
	// front may change that name: the service's own origin, and listed ones. They
	// are written as browsers send them.
	Origins []string
	// Hosts are the service's own names, as in a URL, with or without a port.
	Hosts []string
	// Loopback makes localhost and the addresses of loopback such names.
	Loopback bool
	// Addresses makes every address such a name. No other site can be under one:
	// rebinding needs a name.
	Addresses bool
}

// Refuses reports whether a page of another site may have sent the request. A
// request that only reads is not refused, nor is one with none of the headers
// Origin, Sec-Fetch-Site and Referer, which a program has sent. X-Forwarded-Host and
// the like are not read: a page may set them.
func (g Guard) Refuses(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	origins, sites, referers := r.Header["Origin"], r.Header["Sec-Fetch-Site"], r.Header["Referer"]
	if origins == nil && sites == nil && referers == nil {
		return false
	}
	if len(origins) > 1 || len(sites) > 1 || len(referers) > 1 {
		return true
	}
	page, ok := pageOf(origins, referers)
	if !ok {
		return true
	}
	if page != nil && slices.Contains(g.Origins, page.Scheme+"://"+page.Host) {
		return false
	}
	site := ""
	if sites != nil {
		if site = sites[0]; site != "same-origin" && site != "none" {
			return true
		}
	}
	switch {
	case page == nil && origins != nil && sites == nil: // Origin: null
		return true
	case page == nil:
		return !g.owns(r.Host)
	case site != "same-origin" && !strings.EqualFold(page.Host, r.Host):
		return true
	}
	// Here the page and the address that its browser has sent the request to have one
	// origin. That address may not be the one that has arrived.
	return !g.owns(page.Host)
}

// pageOf returns the URL of the page that sent a request, or nil where the headers
// do not tell. It reports whether they could be read.
func pageOf(origins, referers []string) (*url.URL, bool) {
	var text string
	switch {
	case origins != nil && origins[0] == "null":
		return nil, true
	case origins != nil:
		text = origins[0]
	case referers == nil || referers[0] == "":
		return nil, true
	default:
		text = referers[0]
	}
	page, err := url.Parse(text)
	ok := err == nil && (page.Scheme == "http" || page.Scheme == "https") && page.Host != "" && page.User == nil
	return page, ok
}

// owns reports whether a host, with or without a port, is one of the service's own
// names.
func (g Guard) owns(host string) bool {
	name := plain(host)
	addr, err := netip.ParseAddr(name)
	switch {
	case err == nil && (g.Addresses || g.Loopback && addr.IsLoopback()):
		return true
	case g.Loopback && (name == "localhost" || strings.HasSuffix(name, ".localhost")):
		return true // browsers ask nobody for these names (RFC 6761, section 6.3)
	}
	return name != "" && slices.ContainsFunc(g.Hosts, func(own string) bool { return plain(own) == name })
}

// plain returns a host without its port, in the one spelling that is compared.
func plain(host string) string {
	name := strings.TrimSuffix(strings.ToLower((&url.URL{Host: host}).Hostname()), ".")
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.Unmap().String()
	}
	return name
}

// IsLoopback reports whether a host, with or without a port, is localhost or an
// address of loopback.
func IsLoopback(host string) bool { return Guard{Loopback: true}.owns(host) }
