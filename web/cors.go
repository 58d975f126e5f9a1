package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// apiRoot is where the routes begin that pages of other sites may be let use.
// What is above it, pages and redirects, is for people to go to.
const apiRoot = "/api/"

const (
	allowOrigin   = "Access-Control-Allow-Origin"
	exposeHeaders = "Access-Control-Expose-Headers"
	requestMethod = "Access-Control-Request-Method"
)

// cors lets pages of the listed origins read what the API answers (Fetch
// Standard, section 3.2). The headers are there before any handler runs, because
// refusals leave early, and a page that cannot read one cannot heed it. No answer
// allows credentials: there is no cookie, and a page names a token itself.
func (s *server) cors(next http.Handler) http.Handler {
	if len(s.corsOrigins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(echo.GetPath(r), apiRoot) { // the path that the router goes by
			next.ServeHTTP(w, r)
			return
		}
		if from := r.Header["Origin"]; len(from) == 1 && slices.Contains(s.corsOrigins, from[0]) {
			h := w.Header()
			h.Set(allowOrigin, from[0])
			h.Set(exposeHeaders, "Location, Retry-After, Quota-Remaining")
		}
		next.ServeHTTP(&originVaries{w}, r)
	})
}

// preflight answers a browser that asks whether a page may send what no form
// could. It spends nothing. To anyone else, OPTIONS is a method that no route has.
func (s *server) preflight(c echo.Context) error {
	w, r := c.Response(), c.Request()
	h := w.Header()
	if h.Get(allowOrigin) == "" || r.Header.Get(requestMethod) == "" {
		return echo.ErrMethodNotAllowed
	}
	h.Set("Access-Control-Allow-Methods", s.allow[c.Path()])
	h.Set("Access-Control-Allow-Headers", "Content-Type, Authorization, Idempotency-Key")
	h.Set("Access-Control-Max-Age", "86400") // seconds; browsers cut it to two hours or so
	h["Cache-Control"] = noStore
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// originVaries tells caches that an answer is for one origin, also where it names
// none. It does so last, because handlers set a Vary of their own.
type originVaries struct {
	http.ResponseWriter
}

func (w *originVaries) WriteHeader(status int) {
	h, vary := w.Header(), "Origin"
	if others := strings.Join(h["Vary"], ", "); others != "" {
		vary = others + ", " + vary // one line: old proxies look at no other
	}
	h.Set("Vary", vary)
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets [http.ResponseController] reach the connection.
func (w *originVaries) Unwrap() http.ResponseWriter { return w.ResponseWriter }
