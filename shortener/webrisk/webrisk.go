// Package webrisk asks Google's Web Risk about destinations, by its Lookup API
// (https://cloud.google.com/web-risk/docs/lookup-api).
//
// It promises that one call of [Client.Check] sends one request at most, and that its
// error says whether that may have been billed. It counts and remembers nothing: that
// is package shortener's, and the same for every such service.
package webrisk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"snip/shortener"
)

// DefaultURL is where Google listens.
const DefaultURL = "https://webrisk.googleapis.com/v1/uris:search"

// The lists of what is dangerous. A page of the fourth, of social engineering with
// more coverage and less certainty, would be refused too often.
var lists = []string{"MALWARE", "SOCIAL_ENGINEERING", "UNWANTED_SOFTWARE"}

// maxAnswer bounds a body, and headers, in bytes; an answer has some hundred.
const maxAnswer = 64 << 10

// Config holds what a [Client] is made of.
type Config struct {
	URL *url.URL
	Key string // of Google's API
	Now func() time.Time
}

// Client implements [shortener.Reputation]. Its methods may be called at once.
type Client struct {
	config    Config
	transport *http.Transport
}

var _ shortener.Reputation = (*Client)(nil)

// New returns a client.
func New(c Config) *Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		// A kept connection may have been closed by the server meanwhile, and then
		// net/http sends the request a second time by itself; HTTP/2 may as well. So each
		// call has a connection of its own.
		DisableKeepAlives:      true,
		Protocols:              new(http.Protocols),
		MaxResponseHeaderBytes: maxAnswer,
	}
	transport.Protocols.SetHTTP1(true)
	return &Client{c, transport}
}

// Check implements [shortener.Reputation]. What is sent of the destination is what a
// browser would ask for, without what follows a #.
func (c *Client) Check(ctx context.Context, destination string) (shortener.Verdict, error) {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// With a connection the request may be on its way; before, it cannot be.
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.address(destination), nil)
	if err != nil {
		return failed(shortener.CheckUnsent, errors.New("the address cannot be used"))
	}
	// Not http.Client: it reads redirects, and an answer with one that it cannot read is
	// no answer to it.
	response, err := c.transport.RoundTrip(request)
	switch {
	case err != nil && sent.Load():
		return failed(shortener.CheckUnanswered, cause(ctx, err, errNoHTTP))
	case err != nil:
		return failed(shortener.CheckUnsent, cause(ctx, err, errNoConnection))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return c.refused(response)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return failed(shortener.CheckUnanswered, cause(ctx, err, errNoHTTP))
	case len(body) > maxAnswer:
		return failed(shortener.CheckUnreadable, fmt.Errorf("the answer has more than %d bytes", maxAnswer))
	}
	verdict, err := c.read(body, response.Header)
	if err != nil {
		return failed(shortener.CheckUnreadable, err)
	}
	return verdict, nil
}

func failed(outcome shortener.CheckOutcome, err error) (shortener.Verdict, error) {
	return shortener.Verdict{}, &shortener.CheckError{Outcome: outcome, Err: err}
}

func (c *Client) address(destination string) string {
	uri, _, _ := strings.Cut(shortener.Location(destination), "#")
	address := *c.config.URL
	query := address.Query()
	query["threatTypes"] = lists
	query.Set("uri", uri)
	query.Set("key", c.config.Key)
	address.RawQuery = query.Encode()
	return address.String()
}

// refused says what a status other than 200 means.
func (c *Client) refused(r *http.Response) (shortener.Verdict, error) {
	e := &shortener.CheckError{Err: fmt.Errorf("the answer is %d %s", r.StatusCode, http.StatusText(r.StatusCode))}
	switch {
	case r.StatusCode == http.StatusTooManyRequests:
		e.Outcome, e.Pause = shortener.CheckThrottled, c.pause(r.Header.Get("Retry-After"))
	case r.StatusCode == http.StatusBadGateway || r.StatusCode == http.StatusGatewayTimeout:
		// Something in between has lost the answer. The request may have been done.
		e.Outcome = shortener.CheckUnanswered
	case r.StatusCode >= 500:
		e.Outcome = shortener.CheckFailed
	case r.StatusCode >= 300:
		e.Outcome = shortener.CheckRejected
	default: // another success, which says nothing
		e.Outcome = shortener.CheckUnreadable
	}
	return shortener.Verdict{}, e
}
