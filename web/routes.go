package web

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"snip/shortener"
)

// handler answers a request, or returns an error that becomes the answer.
type handler func(s *server, w http.ResponseWriter, r *http.Request) error

// route is one path and all that may be done there.
type route struct {
	path    string // in echo's notation
	methods []string
	handle  handler
}

// anySlug is the path of the route that redirects.
const anySlug = "/*"

// routes is the whole surface: the router and the reserved slugs are made of it.
func routes() []route {
	read := []string{http.MethodGet, http.MethodHead}
	return []route{
		{"/", read, (*server).home},
		{"/api/links", []string{http.MethodPost}, (*server).create},
		{"/api/links/:slug", []string{http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodDelete}, (*server).manage},
		{"/api/links/:slug/*", read, func(*server, http.ResponseWriter, *http.Request) error { return shortener.ErrNotFound }},
		{"/api/keys/self/links", read, (*server).keyLinks},
		{"/api/quota", read, (*server).quota},
		{"/api/openapi.yaml", read, (*server).openAPI},
		{"/healthz", read, (*server).healthz},
		{"/readyz", read, (*server).readyz},
		{"/robots.txt", read, (*server).robots},
		{"/favicon.ico", read, (*server).favicon},
		{"/.well-known/security.txt", read, (*server).securityTxt},
		{"/-/manage", read, (*server).managePage},
		{"/-/*", read, (*server).asset},
		{"/:slug/qr.svg", read, (*server).qrSVG},
		{"/:slug/qr.png", read, (*server).qrPNG},
		{anySlug, append(read, http.MethodPost), (*server).follow},
	}
}

// refused are the methods that every route answers with 405 unless it has them.
// Without a handler of its own for each, echo goes on to a wider route, so that
// GET /api/links would be the look-up of a slug, and answers OPTIONS with 204.
// A method outside the list matches nothing, which echo reports as the same
// error.
var refused = []string{
	http.MethodConnect, http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions,
	http.MethodPatch, http.MethodPost, http.MethodPut, http.MethodTrace, echo.PROPFIND, echo.REPORT,
}

// router returns the routes as echo serves them. No middleware: it would run for
// wrong methods and redirects too, and a method override or a cleaned path would
// open other ways to a creation than the one that is limited.
func (s *server) router() http.Handler {
	e := echo.New()
	e.Logger.SetOutput(io.Discard) // what is worth a line goes to our own log
	e.IPExtractor = echo.ExtractIPDirect()
	e.HTTPErrorHandler = s.refuse // echo's own does not unwrap
	s.allow = make(map[string]string)
	for _, route := range routes() {
		s.allow[route.path] = strings.Join(route.methods, ", ")
		if route.path == anySlug { // POST is for some links only, see takesVisits
			s.allow[route.path] = "GET, HEAD"
		}
		times := s.requestTimes.of(route.path)
		handle := s.timed(times, s.guard(route.handle))
		notAllowed := s.timed(times, func(echo.Context) error { return echo.ErrMethodNotAllowed })
		for _, method := range refused {
			switch {
			case slices.Contains(route.methods, method):
				e.Add(method, route.path, handle)
			case method == http.MethodOptions:
				e.Add(method, route.path, s.timed(times, s.preflight))
			default:
				e.Add(method, route.path, notAllowed)
			}
		}
	}
	return e
}

// panicError is a panic on its way to the log.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return "panic in a handler" }

// guard turns a panic into an error, but for the one that asks net/http to drop
// the connection.
func (s *server) guard(handle handler) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			if value := recover(); value == http.ErrAbortHandler {
				panic(value)
			} else if value != nil {
				err = &panicError{value: value, stack: debug.Stack()}
			}
		}()
		return handle(s, c.Response(), c.Request())
	}
}

// prefixOf returns the public URL's path as it stands in a request, without a
// slash at its end.
func prefixOf(public *url.URL) string { return strings.TrimRight(public.EscapedPath(), "/") }

// withoutPrefix serves requests with and without the prefix: the proxy in front
// may strip it or not.
func withoutPrefix(prefix string, next http.Handler) http.Handler {
	if prefix == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.EscapedPath(), prefix)
		if !ok || rest != "" && rest[0] != '/' {
			next.ServeHTTP(w, r)
			return
		}
		path, err := url.PathUnescape(rest)
		if err != nil { // no server hands on such a path
			next.ServeHTTP(w, r)
			return
		}
		if rest == "" {
			path, rest = "/", "/"
		}
		stripped, u := *r, *r.URL
		u.Path, u.RawPath = path, rest
		stripped.URL = &u
		next.ServeHTTP(w, &stripped)
	})
}

// CheckPublicURL returns an error for a path prefix that begins like a route: a
// request under it could not be told from one without it.
func CheckPublicURL(public *url.URL) error {
	first := firstSegment(prefixOf(public))
	for _, route := range routes() {
		if name := firstSegment(route.path); name != "" && !strings.ContainsAny(name, ":*") && strings.EqualFold(name, first) {
			return fmt.Errorf("the path prefix must not begin with /%s, which is a route of its own", name)
		}
	}
	return nil
}

func firstSegment(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name
}

// ReservedSlugs returns the slugs that name a route or the public URL's path
// prefix, from the same table that the router is made of.
func ReservedSlugs(public *url.URL) []string {
	var reserved []string
	add := func(path string) {
		name := firstSegment(path)
		if _, ok := shortener.ParseSlug(name); ok && !slices.Contains(reserved, name) {
			reserved = append(reserved, name)
		}
	}
	for _, route := range routes() {
		add(route.path)
	}
	add(public.Path)
	return reserved
}
