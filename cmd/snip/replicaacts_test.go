package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snip/quota/pgquota/pgtest"
)

// actLife is how long what was done through one server may go unseen by another.
const actLife = time.Second

// switchboard stands between servers and their database. Once it is deaf it hangs up
// on whoever wants to be notified of changes.
type switchboard struct {
	url  string // of the database
	deaf atomic.Bool

	mu        sync.Mutex
	listening []net.Conn
}

func newSwitchboard(t *testing.T, database string) *switchboard {
	t.Helper()
	const socket = ".s.PGSQL.5432"
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	to, dir := query.Get("host"), t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(dir, socket))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	query.Set("host", dir)
	u.RawQuery = query.Encode()
	s := &switchboard{url: u.String()}
	go func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			go s.connect(caller, filepath.Join(to, socket))
		}
	}()
	return s
}

func (s *switchboard) connect(caller net.Conn, to string) {
	defer caller.Close()
	called, err := net.Dial("unix", to)
	if err != nil {
		return
	}
	defer called.Close()
	go func() {
		_, _ = io.Copy(caller, called)
		caller.Close()
	}()
	for part := make([]byte, 64<<10); ; {
		n, err := caller.Read(part)
		if bytes.Contains(part[:n], []byte("LISTEN ")) && !s.admit(caller) {
			return
		}
		if _, werr := called.Write(part[:n]); err != nil || werr != nil {
			return
		}
	}
}

// admit reports whether somebody who wants to be notified may.
func (s *switchboard) admit(listener net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listening = append(s.listening, listener)
	return !s.deaf.Load()
}

// hangUp ends all notifications.
func (s *switchboard) hangUp() (ended int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf.Store(true)
	for _, listener := range s.listening {
		listener.Close()
	}
	return len(s.listening)
}

// TestReplicasAct: what is done through one server is in force at the others within a
// second, whether they are notified of it or not.
func TestReplicasAct(t *testing.T) {
	t.Parallel()
	board := newSwitchboard(t, pgtest.Database(t))
	r := &replicas{database: board.url}
	r.start(t, 3, plenty...)
	t.Run("notified", func(t *testing.T) { r.act(t, "a") })
	if ended := board.hangUp(); ended < len(r.servers) {
		t.Fatalf("%d servers were notified, want %d", ended, len(r.servers))
	}
	t.Run("not notified", func(t *testing.T) { r.act(t, "b") })
}

// act does what operators and makers of links do, and looks at the other servers.
func (r *replicas) act(t *testing.T, name string) {
	first, others := r.servers[0], r.servers[1:]
	client := "203.0.113." + fmt.Sprint(int(name[0]))
	made := func(url string) managed {
		return makeManaged(t, first, `{"url":"`+url+`"}`)
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := first.snip(t, r.database, args...)
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return out
	}
	soon := func(what string, holds func(p *process) (bool, error)) {
		t.Helper()
		begun := time.Now()
		again := time.NewTicker(10 * time.Millisecond)
		defer again.Stop()
		for i, p := range others {
			for {
				asked := time.Now()
				ok, err := holds(p)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if ok {
					break
				}
				if asked.Sub(begun) > actLife {
					t.Errorf("%s: not seen by server %d after %v", what, i+1, actLife)
					break
				}
				<-again.C
			}
		}
	}
	status := func(want int, path string) func(*process) (bool, error) {
		return func(p *process) (bool, error) {
			got, err := ask("GET", p.url+path, "", "")
			return got.status == want, err
		}
	}
	const sure = 50 // visits, after which a link is at hand everywhere
	warm := func(path string) {
		t.Helper()
		for range sure {
			for _, p := range others {
				mustAsk(t, http.StatusFound, "GET", p.url+path, "", "")
			}
		}
	}

	// A slug that was asked for in vain leads on once there is a link.
	for _, p := range others {
		mustAsk(t, http.StatusNotFound, "GET", p.url+"/later-"+name, "", "")
	}
	makeManaged(t, first, `{"url":"https://example.org/","slug":"later-`+name+`"}`)
	soon("a new link", status(http.StatusFound, "/later-"+name))

	link := made("https://example.org/" + name)
	warm("/" + link.Slug)
	run("links", "disable", "--slug", link.Slug, "--reason", "phishing")
	soon("a takedown", status(http.StatusGone, "/"+link.Slug))
	run("links", "enable", "--slug", link.Slug)
	soon("the end of a takedown", status(http.StatusFound, "/"+link.Slug))

	changed := made("https://example.org/before")
	warm("/" + changed.Slug)
	changed.send(t, first, http.MethodPatch, `{"url":"https://example.org/after"}`)
	soon("a change", func(p *process) (bool, error) {
		got, err := ask("GET", p.url+"/"+changed.Slug, "", "")
		return got.location == "https://example.org/after", err
	})
	changed.send(t, first, http.MethodDelete, "")
	soon("a deletion", status(http.StatusGone, "/"+changed.Slug))

	blocked := made("https://" + name + ".blocked.example/")
	warm("/" + blocked.Slug)
	run("blocks", "add", name+".blocked.example")
	soon("a blocked host", status(http.StatusGone, "/"+blocked.Slug))

	run("quota", "override", client, "--block")
	soon("a blocked client", func(p *process) (bool, error) {
		status, _, err := newCaller(t, p).create(client, "https://example.org/")
		return status == http.StatusForbidden, err
	})

	key := strings.TrimSpace(run("keys", "create", "--name", "key-"+name, "--daily", "5"))
	key = key[strings.LastIndex(key, "snip_"):]
	withKey := func(want int) func(p *process) (bool, error) {
		return func(p *process) (bool, error) {
			request, err := http.NewRequest(http.MethodGet, p.url+"/api/quota", nil)
			if err != nil {
				return false, err
			}
			request.Header.Set("Authorization", "Bearer "+key)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return false, err
			}
			return response.StatusCode == want, response.Body.Close()
		}
	}
	soon("a new key", withKey(http.StatusOK))
	run("keys", "revoke", "--name", "key-"+name)
	soon("a revoked key", withKey(http.StatusUnauthorized))
}

// send changes or deletes the link with its token.
func (m managed) send(t *testing.T, p *process, method, body string) {
	t.Helper()
	request, err := http.NewRequest(method, p.url+"/api/links/"+m.Slug, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+m.Token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		t.Fatalf("%s: %s", method, response.Status)
	}
}
