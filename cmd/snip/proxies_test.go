package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// eachFront runs a test behind every proxy that docs/operating.md has a
// configuration for.
func eachFront(t *testing.T, run func(t *testing.T, kind frontKind)) {
	for _, kind := range []frontKind{nginx, caddy} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			run(t, kind)
		})
	}
}

// behind starts Snip as docs/operating.md tells to for a proxy in front.
func behind(t *testing.T, args ...string) *process {
	t.Helper()
	p := start(t, t.TempDir(), append([]string{"--trusted-proxies=127.0.0.1", "--public-url=https://s.example"}, args...)...)
	t.Cleanup(func() {
		for _, misconfigured := range []string{"forwards them", "no client address"} {
			if log := p.log(); strings.Contains(log, misconfigured) {
				t.Errorf("Snip takes the proxy for set up wrongly:\n%s", log)
			}
		}
	})
	return p
}

// exchange is an answer, but for what every proxy says for itself.
type exchange struct {
	status int
	header http.Header
	body   string
}

var proxysOwn = []string{"Date", "Server", "Via", "Alt-Svc", "Connection", "Keep-Alive"}

func exchangeOf(client *http.Client, request *http.Request) (exchange, error) {
	response, err := client.Do(request)
	if err != nil {
		return exchange{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	header := response.Header
	for _, name := range proxysOwn {
		header.Del(name)
	}
	return exchange{response.StatusCode, header, string(body)}, err
}

// differs returns an error unless two answers are the same, byte for byte.
func differs(got, want exchange) error {
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(exchange{})); diff != "" {
		return fmt.Errorf("with the proxy (+) it is not as without it (-):\n%s", diff)
	}
	return nil
}

// creation returns a request for a link, as a script sends it.
func creation(site string, body io.Reader) *http.Request {
	request, err := http.NewRequest("POST", site+"/api/links", body)
	if err != nil {
		panic(err) // the addresses here are constants
	}
	request.Header.Set("Content-Type", "application/json")
	return request
}

// TestProxiesLimit: clients have their own allowance behind a proxy, whatever they
// claim to be, and are refused with the bytes that they would get without it.
func TestProxiesLimit(t *testing.T) {
	t.Parallel()
	eachFront(t, func(t *testing.T, kind frontKind) {
		withinOneDay(t, func() error { return proxyLimits(t, kind) })
	})
}

func proxyLimits(t *testing.T, kind frontKind) error {
	// Four tokens and three links: the quota refuses the fourth, the throttle the fifth.
	p := behind(t, "--quota-client=3", "--throttle-every=24h", "--throttle-burst=4")
	clients, changes := []string{"127.0.0.2", "127.0.0.3"}, []string(nil)
	if haveIPv6() {
		clients, changes = append(clients, "::1"), kind.ipv6
	}
	f := kind.start(t, p.addr, changes...)
	for _, from := range clients {
		visitor, past := f.visitor(t, from), neighbour(t, from, p)
		for i := range 3 {
			request := creation("https://s.example", strings.NewReader(framed))
			request.Header.Add("X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i))
			request.Header.Add("X-Forwarded-For", "198.51.100.1")
			request.Header.Set("X-Real-Ip", "192.0.2.1")
			request.Header.Set("Forwarded", "for=192.0.2.1")
			got, err := exchangeOf(visitor, request)
			if err != nil || got.status != http.StatusCreated {
				return fmt.Errorf("%s: link %d: %v, %v", from, i+1, got, err)
			}
		}
		if from == "::1" { // where Snip does not listen
			past = nil
		}
		for _, layer := range []string{"the quota", "the throttle"} {
			if err := refusedAlike(visitor, past); err != nil {
				return fmt.Errorf("%s: %s: %w", from, layer, err)
			}
		}
	}
	return nil
}

// refusedAlike returns an error unless the client is refused behind the proxy as
// it is past it. The wait gets shorter with each second, so it is asked for before
// and after.
func refusedAlike(visitor, past *http.Client) error {
	ask := func(client *http.Client, site string) (answer exchange, wait int, err error) {
		answer, err = exchangeOf(client, creation(site, strings.NewReader(framed)))
		if err != nil {
			return answer, 0, err
		}
		wait, err = strconv.Atoi(answer.header.Get("Retry-After"))
		answer.header.Del("Retry-After")
		if answer.status != http.StatusTooManyRequests || err != nil || wait < 1 {
			err = fmt.Errorf("%v, wait %d, %w", answer, wait, err)
		}
		return answer, wait, err
	}
	if past == nil {
		_, _, err := ask(visitor, "https://s.example")
		return err
	}
	want, most, err := ask(past, "http://s.example")
	got, wait, err2 := ask(visitor, "https://s.example")
	_, least, err3 := ask(past, "http://s.example")
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	if wait > most || wait < least {
		return fmt.Errorf("the wait is %d with the proxy, %d before and %d after without it", wait, most, least)
	}
	return differs(got, want)
}

// TestProxiesRefuseEarly: a refusal does not wait for the body, also behind a proxy.
func TestProxiesRefuseEarly(t *testing.T) {
	t.Parallel()
	eachFront(t, func(t *testing.T, kind frontKind) {
		p := behind(t, "--throttle-every=24h", "--throttle-burst=1")
		f := kind.start(t, p.addr)
		visitor := f.visitor(t, "127.0.0.2")
		if got, err := exchangeOf(visitor, creation("https://s.example", strings.NewReader(framed))); err != nil || got.status != http.StatusCreated {
			t.Fatal(got, err)
		}
		body, typist := io.Pipe()
		go io.WriteString(typist, "{") // and no more until the answer is there
		request := creation("https://s.example", body)
		request.ContentLength = 1000
		response, err := visitor.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		typist.CloseWithError(io.ErrUnexpectedEOF)
		if response.StatusCode != http.StatusTooManyRequests {
			t.Errorf("answered with %d", response.StatusCode)
		}
	})
}

// TestProxiesPass: what visitors ask, and what Snip answers, is the same with a
// proxy between them.
func TestProxiesPass(t *testing.T) {
	t.Parallel()
	eachFront(t, func(t *testing.T, kind frontKind) {
		p := behind(t, "--allow-private-destinations")
		f := kind.start(t, p.addr)
		visitor, past := f.visitor(t, "127.0.0.2"), neighbour(t, "127.0.0.2", p)
		for slug, destination := range map[string]string{
			"spring":  "https://example.org/a%2Fb//c?d=%20;e#f",
			"inside":  "http://snip/x", // the name that the documented nginx has for Snip
			"forward": "https://example.org/",
		} {
			body := fmt.Sprintf(`{"url":%q,"slug":%q,"forward_query":%t}`, destination, slug, slug == "forward")
			got, err := exchangeOf(visitor, creation("https://s.example", strings.NewReader(body)))
			if err != nil || got.status != http.StatusCreated || got.header.Get("Location") != "https://s.example/"+slug {
				t.Fatal(got, err)
			}
			got, err = exchangeOf(visitor, newRequest(t, "GET", "https://s.example/"+slug))
			if err != nil || got.header.Get("Location") != destination {
				t.Errorf("%s leads to %q, %v", slug, got.header.Get("Location"), err)
			}
		}
		for _, row := range []string{
			"GET /", "GET /spring", "HEAD /spring", "GET /spring/", "GET /spring//", "GET //spring", "GET //", "GET /./spring",
			"GET /a/../spring", "GET /spring.", "GET /spring%2E", "GET /spring+", "GET /spring%2B", "GET /spring%20", "GET /%73pring",
			"GET /spring%2F", "GET /spring%2Fqr.svg", "GET /spring/qr.svg", "GET /spring//qr.svg", "GET /spring/qr.png", "GET /spring%252E",
			"GET /spring%E2%80%A6", "GET /spring%3F", "GET /spring%23", "GET /spring?a=b", "GET /spring;a", "GET /a%2Fb",
			"GET /nosuch", "HEAD /nosuch", "GET /" + strings.Repeat("a", 4000),
			"GET /forward?", "GET /forward?a=%2F%20&b=c;d&a=+", "GET /forward?a=b?c=/../d//e", "GET /forward?a=%22%3C",
			"GET /-/nosuch", "GET /api/openapi.yaml", "GET /robots.txt", "GET /favicon.ico", "GET /healthz", "GET /readyz", "GET /api/quota",
			"GET /api/links", "PUT /api/links", "OPTIONS /api/links", "DELETE /spring", "BREW /spring", "POST /spring",
			"GET /api/links/spring", "PATCH /api/links/spring", "DELETE /api/links/nosuch", "GET /api/links/a%2Fb",
		} {
			method, path, _ := strings.Cut(row, " ")
			for _, accept := range []string{"*/*", "text/html", "text/plain"} {
				if err := alike(t, visitor, past, method, path, accept); err != nil {
					t.Errorf("%.60s, Accept %s: %v", row, accept, err)
				}
			}
		}
	})
}

func newRequest(t *testing.T, method, address string) *http.Request {
	t.Helper()
	request, err := http.NewRequest(method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func alike(t *testing.T, visitor, past *http.Client, method, path, accept string) error {
	t.Helper()
	request := newRequest(t, method, "https://s.example"+path)
	request.Header.Set("Accept", accept)
	got, err := exchangeOf(visitor, request)
	if err != nil {
		return err
	}
	request = newRequest(t, method, "http://s.example"+path)
	request.Header.Set("Accept", accept)
	want, err := exchangeOf(past, request)
	if err != nil {
		return err
	}
	return differs(got, want)
}

// TestProxiesBodies: bodies pass up to Snip's own bound, and above it the refusal
// is Snip's, however large they are and whether their length is told.
func TestProxiesBodies(t *testing.T) {
	t.Parallel()
	const bound = 64 << 10
	eachFront(t, func(t *testing.T, kind frontKind) {
		p := behind(t, "--throttle-every=0", "--quota-client=1000", "--quota-network=1000", "--quota-service=2000")
		f := kind.start(t, p.addr)
		visitor, past := f.visitor(t, "127.0.0.2"), neighbour(t, "127.0.0.2", p)
		send := func(client *http.Client, site string, size int, told bool) exchange {
			padded := io.MultiReader(strings.NewReader(framed), strings.NewReader(strings.Repeat(" ", size-len(framed))))
			request := creation(site, padded)
			request.ContentLength = -1
			if told {
				request.ContentLength = int64(size)
			}
			got, err := exchangeOf(client, request)
			if err != nil {
				t.Fatalf("%d bytes, length told %t: %v", size, told, err)
			}
			return got
		}
		want := send(past, "http://s.example", bound+1, true)
		if want.status != http.StatusRequestEntityTooLarge {
			t.Fatal(want)
		}
		for _, told := range []bool{true, false} {
			for range 10 { // the refusal races with the body
				if got := send(visitor, "https://s.example", bound, told); got.status != http.StatusCreated {
					t.Errorf("%d bytes, length told %t: %v", bound, told, got)
				}
				for _, size := range []int{bound + 1, 1 << 20, 8 << 20} {
					if err := differs(send(visitor, "https://s.example", size, told), want); err != nil {
						t.Errorf("%d bytes, length told %t: %v", size, told, err)
					}
				}
			}
		}
	})
}

// TestProxiesForm: the form of a page that came over TLS makes links, and that of
// another site does not, although Snip itself is spoken to without TLS.
func TestProxiesForm(t *testing.T) {
	t.Parallel()
	eachFront(t, func(t *testing.T, kind frontKind) {
		f := kind.start(t, behind(t).addr)
		visitor := f.visitor(t, "127.0.0.2")
		for _, row := range []struct {
			origin, fetchSite string
			want              int
		}{
			{"https://s.example", "same-origin", http.StatusCreated},
			{"https://s.example", "", http.StatusCreated}, // of an older browser
			{"https://evil.example", "cross-site", http.StatusForbidden},
			{"https://evil.example", "", http.StatusForbidden},
			{"null", "", http.StatusForbidden},
		} {
			request := creation("https://s.example", strings.NewReader(url.Values{"url": {"https://example.org/"}}.Encode()))
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			request.Header.Set("Accept", "text/html")
			request.Header.Set("Origin", row.origin)
			if row.fetchSite != "" {
				request.Header.Set("Sec-Fetch-Site", row.fetchSite)
			}
			got, err := exchangeOf(visitor, request)
			if err != nil || got.status != row.want || !strings.HasPrefix(got.body, "<!") {
				t.Errorf("%+v: %d %.100q, %v", row, got.status, got.body, err)
			}
		}
	})
}

// TestProxiesConnections: plain HTTP leads to TLS without a change to the address.
// Connections are kept, those of visitors in either version of HTTP, and the one
// to Snip for all of them.
func TestProxiesConnections(t *testing.T) {
	t.Parallel()
	eachFront(t, func(t *testing.T, kind frontKind) {
		var calls atomic.Int64
		snip := httptest.NewUnstartedServer(http.NotFoundHandler())
		snip.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				calls.Add(1)
			}
		}
		snip.Start()
		t.Cleanup(snip.Close)
		f := kind.start(t, snip.Listener.Addr().String())
		visitor := f.visitor(t, "127.0.0.2")
		const address = "s.example//a%2Fb.?c=%2F;d"
		got, err := exchangeOf(visitor, newRequest(t, "GET", "http://"+address))
		// A visitor's port is 443, which is left out.
		if to := strings.Replace(got.header.Get("Location"), ":"+f.tls, "", 1); err != nil || to != "https://"+address {
			t.Errorf("plain HTTP leads to %q, %v", to, err)
		}
		for _, version := range []int{1, 2} {
			client := f.visitor(t, "127.0.0.2")
			client.Transport.(*http.Transport).ForceAttemptHTTP2 = version == 2
			for i := range 3 {
				var reused bool
				trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
				request := newRequest(t, "GET", "https://s.example/nosuch")
				response, err := client.Do(request.WithContext(httptrace.WithClientTrace(t.Context(), trace)))
				if err != nil {
					t.Fatal(err)
				}
				_, err = io.Copy(io.Discard, response.Body)
				if err := errors.Join(err, response.Body.Close()); err != nil || response.ProtoMajor != version || reused != (i > 0) {
					t.Errorf("HTTP/%d, request %d: HTTP/%d, kept %t, %v", version, i+1, response.ProtoMajor, reused, err)
				}
			}
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%d connections to Snip for six requests in turn, want 1", n)
		}
	})
}

// TestProxiesTrouble: a refusal for want of a store is Snip's own; while Snip is
// away the proxy says so, and it goes on with the first request after that.
func TestProxiesTrouble(t *testing.T) {
	t.Parallel()
	eachFront(t, func(t *testing.T, kind frontKind) {
		dir := t.TempDir()
		address := "127.0.0.1:" + freePort(t)
		again := func() *process {
			return start(t, dir, "--listen="+address, "--trusted-proxies=127.0.0.1", "--throttle-every=0", "--public-url=https://s.example")
		}
		p := again()
		f := kind.start(t, p.addr)
		visitor := f.visitor(t, "127.0.0.2")
		post := func(client *http.Client, site string, want int) exchange {
			t.Helper()
			got, err := exchangeOf(client, creation(site, strings.NewReader(framed)))
			if err != nil || got.status != want {
				t.Fatalf("%v, %v, want %d", got, err, want)
			}
			return got
		}
		for range 2 {
			post(visitor, "https://s.example", http.StatusCreated)
			if err := p.stop(); err != nil {
				t.Fatal(err)
			}
			post(visitor, "https://s.example", http.StatusBadGateway)
			p = again()
		}
		post(visitor, "https://s.example", http.StatusCreated)
		if err := os.Remove(filepath.Join(dir, "snip.db")); err != nil {
			t.Fatal(err)
		}
		got := post(visitor, "https://s.example", http.StatusServiceUnavailable)
		want := post(neighbour(t, "127.0.0.3", p), "http://s.example", http.StatusServiceUnavailable)
		if err := differs(got, want); err != nil || got.header.Get("Retry-After") == "" {
			t.Error(got.header, err)
		}
	})
}
