package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		answer  http.HandlerFunc
		code    int
		out     string
		problem string
	}{
		{"ready", func(w http.ResponseWriter, r *http.Request) {}, exitOK, "ready\n", ""},
		{"not ready", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "the disk\nis full", http.StatusServiceUnavailable)
		}, exitFailure, "", "snip: not ready: 503 Service Unavailable: the disk is full\n"},
		{"somebody else", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/login", http.StatusFound)
		}, exitFailure, "", "snip: not ready: 302 Found: <a href"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			mux := http.NewServeMux()
			mux.HandleFunc("GET /readyz", row.answer)
			mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
			server := httptest.NewServer(mux)
			defer server.Close()
			var stdout, stderr bytes.Buffer
			// Wrong settings of others do not matter to a health check.
			environ := []string{"SNIP_LISTEN=" + server.Listener.Addr().String(), "SNIP_QUOTA_CLIENT=x", "HTTP_PROXY=http://192.0.2.1"}
			code := run(t.Context(), []string{"health"}, environ, &stdout, &stderr)
			if code != row.code || stdout.String() != row.out || !strings.HasPrefix(stderr.String(), row.problem) {
				t.Errorf("exit %d, stdout %q, stderr %q", code, &stdout, &stderr)
			}
			// A server that cannot make links is live.
			stdout.Reset()
			stderr.Reset()
			if code := run(t.Context(), []string{"health", "--live"}, environ, &stdout, &stderr); code != exitOK || stdout.String() != "live\n" {
				t.Errorf("live: exit %d, stdout %q, stderr %q", code, &stdout, &stderr)
			}
		})
	}
}

func TestHealthCallsThisMachine(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ listen, want string }{
		{":8080", "127.0.0.1:8080"},
		{"0.0.0.0:80", "127.0.0.1:80"},
		{"[::]:80", "[::1]:80"},
		{"192.0.2.1:80", "192.0.2.1:80"},
		{"[::1]:80", "[::1]:80"},
		{":0", ""},
		{"8080", ""},
	} {
		if got, err := parseDial(row.listen); got != row.want || (err == nil) != (row.want != "") {
			t.Errorf("parseDial(%q) = %q, %v; want %q", row.listen, got, err, row.want)
		}
	}
}
