package admin

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"snip/shortener"
	"snip/shortener/memstore"
)

// door is a way to show a token.
type door struct {
	show           func(h http.Handler, peer, token string) *httptest.ResponseRecorder
	opens, refuses int
}

var doors = map[string]door{
	"the API": {func(h http.Handler, peer, token string) *httptest.ResponseRecorder {
		return from(h, peer, httptest.NewRequest("GET", "/api/keys", nil), "Authorization", "Bearer "+token)
	}, http.StatusOK, http.StatusUnauthorized},
	"the page": {func(h http.Handler, peer, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/session", strings.NewReader(url.Values{"token": {token}}.Encode()))
		return from(h, peer, r, "Content-Type", "application/x-www-form-urlencoded")
	}, http.StatusSeeOther, http.StatusForbidden},
}

// from sends a request of a peer, with a header.
func from(h http.Handler, peer string, r *http.Request, name, value string) *httptest.ResponseRecorder {
	r.RemoteAddr = peer
	r.Header.Set(name, value)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A peer that shows wrong tokens is refused for a while without a look at what it
// shows, at either door. Others are not, and those that show the right one never.
func TestWrongTokens(t *testing.T) {
	t.Parallel()
	const attacker, neighbour, ipv6, sameSubnet, otherSubnet = "127.0.0.1:1000", "127.0.0.2:1000", "[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8:0:1::1]:1"
	for name, d := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &clock{t: time.Date(2026, 11, 29, 1, 0, 0, 0, time.UTC)}
			h, _ := openAdmin(t, memstore.New(), c.now)
			want := func(peer, shown string, status int, wait string) {
				t.Helper()
				w := d.show(h, peer, shown)
				if w.Code != status || w.Header().Get("Retry-After") != wait {
					t.Errorf("%s with %q: %d, Retry-After %q, want %d, %q", peer, shown, w.Code, w.Header().Get("Retry-After"), status, wait)
				}
			}
			for range 3 * WrongTokens { // the right one counts for nothing
				want(attacker, token, d.opens, "")
			}
			for i := range WrongTokens {
				want(attacker, fmt.Sprint("wrong", i), d.refuses, "")
			}
			want(attacker, "wrong", http.StatusTooManyRequests, "10")
			want("127.0.0.1:2000", token, http.StatusTooManyRequests, "10")
			for other := range doors {
				if got := doors[other].show(h, attacker, token).Code; got != http.StatusTooManyRequests {
					t.Errorf("%s of the same listener: %d", other, got)
				}
			}
			// A header says nothing of the peer.
			r := httptest.NewRequest("GET", "/api/keys", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			if w := from(h, attacker, r, "X-Forwarded-For", "192.0.2.1"); w.Code != http.StatusTooManyRequests {
				t.Errorf("with another address in a header: %d", w.Code)
			}
			want(neighbour, "wrong", d.refuses, "")
			want(neighbour, token, d.opens, "")
			c.advance(wrongPace - 1)
			want(attacker, token, http.StatusTooManyRequests, "1")
			c.advance(1)
			want(attacker, token, d.opens, "")
			want(attacker, "wrong", d.refuses, "")
			want(attacker, token, http.StatusTooManyRequests, "10")

			for range WrongTokens {
				want(ipv6, "wrong", d.refuses, "")
			}
			want(sameSubnet, token, http.StatusTooManyRequests, "10")
			want(otherSubnet, token, d.opens, "")
		})
	}
}

// Wrong tokens that are shown concurrently are compared as rarely as others, and all of
// them are counted.
func TestConcurrentWrongTokens(t *testing.T) {
	t.Parallel()
	h := newAdmin(t)
	var mu sync.Mutex
	var group sync.WaitGroup
	answers := map[int]int{}
	for i := range 200 {
		group.Go(func() {
			d := doors[[]string{"the API", "the page"}[i%2]]
			w := d.show(h, "192.0.2.7:1", "wrong")
			mu.Lock()
			defer mu.Unlock()
			answers[w.Code]++
		})
	}
	group.Wait()
	if wrong := answers[http.StatusUnauthorized] + answers[http.StatusForbidden]; wrong != WrongTokens || answers[http.StatusTooManyRequests] != 200-WrongTokens {
		t.Errorf("answers %v", answers)
	}
	metrics := doors["the API"].show // from a peer that may
	if got := metrics(h, "192.0.2.8:1", token).Code; got != http.StatusOK {
		t.Errorf("another peer: %d", got)
	}
	body := ask(h, "GET", "/metrics", "Bearer "+token, "").Body.String()
	for _, line := range []string{`snip_admin_tokens_refused_total{reason="wrong"} 10`, `snip_admin_tokens_refused_total{reason="throttled"} 190`} {
		if !strings.Contains(body, "\n"+line+"\n") {
			t.Errorf("no %s in the metrics", line)
		}
	}
}

// However many peers show wrong tokens, no others are shut out, and the memory is
// bounded.
func TestManyPeersWithWrongTokens(t *testing.T) {
	t.Parallel()
	g := newGate(Config{Token: token, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	show := func(peer, token string) bool {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = peer
		_, ok := g.admits(r, token)
		return ok
	}
	for i := range mostPeers + 1000 {
		peer := fmt.Sprintf("[2001:db8:%x:%x::1]:1", i/65536, i%65536)
		show(peer, "wrong")
	}
	if len(g.peers) != mostPeers {
		t.Errorf("%d peers are kept", len(g.peers))
	}
	if !show("[2001:db8:ffff::1]:1", token) || !show("127.0.0.1:1", token) {
		t.Error("another peer is shut out")
	}
}

// logLines holds what was logged since it was taken last.
type logLines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logLines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}

// The first wrong token is logged, and then once a minute how many there were, also
// when none follow. What was shown is not.
func TestWrongTokensAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log logLines
		counts := &TokensRefused{}
		h, err := New(Config{
			Service: shortener.New(shortener.Config{Store: memstore.New(), Now: time.Now}),
			Process: Process{Tokens: counts}, Token: token, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		wrong := func(peer string) { doors["the API"].show(h, peer, "a-wrong-token") }
		wantLines := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for line := range strings.Lines(log.take()) {
				_, text, _ := strings.Cut(strings.TrimSpace(line), "level=")
				got = append(got, text)
			}
			if !slices.Equal(got, want) {
				t.Errorf("logged %q, want %q", got, want)
			}
		}
		const line = `WARN msg="wrong admin tokens were shown" `
		wrong("192.0.2.7:1")
		wantLines(line + "tokens=1 peer=192.0.2.7")
		for range 1000 {
			wrong("192.0.2.7:1")
		}
		wrong("[2001:db8::1]:1")
		<-time.After(tokenLogPause - 1)
		wantLines()
		<-time.After(2)
		wantLines(line + "tokens=1001 peer=2001:db8::1")
		<-time.After(3 * tokenLogPause)
		wantLines()
		wrong("192.0.2.7:1")
		wantLines(line + "tokens=1 peer=192.0.2.7")
		if n := counts.Total(); n != 1003 {
			t.Errorf("%d are counted", n)
		}
	})
}
