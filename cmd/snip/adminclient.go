package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// adminTime bounds an operator's request, some of which look at every link.
const adminTime = 10 * time.Minute

// adminClient talks to a running server as its operator.
type adminClient struct {
	url   string // without a slash at the end
	token string
	http  http.Client
}

// newAdminClient reads the settings that say where the server is; the others are
// the server's to judge.
func newAdminClient(given settings) (*adminClient, error) {
	r := reader{given: given}
	address := read(&r, "admin-listen", parseAdminDial)
	store := read(&r, "store", parseStore)
	token := read(&r, "admin-token", parseAdminToken)
	if len(r.problems) > 0 {
		return nil, &settingsError{r.problems}
	}
	token, err := readAdminToken(token, store)
	if err != nil {
		return nil, err
	}
	return &adminClient{
		url:   "http://" + address,
		token: token,
		// Not the default client, as in health.
		http: http.Client{
			Transport:     &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// call sends a request with a body in JSON, or none where that is nil, and decodes
// the answer, or drops it where nobody wants it.
func (c *adminClient) call(ctx context.Context, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, adminTime)
	defer cancel()
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("no answer from the server at %s: %w", c.url, err)
	}
	defer response.Body.Close()
	received, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("the answer from %s broke off: %w", c.url, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		var problem struct {
			Detail string `json:"detail"`
		}
		if json.Unmarshal(received, &problem) != nil || problem.Detail == "" {
			return fmt.Errorf("%s answered %s: is it the server's --admin-listen?", c.url, response.Status)
		}
		return errors.New(problem.Detail)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(received, answer)
}
