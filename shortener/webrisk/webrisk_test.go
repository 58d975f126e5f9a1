package webrisk_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"snip/shortener"
	"snip/shortener/webrisk"
	"snip/shortener/webrisk/webrisktest"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

// patience is far longer than any answer of the server's takes, and impatience what
// an answer is waited for that does not come.
const (
	patience   = time.Minute
	impatience = 100 * time.Millisecond
)

// TestVerdicts reads every answer that is one.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	later := noon.Add(90 * time.Minute)
	for name, row := range map[string]struct {
		answer webrisktest.Answer
		want   shortener.Verdict
	}{
		"safe":                     {webrisktest.Safe, shortener.Verdict{Until: noon.Add(5 * time.Minute)}},
		"safe with blanks":         {webrisktest.Body("{ \n }\n"), shortener.Verdict{Until: noon.Add(5 * time.Minute)}},
		"a threat of no list":      {webrisktest.Body(`{"threat":{}}`), shortener.Verdict{Until: noon.Add(5 * time.Minute)}},
		"safe for a while":         {webrisktest.SafeFor(40), shortener.Verdict{Until: noon.Add(40 * time.Second)}},
		"safe for an hour at most": {webrisktest.SafeFor(86_400), shortener.Verdict{Until: noon.Add(time.Hour)}},
		"not to be kept":           {kept("no-store, max-age=60"), shortener.Verdict{Until: noon}},
		"not to be used again":     {kept("no-cache"), shortener.Verdict{Until: noon}},
		"a time that is no number": {kept("max-age=soon"), shortener.Verdict{Until: noon.Add(5 * time.Minute)}},
		"a quoted time":            {kept(`private, MAX-AGE="7"`), shortener.Verdict{Until: noon.Add(7 * time.Second)}},
		"dangerous":                {webrisktest.Dangerous(later), shortener.Verdict{Dangerous: true, Until: later}},
		"dangerous, with no end":   {webrisktest.Body(`{"threat":{"threatTypes":["MALWARE","NEW"],"new":1}}`), shortener.Verdict{Dangerous: true, Until: noon.Add(5 * time.Minute)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := webrisktest.Start(t)
			server.Set(row.answer)
			got, err := server.Client(atNoon).Check(within(t, patience), "https://example.org/")
			if diff := cmp.Diff(row.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func kept(control string) webrisktest.Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", control)
		webrisktest.Safe(w, r)
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestOutcomes meets every end of a call that is no verdict.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	server := func(answer func(*webrisktest.Server) webrisktest.Answer) func(*testing.T) *url.URL {
		return func(t *testing.T) *url.URL {
			s := webrisktest.Start(t)
			s.Set(answer(s))
			return s.URL
		}
	}
	always := func(answer webrisktest.Answer) func(*testing.T) *url.URL {
		return server(func(*webrisktest.Server) webrisktest.Answer { return answer })
	}
	status := func(status int, header ...string) func(*testing.T) *url.URL {
		return always(webrisktest.Status(status, header...))
	}
	elsewhere := func(address string) func(*testing.T) *url.URL {
		return func(t *testing.T) *url.URL {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			return u
		}
	}
	const (
		unreadable, unanswered = shortener.CheckUnreadable, shortener.CheckUnanswered
		rejected, throttled    = shortener.CheckRejected, shortener.CheckThrottled
		failed, unsent         = shortener.CheckFailed, shortener.CheckUnsent
	)
	for name, row := range map[string]struct {
		address func(*testing.T) *url.URL
		want    shortener.CheckOutcome
		pause   time.Duration
		wait    time.Duration
	}{
		"nothing in a 200":              {always(webrisktest.Body("")), unreadable, 0, patience},
		"no JSON in a 200":              {always(webrisktest.Body("<html>sign in</html>")), unreadable, 0, patience},
		"no object":                     {always(webrisktest.Body("[]")), unreadable, 0, patience},
		"null":                          {always(webrisktest.Body("null")), unreadable, 0, patience},
		"two values":                    {always(webrisktest.Body("{}{}")), unreadable, 0, patience},
		"an error in a 200":             {always(webrisktest.Body(`{"error":{"code":500}}`)), unreadable, 0, patience},
		"a threat and something else":   {always(webrisktest.Body(`{"threat":{},"error":{}}`)), unreadable, 0, patience},
		"a threat that is null":         {always(webrisktest.Body(`{"threat":null}`)), unreadable, 0, patience},
		"a threat that is a word":       {always(webrisktest.Body(`{"threat":"MALWARE"}`)), unreadable, 0, patience},
		"an end that is no time":        {always(webrisktest.Body(`{"threat":{"threatTypes":["MALWARE"],"expireTime":"soon"}}`)), unreadable, 0, patience},
		"a long answer":                 {always(webrisktest.Body("{" + strings.Repeat(" ", 64<<10) + "}")), unreadable, 0, patience},
		"no content":                    {status(204), unreadable, 0, patience},
		"silence":                       {server(func(s *webrisktest.Server) webrisktest.Answer { return s.Silent }), unanswered, 0, impatience},
		"an answer that halts":          {server(func(s *webrisktest.Server) webrisktest.Answer { return s.Halting }), unanswered, 0, impatience},
		"an answer that drips":          {server(func(s *webrisktest.Server) webrisktest.Answer { return s.Dripping }), unanswered, 0, impatience},
		"cut before the answer":         {always(webrisktest.Cut("")), unanswered, 0, patience},
		"cut in the headers":            {always(webrisktest.Cut("HTTP/1.1 200 OK\r\nContent-Le")), unanswered, 0, patience},
		"cut in the body":               {always(webrisktest.Cut("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}")), unanswered, 0, patience},
		"no HTTP":                       {always(webrisktest.Cut("SSH-2.0-OpenSSH_9.9\r\n")), unanswered, 0, patience},
		"endless headers":               {always(webrisktest.Cut("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 80<<10))), unanswered, 0, patience},
		"a gateway that lost it":        {status(502), unanswered, 0, patience},
		"a gateway that gave up":        {status(504), unanswered, 0, patience},
		"a redirect":                    {status(302, "Location", "/elsewhere"), rejected, 0, patience},
		"no change":                     {status(304), rejected, 0, patience},
		"a bad request":                 {status(400), rejected, 0, patience},
		"a wrong key":                   {status(403), rejected, 0, patience},
		"not there":                     {status(404), rejected, 0, patience},
		"too many, with no time":        {status(429), throttled, 30 * time.Second, patience},
		"too many, for seconds":         {status(429, "Retry-After", "7"), throttled, 7 * time.Second, patience},
		"too many, until an instant":    {status(429, "Retry-After", "Sun, 29 Nov 2026 12:02:00 GMT"), throttled, 2 * time.Minute, patience},
		"too many, until one that was":  {status(429, "Retry-After", "Sun, 29 Nov 2026 11:00:00 GMT"), throttled, 0, patience},
		"too many, for longer than all": {status(429, "Retry-After", "99999999999999999999"), throttled, 30 * time.Second, patience},
		"too many, for a week":          {status(429, "Retry-After", "604800"), throttled, time.Hour, patience},
		"too many, until next year":     {status(429, "Retry-After", "Mon, 29 Nov 2027 12:00:00 GMT"), throttled, time.Hour, patience},
		"an error":                      {status(500), failed, 0, patience},
		"unavailable":                   {status(503), failed, 0, patience},
		"nobody listens":                {func(t *testing.T) *url.URL { return webrisktest.Nowhere(t) }, unsent, 0, patience},
		"no such host":                  {elsewhere("https://" + strings.Repeat("a", 64) + ".invalid/"), unsent, 0, patience},
		"no TLS":                        {plainAsTLS, unsent, 0, patience},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := webrisk.New(webrisk.Config{URL: row.address(t), Key: webrisktest.Key, Now: atNoon})
			_, err := client.Check(within(t, row.wait), "https://example.org/secret")
			failed, ok := errors.AsType[*shortener.CheckError](err)
			if !ok || failed.Outcome != row.want || failed.Pause != row.pause {
				t.Fatalf("%v, want the outcome %s with a pause of %v", err, row.want, row.pause)
			}
			if text := err.Error(); strings.Contains(text, webrisktest.Key) || strings.Contains(text, "secret") {
				t.Errorf("the error tells the key or the destination: %s", text)
			}
		})
	}
}

// plainAsTLS is a server that speaks no TLS where it should.
func plainAsTLS(t *testing.T) *url.URL {
	address := *webrisktest.Start(t).URL
	address.Scheme = "https"
	return &address
}

// TestAskedOnce sees that nothing is sent twice, although a server ends each
// connection as soon as it is used again, or wants the same from elsewhere.
func TestAskedOnce(t *testing.T) {
	t.Parallel()
	server := webrisktest.Start(t)
	client := server.Client(atNoon)
	again := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}
	for i, answer := range []webrisktest.Answer{webrisktest.Safe, webrisktest.Cut(""), again} {
		server.Set(answer)
		_, _ = client.Check(within(t, patience), "https://example.org/")
		if asked := len(server.Asked()); asked != i+1 {
			t.Fatalf("%d requests after %d calls", asked, i+1)
		}
	}
}

// TestWhatIsSent sees what leaves the house.
func TestWhatIsSent(t *testing.T) {
	t.Parallel()
	server := webrisktest.Start(t)
	for _, destination := range []string{
		"https://example.org/a%2Fb?c=d&e=%20f#private", "http://münchen.example/ä?ö=1", "https://example.org/?q=1+1&key=theirs&threatTypes=X",
	} {
		if _, err := server.Client(atNoon).Check(within(t, patience), destination); err != nil {
			t.Errorf("%s: %v", destination, err)
		}
	}
	want := []string{"https://example.org/a%2Fb?c=d&e=%20f", "http://xn--mnchen-3ya.example/%C3%A4?%C3%B6=1", "https://example.org/?q=1+1&key=theirs&threatTypes=X"}
	if got := server.Asked(); !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}
