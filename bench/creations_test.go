package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestEveryAcknowledgedLinkMustBeThere(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		counted int
		sample  string
		sound   bool
	}{
		{"one is not counted", 9, "kept", false},
		{"just those", 10, "kept", true},
		{"all that were cut off", 13, "kept", true},
		{"more than can be", 14, "kept", false},
		{"counted, but it does not lead on", 10, "lost", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			snip := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/api/quota":
					fmt.Fprintf(w, `{"used":%d}`, row.counted)
				case "/kept":
					http.Redirect(w, r, "https://example.org/", http.StatusFound)
				default:
					http.NotFound(w, r)
				}
			}))
			defer snip.Close()
			made := creation{acknowledged: 10, cutOff: 3, samples: []string{"http://snip.example/" + row.sample}}
			counted, err := made.check(t.Context(), &server{url: snip.URL})
			if row.sound != (err == nil) || err == nil && counted != row.counted {
				t.Errorf("counted %d, error %v", counted, err)
			}
		})
	}
}
