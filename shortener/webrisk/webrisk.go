// Package webrisk asks Google's Web Risk about destinations, by its Lookup API
// (https://cloud.google.com/web-risk/docs/lookup-api).
//
// It promises that one call of [Client.Check] sends one request at most, and that its
// error says whether that may have been billed. It counts and remembers nothing: that
// is package shortener's, and the same for every such service.
package webrisk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
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

const (
	maxAnswer = 64 << 10 // bytes of a body, and of headers; an answer has some hundred

	usualHold   = 5 * time.Minute // of a verdict whose answer does not say how long it holds
	longestHold = time.Hour       // of a safe verdict

	usualPause   = 30 * time.Second // after a 429 that asks for none
	longestPause = time.Hour
)

// Config holds what a [Client] is made of.
type Config struct {
	URL *url.URL
	Key string // of Google's API
	Now func() time.Time
}

// Client implements [shortener.Reputation]. Its methods may be called at once.
type Client struct {
	config Config
	http   *http.Client
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
		DisableCompression:     true, // the bound on a body is on what was sent
		MaxResponseHeaderBytes: maxAnswer,
	}
	transport.Protocols.SetHTTP1(true)
	return &Client{c, &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
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
	response, err := c.http.Do(request)
	if err != nil {
		// Its message would show the address, in which the key is.
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		if sent.Load() {
			return failed(shortener.CheckUnanswered, err)
		}
		return failed(shortener.CheckUnsent, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return c.refused(response)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return failed(shortener.CheckUnanswered, err)
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

// pause reads a Retry-After (RFC 9110, section 10.2.3).
func (c *Client) pause(text string) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 63); err == nil {
		return time.Duration(min(seconds, uint64(longestPause/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(c.config.Now())), longestPause)
	}
	return usualPause
}

// read reads the body of a 200: {} or {"threat":{…}}. Anything else is refused,
// since whoever put it there may not be Google: a portal that wants a sign-in, or a
// proxy with an error page.
func (c *Client) read(body []byte, h http.Header) (shortener.Verdict, error) {
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(body, &answer); err != nil {
		return shortener.Verdict{}, err
	}
	raw, found := answer["threat"]
	safe := shortener.Verdict{Until: c.config.Now().Add(freshness(h))}
	switch {
	case answer == nil:
		return shortener.Verdict{}, errors.New("the answer is null")
	case len(answer) == 0:
		return safe, nil
	case !found || len(answer) > 1:
		return shortener.Verdict{}, errors.New("the answer has members that are not known")
	}
	var threat *struct {
		ThreatTypes []string  `json:"threatTypes"`
		ExpireTime  time.Time `json:"expireTime"`
	}
	if err := json.Unmarshal(raw, &threat); err != nil {
		return shortener.Verdict{}, err
	}
	switch {
	case threat == nil:
		return shortener.Verdict{}, errors.New("the threat is null")
	case len(threat.ThreatTypes) == 0: // which may be, by the documentation
		return safe, nil
	}
	verdict := shortener.Verdict{Dangerous: true, Until: threat.ExpireTime}
	if verdict.Until.IsZero() {
		verdict.Until = c.config.Now().Add(usualHold)
	}
	return verdict, nil
}

// freshness is how long an answer may be used again by its Cache-Control (RFC 9111,
// section 5.2.2).
func freshness(h http.Header) time.Duration {
	hold := usualHold
	for directive := range strings.SplitSeq(strings.ToLower(strings.Join(h.Values("Cache-Control"), ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch name {
		case "no-store", "no-cache":
			return 0
		case "max-age":
			if seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 63); err == nil {
				hold = time.Duration(min(seconds, uint64(longestHold/time.Second))) * time.Second
			}
		}
	}
	return hold
}
