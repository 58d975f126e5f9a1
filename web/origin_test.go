package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestParseOrigin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://app.example":         "https://app.example",
		"HTTPS://App.Example:443":     "https://app.example",
		"http://app.example:80":       "http://app.example",
		"http://app.example:443":      "http://app.example:443",
		"http://localhost:3000":       "http://localhost:3000",
		"http://192.0.2.1":            "http://192.0.2.1",
		"http://[2001:DB8::1]:8080":   "http://[2001:db8::1]:8080",
		"https://MÜNCHEN.example":     "https://xn--mnchen-3ya.example",
		"https://my_app.example":      "https://my_app.example",
		"https://app.example.":        "https://app.example.",
		"https://3com:8443":           "https://3com:8443",
		"chrome-extension://abcdefgh": "! is no origin",
		"":                            "! is no origin",
		"app.example":                 "! is no origin",
		"//app.example":               "! is no origin",
		"https:app.example":           "! is no origin",
		"https://":                    "! is no origin",
		"https://app.example ":        "! is no origin",
		"https://:443":                "! is no origin",
		"https://app.example:http":    "! is no origin",
		"*":                           "! name each origin",
		"https://*.app.example":       "! name each origin",
		"null":                        "! sandboxed frame",
		"Null":                        "! sandboxed frame",
		"https://me:pw@app.example":   "! user name",
		"https://app.example/":        "! https://app.example is meant",
		"https://App.Example:443/x":   "! https://app.example is meant",
		"https://app.example?":        "! https://app.example is meant",
		"https://app.example#":        "! https://app.example is meant",
		"https://app.example:":        "! port",
		"https://app.example:0":       "! port",
		"https://app.example:0443":    "! port",
		"https://app.example:65536":   "! port",
		"http://127.1":                "! as browsers write it",
		"http://127.0.0.1.":           "! as browsers write it",
		"http://0x7f000001":           "! as browsers write it",
		"http://192.0.2.999":          "! no IPv4 address",
		"http://[2001:db8:0::1]":      "! as browsers write it",
		"http://[::ffff:192.0.2.1]":   "! as browsers write it",
		"http://[fe80::1%25eth0]":     "! IPv6 address",
		"https://xn--a.example":       "! international name",
		"https://a..example":          "! dots",
	} {
		got, err := ParseOrigin(text)
		if words, wrong := strings.CutPrefix(want, "! "); wrong {
			if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "pw") {
				t.Errorf("%q: %q, %v; want an error with %q", text, got, err, words)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
		if again, err := ParseOrigin(got); err != nil || again != got {
			t.Errorf("%q: %q, %v when read again", got, again, err)
		}
	}
}

func TestNewReadsOrigins(t *testing.T) {
	t.Parallel()
	s := newCORSSite(t, false, "HTTPS://App.Example:443")
	w := s.do(call{body: goodJSON, header: merged(asJSON, map[string]string{"Origin": app, "Sec-Fetch-Site": "cross-site"})})
	if wantAnswer(t, w, http.StatusCreated, ""); w.Header().Get(allowOrigin) != app {
		t.Errorf("headers %v", w.Header())
	}
	for _, text := range []string{"*", "null", ""} {
		_, err := New(Config{PublicURL: &url.URL{Scheme: "https", Host: "s.example"}, CORSOrigins: []string{app, text}})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("CORS origin %q", text)) || errors.Unwrap(err) == nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
