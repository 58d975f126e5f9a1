package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// client follows no redirect and asks for no compression, as wrk does.
var client = &http.Client{
	Transport:     &http.Transport{DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// request sends one request, with a JSON body unless that is empty.
func request(ctx context.Context, method, url, body string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	resp.Header.Del("Date")
	return answer{Status: resp.StatusCode, Header: resp.Header, Body: content}, nil
}

// create asks for a link and returns the answer, whatever it is.
func (s *server) create(ctx context.Context, destination string) (answer, error) {
	return request(ctx, http.MethodPost, s.url+"/api/links", fmt.Sprintf(`{"url":%q}`, destination))
}

// follows fails unless the slug leads to the destination, or to anywhere when
// that is empty.
func (s *server) follows(ctx context.Context, slug, destination string) error {
	a, err := request(ctx, http.MethodGet, s.url+"/"+slug, "")
	if err != nil {
		return err
	}
	location := a.Header.Get("Location")
	if a.Status != http.StatusFound || location == "" || destination != "" && location != destination {
		return fmt.Errorf("following %s: status %d, location %q", slug, a.Status, location)
	}
	return nil
}

// used returns how many links this machine's address has made today, as the
// server counts them.
func (s *server) used(ctx context.Context) (int, error) {
	a, err := request(ctx, http.MethodGet, s.url+"/api/quota", "")
	if err != nil {
		return 0, err
	}
	var allowance struct{ Used *int }
	if err := json.Unmarshal(a.Body, &allowance); err != nil || allowance.Used == nil {
		return 0, fmt.Errorf("allowance: status %d, %q", a.Status, a.Body)
	}
	return *allowance.Used, nil
}
