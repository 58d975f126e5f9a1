package web_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// cutter stands between clients and a site, and cuts connections on which the answer
// to a creation is about to come: the link is made by then.
type cutter struct {
	origin string
	cuts   atomic.Int64 // how many answers are still to be lost
}

func openCutter(t *testing.T, s *site) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	c := &cutter{origin: "http://" + listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go c.forward(client, strings.TrimPrefix(s.origin, "http://"))
		}
	}()
	return c
}

func (c *cutter) forward(client net.Conn, to string) {
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	var creation atomic.Bool
	go func() {
		io.Copy(server, io.TeeReader(client, writerFunc(func(p []byte) (int, error) {
			if bytes.HasPrefix(p, []byte("POST /api/links ")) {
				creation.Store(true)
			}
			return len(p), nil
		})))
		server.Close()
	}()
	io.Copy(client, io.TeeReader(server, writerFunc(func(p []byte) (int, error) {
		if creation.Load() && c.cuts.Add(-1) >= 0 {
			return 0, net.ErrClosed
		}
		return len(p), nil
	})))
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// tries counts the creations that reached the site.
func (s *site) tries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(strings.Join(s.seen, "\n"), "POST /api/links")
}

// Who retries with the same key after an answer that never came gets the link that
// was made then.
func TestAnswerLostAfterTheCommit(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body string
		made int
	}{
		"one link": {`{"url":"https://example.org/"}`, 1},
		"a batch":  {`[{"url":"https://example.org/"},{"url":"https://example.org/","slug":"chosen"}]`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSite(t, siteConfig{daily: 50})
			proxy := openCutter(t, s)
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			post := func() ([]byte, error) {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.origin+"/api/links", strings.NewReader(row.body))
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Content-Type", "application/json")
				request.Header.Set("Idempotency-Key", "a-retry-of-one-demand")
				response, err := client.Do(request)
				if err != nil {
					return nil, err
				}
				defer response.Body.Close()
				answer, err := io.ReadAll(response.Body)
				if response.StatusCode != http.StatusCreated {
					t.Errorf("%d %s", response.StatusCode, answer)
				}
				return answer, err
			}
			proxy.cuts.Store(2)
			for range 2 {
				if answer, err := post(); err == nil {
					t.Fatalf("the answer came: %s", answer)
				}
				wantUsed(t, s.origin, row.made)
			}
			first, err := post()
			if err != nil {
				t.Fatal(err)
			}
			again, err := post()
			if err != nil || !bytes.Equal(first, again) {
				t.Errorf("%s, and again %s, %v", first, again, err)
			}
			wantUsed(t, s.origin, row.made)
			if s.tries() != 4 {
				t.Errorf("%d tries reached the service", s.tries())
			}
			var links []struct {
				Slug        string
				ManageToken string `json:"manage_token"`
			}
			if first[0] != '[' {
				first = []byte("[" + string(first) + "]")
			}
			if err := json.Unmarshal(first, &links); err != nil || len(links) != row.made {
				t.Fatalf("%s: %v", first, err)
			}
			for _, link := range links {
				h := &linkHolder{t: t, origin: s.origin, Slug: link.Slug, ManageToken: link.ManageToken}
				h.wantSame("after the retry", "https://example.org/", "https://example.org/")
			}
		})
	}
}
