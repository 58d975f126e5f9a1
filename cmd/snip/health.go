package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// health asks the server at --listen whether it can make a link, or with --live
// whether it answers. It is there for containers that have neither shell nor curl, so
// it answers in one line and by its exit status. The other settings are the server's
// to judge.
func health(ctx context.Context, a asked, stdout io.Writer) error {
	path, good := "/readyz", "ready"
	if a.line.Health.Live {
		path, good = "/healthz", "live"
	}
	r := reader{given: a.settings}
	address := read(&r, "listen", parseDial)
	if len(r.problems) > 0 {
		return &settingsError{r.problems}
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return fmt.Errorf("not "+good+": %w", err)
	}
	request.Header.Set("Accept", "text/plain") // one line for a person, not a document
	// Not the default client: a proxy of the environment, or a redirect, would
	// answer for somebody else.
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("not "+good+": %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 512))
	if err != nil {
		return fmt.Errorf("not "+good+": %w", err)
	}
	reason := strings.Join(strings.Fields(string(body)), " ")
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not "+good+": %s: %s", response.Status, reason)
	}
	fmt.Fprintln(stdout, good)
	return nil
}

// parseAdminDial is parseDial for the admin listener.
func parseAdminDial(text string) (string, error) {
	if text == "off" {
		return "", errors.New("the server's admin listener is needed, and it is off")
	}
	return parseDial(text)
}

// parseDial turns an address to listen on into one to call: everywhere means
// here.
func parseDial(text string) (string, error) {
	if _, err := parseListen(text); err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", err
	}
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	if port == "0" {
		return "", errors.New("the port that the server took is needed")
	}
	return net.JoinHostPort(host, port), nil
}
