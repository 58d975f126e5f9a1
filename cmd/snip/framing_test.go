package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

const (
	framed   = `{"url":"https://example.org/"}` // 30 bytes, 1e in hexadecimal
	post     = "POST /api/links HTTP/1.1\r\nHost: s\r\nContent-Type: application/json\r\n"
	oldPost  = "POST /api/links HTTP/1.0\r\nConnection: keep-alive\r\nContent-Type: application/json\r\n"
	length   = "Content-Length: 30\r\n"
	chunking = "Transfer-Encoding: chunked\r\n"
	chunks   = "1e\r\n" + framed + "\r\n0\r\n\r\n"
	get      = "GET /healthz HTTP/1.1\r\n"
)

// TestFraming sends requests whose end or beginning two readers may see in
// different places, each followed by a creation on the same connection. Either
// the server answers both for what they are, or it closes the connection and the
// second is never read.
func TestFraming(t *testing.T) {
	t.Parallel()
	withinOneDay(t, func() error { return framing(t) })
}

func framing(t *testing.T) error {
	p := start(t, t.TempDir(), "--throttle-every=0", "--quota-client=1000", "--quota-network=1000", "--quota-service=2000")
	const next = post + "Connection: close\r\n" + length + "\r\n" + framed
	const last = get + "Host: s\r\nConnection: close\r\n\r\n" // read only where next was taken for a body
	var made int
	var errs []error
	for _, row := range []struct{ name, request, want string }{
		{"a plain creation", post + length + "\r\n" + framed, "201 201"},
		{"one length twice", post + length + length + "\r\n" + framed, "201 201"},
		{"two lengths", post + length + "Content-Length: 31\r\n\r\n" + framed, "400"},
		{"a list of lengths", post + "Content-Length: 30, 30\r\n\r\n" + framed, "400"},
		{"a sign", post + "Content-Length: +30\r\n\r\n" + framed, "400"},
		{"hexadecimal", post + "Content-Length: 0x1e\r\n\r\n" + framed, "400"},
		{"no number", post + "Content-Length:\r\n\r\n" + framed, "400"},
		{"too large a number", post + "Content-Length: 18446744073709551646\r\n\r\n" + framed, "400"},
		{"no length", post + "\r\n" + framed, "400 400"}, // the body is no request
		{"a length too short", post + "Content-Length: 29\r\n\r\n" + framed, "400 400"},
		{"a length of the next too", post + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(framed+next)) + framed, "400 200"},
		{"a body to GET", get + fmt.Sprintf("Host: s\r\nContent-Length: %d\r\n\r\n", len(next)), "200 200"},

		{"chunks", post + chunking + "\r\n" + chunks, "201"},
		{"chunks and a length", post + length + chunking + "\r\n" + chunks, "201"},
		{"chunks and a short length", post + "Content-Length: 3\r\n" + chunking + "\r\n" + chunks, "201"},
		{"chunks twice", post + chunking + chunking + "\r\n" + chunks, "501"},
		{"another coding", post + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunks, "501"},
		{"an unknown coding and a length", post + length + "Transfer-Encoding: xchunked\r\n\r\n" + framed, "501"},
		{"a coding after a control character", post + length + "Transfer-Encoding: \vchunked\r\n\r\n" + chunks, "400"},
		{"a coding on a folded line", post + length + "Transfer-Encoding:\r\n chunked\r\n\r\n" + chunks, "201"},
		{"a chunk ended by LF alone", post + chunking + "\r\n1e\n" + framed + "\n0\n\n", "400"},
		{"an extension ended by LF alone", post + chunking + "\r\n1e;a\n" + framed + "\r\n0\r\n\r\n", "400"},
		{"a chunk longer than it says", post + chunking + "\r\n1d\r\n" + framed + "\r\n0\r\n\r\n", "400"},
		{"a chunk of too many digits", post + chunking + "\r\n1000000000000001e\r\n" + framed + "\r\n0\r\n\r\n", "400"},
		{"a trailer that sets a length", post + chunking + "\r\n1e\r\n" + framed + "\r\n0\r\nContent-Length: 5\r\n\r\n", "201"},
		{"chunks to HTTP/1.0", oldPost + chunking + "\r\n" + chunks, "400"},
		{"chunks and a length to HTTP/1.0", oldPost + length + chunking + "\r\n" + framed, "201"},
		{"HTTP/1.0", "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "200"},

		{"a space before the colon", post + "Content-Length : 30\r\n\r\n" + framed, "400"},
		{"a space before the name", post + " Content-Length: 3\r\n" + length + "\r\n" + framed, "415 201"}, // it belongs to the line above
		{"a folded line", post + "X-A: b\r\n c\r\n" + length + "\r\n" + framed, "201 201"},
		{"a folded first line", get + " X-A: b\r\nHost: s\r\n\r\n", "400"},
		{"CR alone in a value", post + "X-A: b\rTransfer-Encoding: chunked\r\n" + length + "\r\n" + framed, "400"},
		{"CR alone between lines", "GET /healthz HTTP/1.1\rHost: s\r\r", "400"},
		{"LF alone between lines", "GET /healthz HTTP/1.1\nHost: s\n\n", "200 201"},
		{"NUL in a value", get + "Host: s\r\nX-A: b\x00c\r\n\r\n", "400"},
		{"no host", get + "\r\n", "400"},
		{"two hosts", get + "Host: s\r\nHost: t\r\n\r\n", "400"},

		{"another server's URL", strings.Replace(post, "/api", "http://other.example/api", 1) + length + "\r\n" + framed, "201 201"},
		{"a tunnel", "CONNECT example.org:443 HTTP/1.1\r\nHost: s\r\n\r\n", "404 201"},
		{"a tunnel to the creation", "CONNECT /api/links HTTP/1.1\r\nHost: s\r\n\r\n", "405 201"},
		{"TRACE", "TRACE /api/links HTTP/1.1\r\nHost: s\r\nCookie: a=b\r\n\r\n", "405 201"},
		{"a small method", strings.Replace(post, "POST", "post", 1) + length + "\r\n" + framed, "405 201"},
		{"HTTP/0.9", "GET /healthz\r\n\r\n", "400"},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "404"},
		{"HTTP/2 by upgrade", get + "Host: s\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n", "200 201"},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"},
		{"headers of 16 KiB", get + "Host: s\r\nX-A: " + strings.Repeat("a", 16<<10-64) + "\r\n\r\n", "200 201"},
		{"headers of 24 KiB", get + "Host: s\r\nX-A: " + strings.Repeat("a", 24<<10) + "\r\n\r\n", "431"},
		{"a request line of 24 KiB", "GET /" + strings.Repeat("a", 24<<10) + " HTTP/1.1\r\nHost: s\r\n\r\n", "431"},
	} {
		got, err := statuses(p.addr, row.request+next+last)
		if err != nil || got != row.want {
			errs = append(errs, fmt.Errorf("%s: %s (%v), want %s", row.name, got, err, row.want))
		}
		made += strings.Count(got, "201")
	}
	if used := usedBy(t, p); used != made {
		errs = append(errs, fmt.Errorf("%d used, but %d were told of a link", used, made))
	}
	return errors.Join(errs...)
}

