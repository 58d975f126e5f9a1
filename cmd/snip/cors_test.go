package main

import (
	"net/http"
	"testing"
)

// The setting reaches the handler: the browser's tests have shown what it does.
func TestCORSOrigins(t *testing.T) {
	t.Parallel()
	p, err := startProcess(t.TempDir(), []string{"SNIP_CORS_ORIGINS=https://app.example, http://LOCALHOST:3000"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	for origin, status := range map[string]int{
		"https://app.example": http.StatusNoContent, "http://localhost:3000": http.StatusNoContent, "https://evil.example": http.StatusMethodNotAllowed,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, p.url+"/api/links", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Origin", origin)
		request.Header.Set("Access-Control-Request-Method", "POST")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("%s: %d, want %d", origin, response.StatusCode, status)
		}
	}
}
