package webrisk

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"snip/shortener"
)

const (
	usualHold     = 5 * time.Minute // of a verdict whose answer does not say how long it holds
	longestSafe   = time.Hour
	longestDanger = 24 * time.Hour

	usualPause   = 30 * time.Second // after a 429 that asks for none
	longestPause = time.Hour
)

var (
	errNoVerdict = errors.New("the answer was no verdict")
	errNoTypes   = errors.New("the answer had a threat of no type")
)

// read reads the body of a 200: {} or {"threat":{"threatTypes":[…],…}}. Anything else
// is refused, since whoever put it there may not be Google: a portal that wants a
// sign-in, or a proxy with an error page. Names that come twice are no verdict either:
// readers of JSON disagree about which one counts.
func (c *Client) read(body []byte, h http.Header) (shortener.Verdict, error) {
	var answer *struct {
		Threat jsontext.Value `json:"threat"`
	}
	if err := json.Unmarshal(body, &answer, json.RejectUnknownMembers(true)); err != nil || answer == nil {
		return shortener.Verdict{}, errNoVerdict
	}
	now := c.config.Now()
	if answer.Threat == nil {
		return shortener.Verdict{Until: now.Add(freshness(h))}, nil
	}
	var threat struct {
		Types      []string       `json:"threatTypes"`
		ExpireTime jsontext.Value `json:"expireTime"`
	}
	if err := json.Unmarshal(answer.Threat, &threat); err != nil {
		return shortener.Verdict{}, errNoVerdict
	}
	if len(threat.Types) == 0 {
		return shortener.Verdict{}, errNoTypes
	}
	// Dangerous it is, whatever its end is.
	until := now.Add(usualHold)
	var end time.Time
	if err := json.Unmarshal(threat.ExpireTime, &end); err == nil && !end.IsZero() {
		until = end
	}
	if latest := now.Add(longestDanger); until.After(latest) {
		until = latest
	}
	return shortener.Verdict{Dangerous: true, Until: until}, nil
}

// freshness is how long a safe answer may be used again by its Cache-Control, of which
// it has spent its Age (RFC 9111, sections 4.2 and 5.2.2). What cannot be read is no
// permission.
func freshness(h http.Header) time.Duration {
	hold, said := usualHold, false
	for directive := range strings.SplitSeq(strings.ToLower(strings.Join(h.Values("Cache-Control"), ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch name {
		case "no-store", "no-cache":
			return 0
		case "max-age":
			age, ok := seconds(strings.Trim(value, `"`))
			if !ok {
				return 0
			}
			if said {
				age = min(age, hold)
			}
			hold, said = age, true
		}
	}
	for _, text := range h.Values("Age") {
		age, ok := seconds(text)
		if !ok {
			return 0
		}
		hold = max(0, hold-age)
	}
	return min(hold, longestSafe)
}

// pause reads a Retry-After (RFC 9110, section 10.2.3).
func (c *Client) pause(text string) time.Duration {
	pause := usualPause
	if wait, ok := seconds(text); ok {
		pause = wait
	} else if at, err := http.ParseTime(text); err == nil {
		pause = max(0, at.Sub(c.config.Now()))
	}
	return min(pause, longestPause)
}

// mostSeconds is more than any bound here. What is more yet is taken for as much.
const mostSeconds = 1_000_000_000

// seconds reads a number of seconds: digits, however many (RFC 9111, section 1.2.2).
func seconds(text string) (time.Duration, bool) {
	n := time.Duration(0)
	for _, digit := range []byte(text) {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		n = min(n*10+time.Duration(digit-'0'), mostSeconds)
	}
	return n * time.Second, text != ""
}
