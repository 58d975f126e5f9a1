package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"snip/web/admin"
)

// adminTime bounds the silence of a server; some requests look at every link.
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
	store := readStore(&r)
	token := readSecret(&r, "admin-token", parseAdminToken)
	if err := needAdminToken(&r, address, store); err != nil {
		r.problems = append(r.problems, err)
	}
	if len(r.problems) > 0 {
		return nil, &settingsError{r.problems}
	}
	token, err := readAdminToken(token, store.file)
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
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
	}
	return c.send(ctx, method, path, sent, answer)
}

// send is call with a body as it is.
func (c *adminClient) send(ctx context.Context, method, path string, body []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, adminTime)
	defer cancel()
	response, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	received, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("the answer from %s broke off: %w", c.url, err)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(received, answer)
}

// do returns an answer that does not refuse.
func (c *adminClient) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("no answer from the server at %s: %w", c.url, err)
	}
	if response.StatusCode < http.StatusMultipleChoices {
		return response, nil
	}
	defer response.Body.Close()
	received, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("the answer from %s broke off: %w", c.url, err)
	}
	var problem struct {
		Detail string `json:"detail"`
	}
	if json.Unmarshal(received, &problem) != nil || problem.Detail == "" {
		return nil, fmt.Errorf("%s answered %s: is it the server's --admin-listen?", c.url, response.Status)
	}
	return nil, errors.New(problem.Detail)
}

// receive copies an answer of any length, and returns an error unless all of it has
// come as it was sent.
func (c *adminClient) receive(ctx context.Context, path string, to io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(adminTime, func() { cancel(fmt.Errorf("nothing came for %v", adminTime)) })
	defer silence.Stop()
	response, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, sum), reads(func(p []byte) (int, error) {
		silence.Reset(adminTime)
		return response.Body.Read(p)
	}))
	if err != nil {
		return fmt.Errorf("the answer from %s broke off: %w", c.url, cmp.Or(context.Cause(ctx), err))
	}
	if digest := response.Trailer.Get(admin.DigestField); digest != admin.Digest(sum.Sum(nil)) {
		return fmt.Errorf("the answer from %s was changed on its way: its digest is %q", c.url, digest)
	}
	return nil
}

// reads is an io.Reader.
type reads func([]byte) (int, error)

func (r reads) Read(p []byte) (int, error) { return r(p) }
