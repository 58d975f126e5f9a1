package webrisk_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
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
		"safe for a while":         {webrisktest.SafeFor(40), shortener.Verdict{Until: noon.Add(40 * time.Second)}},
		"safe for an hour at most": {webrisktest.SafeFor(86_400), shortener.Verdict{Until: noon.Add(time.Hour)}},
		"safe for long, of which an hour is left": {kept("max-age=86400", "Age", "83000"), shortener.Verdict{Until: noon.Add(3400 * time.Second)}},
		"safe for longer than all":                {kept("max-age=99999999999999999999"), shortener.Verdict{Until: noon.Add(time.Hour)}},
		"kept elsewhere for a part":               {kept("max-age=60", "Age", "45"), shortener.Verdict{Until: noon.Add(15 * time.Second)}},
		"kept elsewhere for all of it":            {kept("max-age=60", "Age", "61"), shortener.Verdict{Until: noon}},
		"kept elsewhere for longer than all":      {kept("max-age=60", "Age", "99999999999999999999"), shortener.Verdict{Until: noon}},
		"kept elsewhere by many":                  {kept("max-age=60", slices.Repeat([]string{"Age", "999999999"}, 20)...), shortener.Verdict{Until: noon}},
		"kept elsewhere, with no time":            {kept("", "Age", "60"), shortener.Verdict{Until: noon.Add(4 * time.Minute)}},
		"kept elsewhere for no number":            {kept("max-age=60", "Age", "soon"), shortener.Verdict{Until: noon}},
		"two times":                               {kept("max-age=60, max-age=7"), shortener.Verdict{Until: noon.Add(7 * time.Second)}},
		"a negative time":                         {kept("max-age=-1"), shortener.Verdict{Until: noon}},
		"no time at all":                          {kept("max-age"), shortener.Verdict{Until: noon}},
		"not to be kept":                          {kept("no-store, max-age=60"), shortener.Verdict{Until: noon}},
		"not to be used again":                    {kept("no-cache"), shortener.Verdict{Until: noon}},
		"a time that is no number":                {kept("max-age=soon"), shortener.Verdict{Until: noon}},
		"a quoted time":                           {kept(`private, MAX-AGE="7"`), shortener.Verdict{Until: noon.Add(7 * time.Second)}},
		"dangerous":                               {webrisktest.Dangerous(later), shortener.Verdict{Dangerous: true, Until: later}},
		"dangerous until next year":               {webrisktest.Dangerous(noon.AddDate(1, 0, 0)), shortener.Verdict{Dangerous: true, Until: noon.Add(24 * time.Hour)}},
		"dangerous, with an end that is no time":  {webrisktest.Body(`{"threat":{"threatTypes":["MALWARE"],"expireTime":"soon"}}`), shortener.Verdict{Dangerous: true, Until: noon.Add(5 * time.Minute)}},
		"dangerous, with no end":                  {webrisktest.Body(`{"threat":{"threatTypes":["MALWARE","NEW"],"new":1}}`), shortener.Verdict{Dangerous: true, Until: noon.Add(5 * time.Minute)}},
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

