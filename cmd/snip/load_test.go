package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"snip/quota"
)

// caller talks to a server over connections that it keeps, as one proxy would for
// many clients.
type caller struct {
	http http.Client
	url  string
}

func newCaller(t *testing.T, p *process) *caller {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &caller{
		url: p.url,
		http: http.Client{
			Transport: transport,
			Timeout:   patience,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}
}

// create asks for a link in the name of a client, and returns the answer's status
// and, for a link that was made, its slug.
func (c *caller) create(client, destination string) (status int, slug string, err error) {
	return c.ask(client, destination, "")
}

// ask is create with a slug, where that is not empty.
func (c *caller) ask(client, destination, chosen string) (status int, slug string, err error) {
	fields := url.Values{"url": {destination}}
	if chosen != "" {
		fields.Set("slug", chosen)
	}
	form := fields.Encode()
	request, err := http.NewRequest("POST", c.url+"/api/links", strings.NewReader(form))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if client != "" {
		request.Header.Set("X-Forwarded-For", client)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusCreated {
		return response.StatusCode, "", err
	}
	var link struct{ Slug, URL string }
	if err := json.Unmarshal(body, &link); err != nil {
		return 0, "", err
	}
	if link.URL != destination {
		return 0, "", fmt.Errorf("asked for %q, got %q", destination, link.URL)
	}
	return response.StatusCode, link.Slug, nil
}

// follow returns where a slug leads.
func (c *caller) follow(slug string) (string, error) {
	return c.visit(http.MethodGet, http.StatusFound, slug)
}

// visit returns where a slug leads by a method, whose answer has the status. A client would
// read the location, and Go's takes no host with an escape.
func (c *caller) visit(method string, status int, slug string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.url+"/"+slug, nil)
	if err != nil {
		return "", err
	}
	response, err := c.http.Transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return "", err
	}
	if response.StatusCode != status {
		return "", fmt.Errorf("/%s: status %d", slug, response.StatusCode)
	}
	return response.Header.Get("Location"), nil
}

// realDestinations returns the 48,009 destinations that people once shortened.
func realDestinations(t *testing.T) []string {
	t.Helper()
	f, err := os.Open("../../shortener/testdata/urls.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(bufio.NewReader(unzipped))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	lines = lines[:len(lines)-1] // what follows the last newline is not a line
	if len(lines) != 48009 {
		t.Fatalf("%d destinations, want 48,009", len(lines))
	}
	return lines
}

// spread calls run for each number below n from a few goroutines, and fails the
// test with the first error.
func spread(t *testing.T, n int, run func(int) error) {
	t.Helper()
	const workers = 16
	var wg sync.WaitGroup
	var once sync.Once
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n && !t.Failed(); i += workers {
				if err := run(i); err != nil {
					once.Do(func() { t.Errorf("number %d: %v", i, err) })
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// withinOneDay runs a test that counts a UTC day's links in a real process, and
// runs it once more when that day ended meanwhile.
func withinOneDay(t *testing.T, run func() error) {
	t.Helper()
	day := quota.DayOf(time.Now())
	err := run()
	if quota.DayOf(time.Now()) != day {
		err = run()
	}
	if err != nil {
		t.Error(err)
	}
}