// TestBrokenOff sends bodies that end before their length or last chunk.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "--throttle-every=0")
	for name, request := range map[string]string{
		"a length": post + "Content-Length: 31\r\n\r\n" + framed,
		"a chunk":  post + chunking + "\r\n1f\r\n" + framed,
		"the end":  post + chunking + "\r\n1e\r\n" + framed + "\r\n",
	} {
		c, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte(request)); err != nil {
			t.Fatal(err)
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, err := untilClosed(c)
		if err := wantStart(answer, "HTTP/1.1 400 ", err); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if used := usedBy(t, p); used != 0 {
		t.Errorf("%d used", used)
	}
}

// TestPipelining: a hundred creations written at once to one connection are
// admitted like a hundred on as many, by either layer.
func TestPipelining(t *testing.T) {
	t.Parallel()
	const n = 100
	for _, row := range []struct {
		name string
		args []string
		want int
	}{
		{"the quota", []string{"--throttle-every=0", "--quota-client=37"}, 37},
		{"the throttle", []string{"--throttle-every=24h", "--throttle-burst=5"}, 5},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			withinOneDay(t, func() error {
				p := start(t, t.TempDir(), append(row.args, "--trusted-proxies=127.0.0.1")...)
				body := func(client string) string {
					return post + "X-Forwarded-For: " + client + "\r\n" + length + "\r\n" + framed
				}
				got, err := statuses(p.addr, strings.Repeat(body("198.51.100.1"), n)+get+"Host: s\r\nConnection: close\r\n\r\n")
				if err != nil {
					return err
				}
				if made, refused := strings.Count(got, "201"), strings.Count(got, "429"); made != row.want || made+refused != n {
					return fmt.Errorf("on one connection %d were admitted and %d refused, want %d of %d", made, refused, row.want, n)
				}
				c := newCaller(t, p)
				c.http.Transport.(*http.Transport).DisableKeepAlives = true
				admitted := make([]bool, n)
				spread(t, n, func(i int) error {
					status, _, err := c.create("203.0.113.1", "https://example.org/")
					admitted[i] = status == http.StatusCreated
					return err
				})
				made := 0
				for _, ok := range admitted {
					if ok {
						made++
					}
				}
				if made != row.want {
					return fmt.Errorf("on %d connections %d were admitted, want %d", n, made, row.want)
				}
				return nil
			})
		})
	}
}

// statusLine finds the answers in what came back: no body of theirs has one.
var statusLine = regexp.MustCompile(`HTTP/1\.[01] ([0-9]{3}) `)

// statuses sends text over a connection of its own and returns the status of
// each answer, once the server has closed it.
func statuses(addr, text string) (string, error) {
	answers, err := flood(addr, text, "")
	var found []string
	for _, match := range statusLine.FindAllStringSubmatch(answers, -1) {
		found = append(found, match[1])
	}
	return strings.Join(found, " "), err
}

// usedBy returns what the test's own address has used of its day.
func usedBy(t *testing.T, p *process) int {
	t.Helper()
	var allowance struct{ Used int }
	if err := json.Unmarshal([]byte(mustAsk(t, http.StatusOK, "GET", p.url+"/api/quota", "", "").body), &allowance); err != nil {
		t.Fatal(err)
	}
	return allowance.Used
}
