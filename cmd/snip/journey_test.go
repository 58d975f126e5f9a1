package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/boltstore"
)

// answer is what a test looks at of a response.
type answer struct {
	status     int
	location   string
	retryAfter string
	body       string
}

// ask sends one request and follows no redirect. It may be called from any
// goroutine; what goes wrong on the way is the error.
func ask(method, address, contentType, body string) (answer, error) {
	request, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{
		status:     response.StatusCode,
		location:   response.Header.Get("Location"),
		retryAfter: response.Header.Get("Retry-After"),
		body:       string(text),
	}, err
}

func mustAsk(t *testing.T, want int, method, address, contentType, body string) answer {
	t.Helper()
	a, err := ask(method, address, contentType, body)
	if err != nil {
		t.Fatal(err)
	}
	if a.status != want {
		t.Fatalf("%s %s: %d %s, want %d", method, address, a.status, a.body, want)
	}
	return a
}

// create makes a link and returns its path on the server.
func create(t *testing.T, p *process, destination string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"url": destination})
	if err != nil {
		t.Fatal(err)
	}
	made := mustAsk(t, http.StatusCreated, "POST", p.url+"/api/links", "application/json", string(body))
	var link struct {
		ShortURL string `json:"short_url"`
	}
	if err := json.Unmarshal([]byte(made.body), &link); err != nil {
		t.Fatal(err)
	}
	short, err := url.Parse(link.ShortURL)
	if err != nil || short.Path == "" {
		t.Fatalf("short_url %q: %v", link.ShortURL, err)
	}
	return short.Path
}

// A link and the allowance it took outlive the process, however that ends.
func TestLinksAndAllowanceOutliveTheProcess(t *testing.T) {
	t.Parallel()
	withinOneDay(t, func() error {
		dir := t.TempDir()
		limits := []string{"--throttle-every=0", "--quota-client=3"}
		const destination = "https://example.org/a?b=%2B#c"

		first := start(t, dir, limits...)
		path := create(t, first, destination)
		create(t, first, "https://example.org/second")
		if err := first.stop(); err != nil {
			return fmt.Errorf("SIGTERM: %w", err)
		}

		second := start(t, dir, limits...)
		if got := mustAsk(t, http.StatusFound, "GET", second.url+path, "", ""); got.location != destination {
			return fmt.Errorf("it leads to %q, want %q", got.location, destination)
		}
		create(t, second, "https://example.org/third")
		second.kill()

		third := start(t, dir, limits...)
		mustAsk(t, http.StatusFound, "GET", third.url+path, "", "")
		refused, err := ask("POST", third.url+"/api/links",
			"application/x-www-form-urlencoded", "url=https%3A%2F%2Fexample.org%2Ffourth")
		if err != nil {
			return err
		}
		if refused.status != http.StatusTooManyRequests ||
			!strings.Contains(refused.body, "rate_limited") || !strings.Contains(refused.body, "3 links") {
			return fmt.Errorf("the fourth link of a day was answered with %d %s", refused.status, refused.body)
		}
		if err := third.stop(); err != nil {
			return err
		}
		if log := third.log(); strings.Count(log, "127.0.0.1") != 2 { // its own addresses, as it starts
			return fmt.Errorf("the log names a client:\n%s", log)
		}
		return nil
	})
}

