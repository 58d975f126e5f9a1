package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
)

// client follows no redirect and asks for no compression, as wrk does.
var client = &http.Client{
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: makers},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// makers is how many links are made at once where making them is not measured.
const makers = 64

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

// makeLinks makes n links whose destinations have one length, follows each, and
// returns their slugs.
func (s *server) makeLinks(ctx context.Context, n int) ([]string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slugs := make([]string, n)
	var group sync.WaitGroup
	for maker := range makers {
		group.Go(func() {
			for i := maker; i < n && ctx.Err() == nil; i += makers {
				if err := s.makeLink(ctx, i, &slugs[i]); err != nil {
					cancel(err)
				}
			}
		})
	}
	group.Wait()
	return slugs, context.Cause(ctx)
}

func (s *server) makeLink(ctx context.Context, i int, slug *string) error {
	destination := fmt.Sprintf("https://example.org/articles/2026/%07d", i)
	a, err := s.create(ctx, destination)
	if err != nil {
		return err
	}
	if a.Status != http.StatusCreated {
		return fmt.Errorf("making a link: status %d, %q", a.Status, a.Body)
	}
	*slug = path.Base(a.Header.Get("Location"))
	return s.follows(ctx, *slug, destination)
}