// kept is safe with a Cache-Control and other headers, each after its name.
func kept(control string, header ...string) webrisktest.Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", control)
		for i := 0; i < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
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
	elsewhere := func(text string) func(*testing.T) *url.URL {
		return func(t *testing.T) *url.URL { return address(t, text) }
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
		"a threat of no list":           {always(webrisktest.Body(`{"threat":{}}`)), unreadable, 0, patience},
		"a threat of lists of no name":  {always(webrisktest.Body(`{"threat":{"threatTypes":[]}}`)), unreadable, 0, patience},
		"a threat of something else":    {always(webrisktest.Body(`{"threat":{"foo":1}}`)), unreadable, 0, patience},
		"a threat in other words":       {always(webrisktest.Body(`{"threat":{"threat_types":["MALWARE"]}}`)), unreadable, 0, patience},
		"two threats":                   {always(webrisktest.Body(`{"threat":{"threatTypes":["MALWARE"]},"threat":{"threatTypes":[]}}`)), unreadable, 0, patience},
		"two lists of a threat":         {always(webrisktest.Body(`{"threat":{"threatTypes":[],"threatTypes":["MALWARE"]}}`)), unreadable, 0, patience},
		"a threat in capitals":          {always(webrisktest.Body(`{"THREAT":{"threatTypes":["MALWARE"]}}`)), unreadable, 0, patience},
		"a long answer":                 {always(webrisktest.Body("{" + strings.Repeat(" ", 64<<10) + "}")), unreadable, 0, patience},
		"no content":                    {status(204), unreadable, 0, patience},
		"silence":                       {server(func(s *webrisktest.Server) webrisktest.Answer { return s.Silent }), unanswered, 0, impatience},
		"an answer that halts":          {server(func(s *webrisktest.Server) webrisktest.Answer { return s.Halting }), unanswered, 0, impatience},
		"an answer that drips":          {server(func(s *webrisktest.Server) webrisktest.Answer { return s.Dripping }), unanswered, 0, impatience},
		"cut before the answer":         {always(webrisktest.Cut("")), unanswered, 0, patience},
		"cut in the headers":            {always(webrisktest.Cut("HTTP/1.1 200 OK\r\nContent-Le")), unanswered, 0, patience},
		"cut in the body":               {always(webrisktest.Cut("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}")), unanswered, 0, patience},
		"no HTTP":                       {always(webrisktest.Cut("SSH-2.0-OpenSSH_9.9\r\n")), unanswered, 0, patience},
		"endless headers":               {always(webrisktest.Cut("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 80<<10) + "\r\nContent-Length: 2\r\n\r\n{}")), unanswered, 0, patience},
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
		"too many, for longer than all": {status(429, "Retry-After", "99999999999999999999"), throttled, time.Hour, patience},
		"too many, for a week":          {status(429, "Retry-After", "604800"), throttled, time.Hour, patience},
		"too many, until next year":     {status(429, "Retry-After", "Mon, 29 Nov 2027 12:00:00 GMT"), throttled, time.Hour, patience},
		"an error":                      {status(500), failed, 0, patience},
		"unavailable":                   {status(503), failed, 0, patience},
		"nobody listens":                {func(t *testing.T) *url.URL { return webrisktest.Nowhere(t) }, unsent, 0, patience},
		"echo, no HTTP":                 {always(webrisktest.Cut("%s\r\n")), unanswered, 0, patience},
		"echo in the status":            {always(webrisktest.Cut("HTTP/1.1 %s\r\n\r\n")), unanswered, 0, patience},
		"echo in the version":           {always(webrisktest.Cut("HTTP/%s 200 OK\r\n\r\n")), unanswered, 0, patience},
		"echo beside the status":        {always(webrisktest.Cut("HTTP/1.1 500 %s\r\n\r\n")), failed, 0, patience},
		"echo in a header":              {always(webrisktest.Cut("HTTP/1.1 200 OK\r\n%s\r\n\r\n{}")), unanswered, 0, patience},
		"echo as a length":              {always(webrisktest.Cut("HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n{}")), unanswered, 0, patience},
		"echo as an encoding":           {always(webrisktest.Cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: %s\r\n\r\n{}")), unanswered, 0, patience},
		"echo as a chunk":               {always(webrisktest.Cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n")), unanswered, 0, patience},
		"echo as a redirect":            {always(webrisktest.Cut("HTTP/1.1 302 Found\r\nLocation: http://[%s\r\n\r\n")), rejected, 0, patience},
		"echo as a pause":               {always(webrisktest.Cut("HTTP/1.1 429 No\r\nRetry-After: %s\r\n\r\n")), throttled, 30 * time.Second, patience},
		"echo in the body":              {always(webrisktest.Cut("HTTP/1.1 200 OK\r\n\r\n%s")), unreadable, 0, patience},
		"echo as a name":                {always(webrisktest.Cut("HTTP/1.1 200 OK\r\n\r\n{\"%s\":1}")), unreadable, 0, patience},
		"echo as a list":                {always(webrisktest.Cut("HTTP/1.1 200 OK\r\n\r\n{\"threat\":{\"threatTypes\":\"%s\"}}")), unreadable, 0, patience},
		"no such host":                  {elsewhere("https://" + strings.Repeat("a", 64) + ".invalid/"), unsent, 0, patience},
		"no TLS":                        {plainAsTLS, unsent, 0, patience},
		"a certificate of nobody's":     {untrusted, unsent, 0, patience},
		"no answer to TLS":              {silentTLS, unsent, 0, impatience},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := webrisk.New(webrisk.Config{URL: row.address(t), Key: webrisktest.Key, Now: atNoon})
			_, err := client.Check(within(t, row.wait), "https://example.org/secret")
			failed, ok := errors.AsType[*shortener.CheckError](err)
			if !ok || failed.Outcome != row.want || failed.Pause != row.pause {
				t.Fatalf("%v, want the outcome %s with a pause of %v", err, row.want, row.pause)
			}
			if !words[err.Error()] {
				t.Errorf("%q is in no list of what may be said: it may tell the key or the destination", err)
			}
		})
	}
}

// words are all that an error may say. None of it comes from the other side.
var words = map[string]bool{
	"unreadable: the answer was no verdict":                         true,
	"unreadable: the answer had a threat of no type":                true,
	"unreadable: the answer has more than 65536 bytes":              true,
	"unreadable: the answer is 204 No Content":                      true,
	"unanswered: it took too long":                                  true,
	"unanswered: the connection was closed before the whole answer": true,
	"unanswered: the answer was no HTTP":                            true,
	"unanswered: the answer is 502 Bad Gateway":                     true,
	"unanswered: the answer is 504 Gateway Timeout":                 true,
	"rejected: the answer is 302 Found":                             true,
	"rejected: the answer is 304 Not Modified":                      true,
	"rejected: the answer is 400 Bad Request":                       true,
	"rejected: the answer is 403 Forbidden":                         true,
	"rejected: the answer is 404 Not Found":                         true,
	"throttled: the answer is 429 Too Many Requests":                true,
	"failed: the answer is 500 Internal Server Error":               true,
	"failed: the answer is 503 Service Unavailable":                 true,
	"unsent: the connection was refused":                            true,
	"unsent: the name of the host was not found":                    true,
	"unsent: there was no TLS":                                      true,
	"unsent: the certificate of the host was not trusted":           true,
	"unsent: there was no connection":                               true,
	"unsent: it took too long":                                      true,
}

// plainAsTLS is a server that speaks no TLS where it should.
func plainAsTLS(t *testing.T) *url.URL {
	address := *webrisktest.Start(t).URL
	address.Scheme = "https"
	return &address
}

// untrusted is a server with a certificate that nobody has signed.
func untrusted(t *testing.T) *url.URL {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return address(t, server.URL)
}

// silentTLS is a server that takes connections and says nothing.
func silentTLS(t *testing.T) *url.URL {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return address(t, "https://"+l.Addr().String())
}

func address(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
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