// halfRequest sends a creation up to the first byte of its body, and returns when
// the handler has begun to read it. Whoever calls writes the rest, and closes.
func halfRequest(t *testing.T, p *process) (*io.PipeWriter, <-chan answer) {
	t.Helper()
	body, typist := io.Pipe()
	t.Cleanup(func() { typist.Close() })
	request, err := http.NewRequest("POST", p.url+"/api/links", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	// The server sends for the body when the handler reads it, and not before.
	request.Header.Set("Expect", "100-continue")
	answers := make(chan answer, 1)
	go func() {
		defer close(answers)
		response, err := (&http.Transport{ExpectContinueTimeout: patience}).RoundTrip(request)
		if err != nil {
			return
		}
		defer response.Body.Close()
		answers <- answer{status: response.StatusCode}
	}()
	if _, err := typist.Write([]byte("{")); err != nil {
		t.Fatalf("the body was not sent for: %v", err)
	}
	return typist, answers
}

// The first signal lets a request under way finish.
func TestSignalDrains(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	typist, answers := halfRequest(t, p)
	p.signal(syscall.SIGTERM)
	if _, err := p.await("stopping"); err != nil {
		t.Fatal(err)
	}
	if _, err := typist.Write([]byte(`"url":"https://example.org/"}`)); err != nil {
		t.Fatal(err)
	}
	typist.Close()
	if got := <-answers; got.status != http.StatusCreated {
		t.Errorf("the request under way was answered with %d", got.status)
	}
	if err := p.wait(); err != nil {
		t.Error(err)
	}
}

// The second signal ends the process at once, and not as if it had drained.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	halfRequest(t, p)
	p.signal(syscall.SIGTERM)
	if _, err := p.await("stopping"); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGTERM)
	err := p.wait()
	end, _ := errors.AsType[*exec.ExitError](err)
	if end == nil || end.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v:\n%s", err, p.log())
	}
}

// A folder that belongs to somebody else is one line with the path and the
// remedy, and no stack.
func TestFolderOfSomebodyElse(t *testing.T) {
	t.Parallel()
	// Beside the program, where an unprivileged user can look but not write.
	dir, err := os.MkdirTemp(binaryDir, "folder-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	snip := exec.Command(binary, "--listen=127.0.0.1:0", "--store="+filepath.Join(dir, "snip.db"))
	if os.Getuid() == 0 {
		snip.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	}
	out, err := snip.CombinedOutput()
	if err == nil || snip.ProcessState.ExitCode() != exitFailure {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if strings.HasPrefix(line, "{") { // the log
			continue
		}
		if !strings.HasPrefix(line, "snip: ") || !strings.Contains(line, dir) || !strings.Contains(line, "user") {
			t.Errorf("said %q", line)
		}
	}
	if !strings.Contains(string(out), "snip: ") {
		t.Errorf("said nothing: %s", out)
	}
}

// A clock that has lost its time stops creations until the operator says that
// it is right; redirects go on all the while.
func TestClockAccept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const day = "2999-12-31"
	store, err := boltstore.Open(filepath.Join(dir, "snip.db"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.EnsureSecret(t.Context(), day); err != nil {
		t.Fatal(err)
	}
	err = store.Create(t.Context(), shortener.Creation{
		Links: []shortener.Link{{Slug: "later", Destination: "https://example.org/", Day: day}},
		Day:   day,
		Charges: []quota.Charge{
			{Counter: quota.Counter{Level: quota.LevelService, Period: day}, Cost: 1, Max: 10},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	p := start(t, dir)
	operate := func() string {
		t.Helper()
		out, err := exec.Command(binary, "clock", "accept", "--admin-listen", p.admin, "--store", filepath.Join(dir, "snip.db")).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return string(out)
	}
	mustAsk(t, http.StatusServiceUnavailable, "GET", p.url+"/readyz", "", "")
	mustAsk(t, http.StatusFound, "GET", p.url+"/later", "", "")
	mustAsk(t, http.StatusServiceUnavailable, "POST", p.url+"/api/links", "application/json", `{"url":"https://example.org/"}`)
	if out := operate(); !strings.Contains(out, "accepted, although links of 2999-12-31 were counted") {
		t.Errorf("it says %q", out)
	}
	mustAsk(t, http.StatusOK, "GET", p.url+"/readyz", "", "")
	mustAsk(t, http.StatusCreated, "POST", p.url+"/api/links", "application/json", `{"url":"https://example.org/"}`)
	mustAsk(t, http.StatusFound, "GET", p.url+"/later", "", "")
	if out := operate(); !strings.Contains(out, "no later day was counted") {
		t.Errorf("it says %q", out)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	p = start(t, dir)
	mustAsk(t, http.StatusOK, "GET", p.url+"/readyz", "", "")
}
