package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// front is a proxy that runs in front of Snip with the configuration that
// docs/operating.md tells operators to use.
type front struct {
	*process
	dir         string
	plain, tls  string // ports
	certificate string // files
	key         string
	roots       *x509.CertPool
}

// frontKind starts one sort of proxy before the Snip at the address. The
// changes are pairs of old and new text, for what the document tells in words.
type frontKind struct {
	name  string
	start func(t *testing.T, snip string, changes ...string) *front
	ipv6  []string // changes to listen on ::1 too
}

var (
	nginx = frontKind{"nginx", startNginx, nil}
	// Caddy 2.6 leads plain HTTP to TLS on one of several addresses only, so it has
	// the second where that does not matter.
	caddy = frontKind{"caddy", startCaddy, []string{"s.example {", "s.example {\n\tbind 127.0.0.1 ::1"}}
)

// startNginx puts around the documented site what is in Debian's nginx.conf or
// must be elsewhere for a test. One process without a master leaves nobody behind
// when it is killed.
func startNginx(t *testing.T, snip string, changes ...string) *front {
	t.Helper()
	f, program := newFront(t, "nginx", "/usr/sbin")
	ipv6 := func(line string) string {
		if !haveIPv6() {
			return ""
		}
		return line
	}
	site := edit(t, documented(t, "nginx"), append([]string{
		"127.0.0.1:8080", snip,
		"listen 80;", "listen 127.0.0.1:" + f.plain + ";",
		"listen [::]:80;", ipv6("listen [::1]:" + f.plain + ";"),
		"listen 443 ", "listen 127.0.0.1:" + f.tls + " ",
		"listen [::]:443 ssl http2;", ipv6("listen [::1]:" + f.tls + " ssl http2;"),
		"/etc/letsencrypt/live/s.example/fullchain.pem", f.certificate,
		"/etc/letsencrypt/live/s.example/privkey.pem", f.key,
	}, changes...)...)
	frame := `daemon off;
master_process off;
pid nginx.pid;
error_log stderr notice;
events {}
http {
    gzip on;
    access_log access.log;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
` + site + "}\n"
	f.run(t, exec.Command(program, "-p", f.dir, "-e", "stderr", "-c", f.write(t, "nginx.conf", frame)))
	// Its last word on the way up, when it listens.
	if err := f.awaitLine("getrlimit", func(line string) bool { return strings.Contains(line, "getrlimit") }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if log, _ := os.ReadFile(filepath.Join(f.dir, "access.log")); len(log) > 0 {
			t.Errorf("nginx keeps addresses of visitors:\n%s", log)
		}
	})
	return f
}

// startCaddy gives Caddy a certificate, since no authority is asked in a test.
func startCaddy(t *testing.T, snip string, changes ...string) *front {
	t.Helper()
	f, program := newFront(t, "caddy", "/usr/bin")
	site := edit(t, documented(t, "caddyfile"), append(slices.Clone(changes), // first, since they name the documented address
		"127.0.0.1:8080", snip,
		"s.example {", fmt.Sprintf("s.example {\n\ttls %s %s", f.certificate, f.key),
	)...)
	f.run(t, exec.Command(program, "run", "--adapter", "caddyfile", "--config", f.write(t, "Caddyfile", f.caddyOptions()+site)))
	if _, err := f.await("serving initial configuration"); err != nil {
		t.Fatal(err)
	}
	return f
}

// caddyOptions is what must be elsewhere for a test.
func (f *front) caddyOptions() string {
	return fmt.Sprintf("{\n\tadmin off\n\thttp_port %s\n\thttps_port %s\n\tdefault_bind 127.0.0.1\n\tstorage file_system %s\n}\n",
		f.plain, f.tls, f.dir)
}

// newFront returns what any proxy needs, and the program's path.
func newFront(t *testing.T, name, folder string) (*front, string) {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil { // a user's path may leave out the folder of servers
		program, err = exec.LookPath(filepath.Join(folder, name))
	}
	if err == nil {
		err = manyLoopbacks()
	}
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("needs %s, and Linux, where 127.0.0.2 is this machine too (install %s): %v", name, name, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := &front{dir: t.TempDir(), plain: freePort(t), tls: freePort(t)}
	f.certify(t)
	return f, program
}

func (f *front) run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	p, err := launch(cmd, f.dir, []string{"HOME=" + f.dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	f.process = p
}

// certify makes a certificate for s.example.
func (f *front) certify(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"s.example"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	f.certificate = f.write(t, "certificate.pem", string(certificate))
	f.key = f.write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	f.roots = x509.NewCertPool()
	f.roots.AppendCertsFromPEM(certificate)
}

func (f *front) write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// visitor returns a client at that address of this machine which takes the proxy
// for https://s.example, and http://s.example.
func (f *front) visitor(t *testing.T, from string) *http.Client {
	return clientFrom(t, from, func(port string) string {
		if port == "443" {
			return f.tls
		}
		return f.plain
	}, f.roots)
}

// neighbour returns a client at that address which takes Snip itself, past any
// proxy, for http://s.example.
func neighbour(t *testing.T, from string, p *process) *http.Client {
	_, port, _ := net.SplitHostPort(p.addr)
	return clientFrom(t, from, func(string) string { return port }, nil)
}

func clientFrom(t *testing.T, from string, port func(asked string) string, roots *x509.CertPool) *http.Client {
	to := "127.0.0.1"
	if strings.Contains(from, ":") {
		to = "::1"
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, asked, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
			return dialer.DialContext(ctx, network, net.JoinHostPort(to, port(asked)))
		},
		TLSClientConfig:    &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2:  true,
		DisableCompression: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// documented returns the one block in that language of docs/operating.md.
func documented(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllSubmatch(text, -1)
	if len(blocks) != 1 {
		t.Fatalf("%d blocks in %s, want 1", len(blocks), language)
	}
	return string(blocks[0][1])
}

// edit replaces each old text by the new one, and fails where the old is not there.
func edit(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("no %q in\n%s", pairs[i], text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// freePort returns a port below those that the system gives out by itself: other
// tests take these all the time, and would between now and its use.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(20000 + mathrand.IntN(12000))
		if l, err := net.Listen("tcp", ":"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

func haveIPv6() bool { return canListen("[::1]:0") == nil }

// manyLoopbacks returns an error where not all of 127.0.0.0/8 is this machine.
func manyLoopbacks() error { return canListen("127.0.0.2:0") }

func canListen(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}
