package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestProxiesPrefix: Snip under a path of another site, whether the proxy strips
// the path or not.
func TestProxiesPrefix(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		kind  frontKind
		exact bool // whether paths reach Snip as they are
		edits []string
	}{
		{"nginx keeps it", nginx, true, []string{"location / {\n        proxy_pass", "location /s/ {\n        proxy_pass"}},
		{"nginx strips it", nginx, false, []string{"location / {\n        proxy_pass http://snip;", "location /s/ {\n        proxy_pass http://snip/;"}},
		{"caddy keeps it", caddy, true, []string{"reverse_proxy 127.0.0.1:8080", "reverse_proxy /s/* 127.0.0.1:8080"}},
		{"caddy strips it", caddy, false, []string{"reverse_proxy 127.0.0.1:8080", "handle_path /s/* {\n\t\treverse_proxy 127.0.0.1:8080\n\t}"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := behind(t, "--public-url=https://s.example/s")
			f := row.kind.start(t, p.addr, row.edits...)
			visitor, past := f.visitor(t, "127.0.0.2"), neighbour(t, "127.0.0.2", p)
			made, err := exchangeOf(visitor, creation("https://s.example/s", strings.NewReader(`{"url":"https://example.org/","slug":"spring"}`)))
			var link struct {
				ShortURL string `json:"short_url"`
			}
			if err := errors.Join(err, json.Unmarshal([]byte(made.body), &link)); err != nil || link.ShortURL != "https://s.example/s/spring" {
				t.Fatal(made, err)
			}
			paths := []string{"/s/", "/s/spring", "/s/spring+", "/s/spring.", "/s/spring/qr.svg", "/s/nosuch", "/s/api/links"}
			page, err := exchangeOf(past, newRequest(t, "GET", "http://s.example/s/"))
			if err != nil {
				t.Fatal(err)
			}
			assets := regexp.MustCompile(`"(/s/-/[^"]+)"`).FindAllStringSubmatch(page.body, -1)
			if len(assets) == 0 {
				t.Fatal("the page names no assets")
			}
			for _, asset := range assets {
				paths = append(paths, asset[1])
			}
			if row.exact {
				paths = append(paths, "/s//spring", "/s/spring%2Fqr.svg", "/s/spring%2E", "/s/a%2Fb")
			}
			for _, path := range paths {
				if err := alike(t, visitor, past, "GET", path, "text/html"); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		})
	}
}

// TestProxiesInARow: a proxy that is called by another one keeps what that says.
func TestProxiesInARow(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		kind  frontKind
		edits []string
	}{
		{nginx, []string{"$remote_addr", "$proxy_add_x_forwarded_for"}},
		{caddy, []string{"reverse_proxy 127.0.0.1:8080", "reverse_proxy 127.0.0.1:8080 {\n\t\ttrusted_proxies 127.0.0.4\n\t}"}},
	} {
		t.Run(row.kind.name, func(t *testing.T) {
			t.Parallel()
			p := behind(t, "--trusted-proxies=127.0.0.1,127.0.0.4")
			f := row.kind.start(t, p.addr, row.edits...)
			for _, step := range []struct{ from, says, pays string }{
				{"127.0.0.4", "192.0.2.1, 203.0.113.7", "203.0.113.7"}, // from the outer proxy
				{"127.0.0.5", "192.0.2.1, 203.0.113.8", "127.0.0.5"},   // from anyone else
			} {
				request := creation("https://s.example", strings.NewReader(framed))
				request.Header.Set("X-Forwarded-For", step.says)
				if got, err := exchangeOf(f.visitor(t, step.from), request); err != nil || got.status != http.StatusCreated {
					t.Fatal(got, err)
				}
				if used := usedAs(t, p, step.pays); used != 1 {
					t.Errorf("from %s: %d links are %s's, want 1", step.from, used, step.pays)
				}
			}
		})
	}
}

// usedAs returns what a client has used of its day.
func usedAs(t *testing.T, p *process, client string) int {
	t.Helper()
	request := newRequest(t, "GET", "http://s.example/api/quota")
	request.Header.Set("X-Forwarded-For", client)
	got, err := exchangeOf(neighbour(t, "127.0.0.1", p), request)
	var allowance struct{ Used int }
	if err := errors.Join(err, json.Unmarshal([]byte(got.body), &allowance)); err != nil {
		t.Fatal(err)
	}
	return allowance.Used
}
