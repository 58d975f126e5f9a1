package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"snip/shortener"
)

// webhookTime bounds one attempt.
const webhookTime = 10 * time.Second

// newWebhook returns what posts a notice to an address. The text stands under the
// names that Slack (text), Discord (content) and ntfy (message) look for; ntfy's
// topic is what follows a # in the address.
func newWebhook(address *url.URL) func(context.Context, shortener.Notice) error {
	target := *address
	topic := target.Fragment
	target.Fragment = ""
	client := http.Client{
		Timeout:       webhookTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, n shortener.Notice) error {
		body, err := json.Marshal(struct {
			shortener.Notice
			Content string `json:"content"`
			Message string `json:"message"`
			Title   string `json:"title"`
			Topic   string `json:"topic,omitempty"`
		}{n, n.Text, n.Text, "Snip", topic})
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(body))
		if err != nil {
			return errors.New("the address cannot be used")
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			// Its message would show the address, which is a secret.
			if inner, ok := errors.AsType[*url.Error](err); ok {
				err = inner.Err
			}
			return fmt.Errorf("no answer: %w", err)
		}
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection can be used again
		if response.StatusCode/100 != 2 {
			return fmt.Errorf("it answered %s", response.Status)
		}
		return nil
	}
}

// parseWebhook returns nil where there is none.
func parseWebhook(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.ContainsAny(text, " ") {
		return nil, errors.New("an http or https URL with a host is needed")
	}
	return u, nil
}
