package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asker asks a listener as a browser or a script does, and follows nothing.
type asker struct {
	t      *testing.T
	client *http.Client
	url    string
	header map[string]string
}

func (c asker) ask(method, target, body string) (status int, location, text string) {
	c.t.Helper()
	request, err := http.NewRequest(method, c.url+target, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, value := range c.header {
		request.Header.Set(name, value)
	}
	response, err := c.client.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Location"), string(all)
}

// The operator's page, its forms and the API are on the admin listener alone, and
// short links on the public one.
func TestListenersServeNothingOfEachOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, "--throttle-every", "0", "--admin-url", "https://snip-admin.example/")
	token, err := os.ReadFile(filepath.Join(dir, "snip.db.admin-token"))
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.TrimSpace(string(token))
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	bearer := map[string]string{"Authorization": "Bearer " + shown}
	public := asker{t, client, p.url, bearer}
	operator := asker{t, client, "http://" + p.admin, bearer}

	if status, _, text := public.ask("POST", "/api/links", url.Values{"url": {"https://example.org/"}, "slug": {"there"}}.Encode()); status != http.StatusUnauthorized {
		t.Errorf("the admin token makes links: %d %s", status, text) // it is no API key
	}
	public.header = nil
	if status, _, text := public.ask("POST", "/api/links", url.Values{"url": {"https://example.org/"}, "slug": {"there"}}.Encode()); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	for _, target := range []string{"/there", "/there+", "/there/", "/-/form.js", "/robots.txt"} {
		if status, location, text := operator.ask("GET", target, ""); status != http.StatusNotFound || location != "" {
			t.Errorf("the admin listener: GET %s: %d to %q: %s", target, status, location, text)
		}
	}

	// Signed in, so that the cookie is sent to the public port too: cookies know no ports.
	operator.header = map[string]string{"Origin": operator.url}
	if status, _, text := operator.ask("POST", "/session", url.Values{"token": {shown}}.Encode()); status != http.StatusSeeOther {
		t.Fatalf("signing in: %d %s", status, text)
	}
	for from, want := range map[string]int{"https://snip-admin.example": http.StatusSeeOther, "https://evil.example": http.StatusForbidden} {
		proxied := asker{t, client, operator.url, map[string]string{"Origin": from}}
		if status, _, text := proxied.ask("POST", "/session", url.Values{"token": {shown}}.Encode()); status != want {
			t.Errorf("signing in on a page of %s: %d, want %d: %s", from, status, want, text)
		}
	}
	if _, _, text := operator.ask("GET", "/", ""); !strings.Contains(text, "https://example.org/") {
		t.Fatalf("the page does not list the newest link:\n%s", text)
	}
	public.header = bearer
	for _, target := range []string{
		"/session", "/session/end", "/live", "/do/block", "/do/disable", "/-/page/admin.js", "/-/page/admin.css", "/metrics", "/debug/pprof/",
		"/api/keys", "/api/status", "/api/link", "/api/blocks", "/api/overrides", "/api/audit", "/api/history", "/api/clock", "/api/links/disable",
	} {
		for _, method := range []string{"GET", "POST"} {
			if status, _, text := public.ask(method, target, ""); status != http.StatusNotFound && status != http.StatusMethodNotAllowed && status != http.StatusUnauthorized {
				t.Errorf("the public listener: %s %s: %d %s", method, target, status, text)
			}
		}
	}
	if status, _, text := public.ask("GET", "/", ""); status != http.StatusOK || strings.Contains(text, "Admin token") || strings.Contains(text, "Sign out") {
		t.Errorf("the public page: %d\n%s", status, text)
	}
}
