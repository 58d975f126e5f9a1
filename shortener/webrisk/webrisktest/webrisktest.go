// Package webrisktest stands in for Google's Web Risk in tests: a server on the
// loopback that answers as it is told, and counts what Google would bill.
//
// It is not Google: it knows no lists, and finds dangerous what a test says. Start with
// [Start].
package webrisktest

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"snip/shortener/webrisk"
)

// Key is the only key that the server takes.
const Key = "a-key-for-tests"

// Answer answers a request.
type Answer func(w http.ResponseWriter, r *http.Request)

// Server is the server.
type Server struct {
	URL *url.URL

	mu      sync.Mutex
	answer  Answer
	asked   []string // the destinations
	unheard chan struct{}
}

// Start returns a server that finds everything safe. It ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{answer: Safe, unheard: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if r.Method != http.MethodGet || query.Get("key") != Key || len(query["threatTypes"]) == 0 || !query.Has("uri") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, query.Get("uri"))
		answer := s.answer
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(func() {
		close(s.unheard)
		server.Close()
	})
	var err error
	if s.URL, err = url.Parse(server.URL + "/v1/uris:search"); err != nil {
		t.Fatal(err)
	}
	return s
}

// Client returns a client of the server.
func (s *Server) Client(now func() time.Time) *webrisk.Client {
	return webrisk.New(webrisk.Config{URL: s.URL, Key: Key, Now: now})
}

// Set says how requests are answered from now on.
func (s *Server) Set(answer Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// Asked returns the destinations that were asked about, in order.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// Safe finds a destination safe, and does not say for how long.
func Safe(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "{}") }

// SafeFor finds a destination safe for a time in seconds.
func SafeFor(seconds int) Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", fmt.Sprintf("private, max-age=%d", seconds))
		fmt.Fprint(w, "{}")
	}
}

// Dangerous finds a destination dangerous until an instant.
func Dangerous(until time.Time) Answer {
	return Body(fmt.Sprintf(`{"threat":{"threatTypes":["MALWARE"],"expireTime":%q}}`, until.Format(time.RFC3339Nano)))
}

// Body answers with a body.
func Body(text string) Answer {
	return func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, text) }
}

// Status answers with a status, and headers, each after its name.
func Status(status int, header ...string) Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
	}
}

// Silent keeps the connection and says nothing until the other side leaves.
func (s *Server) Silent(w http.ResponseWriter, r *http.Request) { s.wait(r) }

// Halting sends a part of an answer, and then nothing more.
func (s *Server) Halting(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, "{")
	w.(http.Flusher).Flush()
	s.wait(r)
}

// Dripping sends an answer that never ends, byte by byte.
func (s *Server) Dripping(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Fprint(w, " ")
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		case <-s.unheard:
			return
		}
	}
}

func (s *Server) wait(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.unheard:
	}
}

// Held answers as answer does once the channel is closed.
func (s *Server) Held(until <-chan struct{}, answer Answer) Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-until:
			answer(w, r)
		case <-r.Context().Done():
		case <-s.unheard:
		}
	}
}

// Cut ends the connection after having sent some bytes as they are, but for %s: in its
// place is the target of the request, in which are the key and the destination.
func Cut(raw string) Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		fmt.Fprint(conn, strings.ReplaceAll(raw, "%s", r.RequestURI))
		conn.Close()
	}
}

// Nowhere returns an address at which nobody listens.
func Nowhere(t testing.TB) *url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return &url.URL{Scheme: "http", Host: l.Addr().String()}
}
