package main

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"snip/shortener"
)

// Whatever the rules accept lies in the file as the bytes that were given, and
// leads on from there after a restart.
func TestAcceptedDestinationsAreKept(t *testing.T) {
	t.Parallel()
	rows, err := os.ReadFile("../../shortener/testdata/accepted.json")
	if err != nil {
		t.Fatal(err)
	}
	var accepted []struct{ Name, Text, Stored, Location string }
	if err := json.Unmarshal(rows, &accepted); err != nil {
		t.Fatal(err)
	}
	off := []string{"--quota-client=0", "--quota-network=0", "--quota-service=0", "--quota-newcomers=0"}
	made := newSite(t, off...)
	slugs := make([]string, len(accepted))
	for i, row := range accepted {
		var status int
		if status, slugs[i] = made.create(t, request{destination: row.Text}); status != http.StatusCreated {
			t.Fatalf("%s: status %d", row.Name, status)
		}
	}
	if err := made.store.Close(); err != nil {
		t.Fatal(err)
	}
	opened := openSite(t, made.file, time.Now, off...)
	for i, row := range accepted {
		stored := cmp.Or(row.Stored, row.Text)
		link, err := opened.store.Get(t.Context(), shortener.Slug(slugs[i]))
		if err != nil || link.Destination != stored {
			t.Errorf("%s: stored %+q, %v, want %+q", row.Name, link.Destination, err, stored)
		}
		w := httptest.NewRecorder()
		opened.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+slugs[i], nil))
		if got, want := w.Header().Get("Location"), cmp.Or(row.Location, stored); w.Code != http.StatusFound || got != want {
			t.Errorf("%s leads to %q with %d, want %q", row.Name, got, w.Code, want)
		}
	}
}
