package admin

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"time"

	"snip/shortener"
	"snip/static"
)

//go:embed page
var pageFiles embed.FS

// pageCSP lets the page be made of its own files and nothing else, and lets no
// other page show it in a frame.
const pageCSP = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// errNoSession means that a form was sent without a session, or from elsewhere.
var errNoSession = errors.New("your session has ended, or the form is another page's")

// pageRoutes are what is answered without the token. The cookie of a session opens
// these and nothing else.
func (s *server) pageRoutes() (map[string]handler, error) {
	routes := map[string]handler{
		"GET /":             (*server).home,
		"GET /live":         (*server).live,
		"POST /session":     (*server).signIn,
		"POST /session/end": (*server).signOut,
	}
	for name, d := range deeds() {
		routes["POST /do/"+name] = d.submit
	}
	for _, a := range []struct {
		name, mediaType string
		read            func(string) ([]byte, error)
	}{
		{"snip.css", "text/css; charset=utf-8", static.Files.ReadFile},
		{"snip.svg", "image/svg+xml", static.Files.ReadFile},
		{"page/admin.css", "text/css; charset=utf-8", pageFiles.ReadFile},
		{"page/admin.js", "text/javascript; charset=utf-8", pageFiles.ReadFile},
	} {
		content, err := a.read(a.name)
		if err != nil {
			return nil, fmt.Errorf("page: %w", err)
		}
		routes["GET /-/"+a.name] = func(_ *server, w http.ResponseWriter, _ *http.Request) error {
			writeBytes(w, http.StatusOK, a.mediaType, content)
			return nil
		}
	}
	return routes, nil
}

// parsePage returns the templates.
func parsePage() (*template.Template, error) {
	return template.New("").Funcs(template.FuncMap{
		"n":       grouped,
		"several": several,
		"spell":   spell,
		"when":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
		"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"mib":     func(n int64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB" },
		"ms":      func(seconds float64) string { return strconv.FormatFloat(seconds*1000, 'f', 1, 64) + " ms" },
		"limit":   limitText,
		"refused": refusedInAll,
		"units":   shortener.Units,
	}).ParseFS(pageFiles, "page/*.html")
}

// render writes a page, once all of it is there.
func (s *server) render(w http.ResponseWriter, status int, name string, data any) error {
	var page bytes.Buffer
	if err := s.templates.ExecuteTemplate(&page, name, data); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	h := w.Header()
	h.Set("Content-Security-Policy", pageCSP)
	// Not no-referrer: then a form's Origin would be "null", which is refused.
	h.Set("Referrer-Policy", "same-origin")
	writeBytes(w, status, "text/html; charset=utf-8", page.Bytes())
	return nil
}

func (s *server) showPage(w http.ResponseWriter, status int, one *session, v view) error {
	v.FormToken = one.formToken
	return s.render(w, status, "page", v)
}

func (s *server) showSignIn(w http.ResponseWriter, status int, problem string) error {
	return s.render(w, status, "signin", problem)
}

// home is the page, or the form to sign in.
func (s *server) home(w http.ResponseWriter, r *http.Request) error {
	one := s.sessions.find(r, false)
	if one == nil {
		return s.showSignIn(w, http.StatusOK, "")
	}
	v := s.view(r.Context(), r.URL.Query().Get("q"))
	v.Said = s.sessions.said(one)
	return s.showPage(w, http.StatusOK, one, v)
}

// live is the page for its own script, which takes from it what has changed.
func (s *server) live(w http.ResponseWriter, r *http.Request) error {
	one := s.sessions.find(r, true)
	if one == nil {
		return errNoSession
	}
	return s.showPage(w, http.StatusOK, one, s.view(r.Context(), ""))
}

func (s *server) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	switch wait, ok := s.gate.admits(r, r.PostForm.Get("token")); {
	case ok:
	case wait > 0:
		w.Header().Set("Retry-After", wholeSeconds(wait))
		return s.showSignIn(w, http.StatusTooManyRequests, tooManyWrong)
	default:
		return s.showSignIn(w, http.StatusForbidden, "That is not the token.")
	}
	s.sessions.end(r)
	http.SetCookie(w, cookie(r, s.sessions.begin()))
	s.log.Info("an operator has signed in")
	s.record(r.Context(), "sign in")
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

func (s *server) signOut(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.writer(w, r); err != nil {
		return err
	}
	s.sessions.end(r)
	s.record(r.Context(), "sign out")
	http.SetCookie(w, cookie(r, ""))
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// writer returns the session of a request that may change something: a browser's,
// from a form of that session's page. Browsers say with every form where it stood;
// what does not has no business with a cookie.
func (s *server) writer(w http.ResponseWriter, r *http.Request) (*session, error) {
	if err := readForm(w, r); err != nil {
		return nil, err
	}
	one := s.sessions.find(r, false)
	said := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	if one == nil || !said || !one.knows(r.PostForm.Get("form_token")) {
		return nil, errNoSession
	}
	return one, nil
}

func readForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := r.ParseForm(); err != nil {
		return unread(err, "it is not a form as browsers send it")
	}
	return nil
}

// field is one of a form that is sent again once it was confirmed.
type field struct{ Name, Value string }

func (s *server) confirm(w http.ResponseWriter, r *http.Request, one *session, question string) error {
	data := struct {
		FormToken, Question, Action string
		Fields                      []field
	}{FormToken: one.formToken, Question: question, Action: r.URL.Path}
	for name, values := range r.PostForm {
		if name != "form_token" {
			data.Fields = append(data.Fields, field{name, values[0]})
		}
	}
	slices.SortFunc(data.Fields, func(a, b field) int { return cmp.Compare(a.Name, b.Name) })
	return s.render(w, http.StatusOK, "confirm", data)
}

// refusePage answers with an error that belongs to no form.
func (s *server) refusePage(w http.ResponseWriter, r *http.Request, err error) {
	status, _ := s.judge(r, err)
	if err := s.showSignIn(w, status, "Refused: "+sentence(err)); err != nil {
		s.log.Error("the operator's page cannot be shown", "err", err)
		writeProblem(w, http.StatusInternalServerError, "internal", sentence(err))
	}
}
