package main

import (
	"net/http"
	"testing"
)

// The words of the setting join the built-in ones, and links that are there stay.
func TestReservedSlugs(t *testing.T) {
	t.Parallel()
	s := newSite(t, "--reserved-slugs=jobs, Big-Sale")
	for slug, want := range map[string]int{
		"jobs": http.StatusBadRequest, "J0BS": http.StatusBadRequest, "bigsale": http.StatusBadRequest, "login": http.StatusBadRequest,
		"api": http.StatusBadRequest, "jobs-2027": http.StatusCreated, "sale": http.StatusCreated,
	} {
		if status, _ := s.create(t, request{destination: "https://example.org/", slug: slug}); status != want {
			t.Errorf("%s: %d, want %d", slug, status, want)
		}
	}
}
