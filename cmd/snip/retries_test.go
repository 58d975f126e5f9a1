package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// keyed is a demand with an Idempotency-Key.
type keyed struct{ key, body string }

// send sends the demand and waits for no answer.
func (k keyed) send(addr string) (net.Conn, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "POST /api/links HTTP/1.1\r\nHost: s\r\nContent-Type: application/json\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s", k.key, len(k.body), k.body)
	return conn, err
}

// ask sends it as the next try, and returns the answer.
func (k keyed) ask(t *testing.T, p *process, status int) []byte {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, p.url+"/api/links", strings.NewReader(k.body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", k.key)
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		t.Fatalf("%s: %d %s, %v; want %d", k.key, response.StatusCode, answer, err, status)
	}
	return answer
}

// TestAnswersOutliveTheProcess kills the program after it has made links and before
// anybody has read its answers. Who asks again is given them, also when the client has
// nothing left and when nothing can be stored.
func TestAnswersOutliveTheProcess(t *testing.T) {
	t.Parallel()
	needStrace(t)
	withinOneDay(t, func() error {
		dir := t.TempDir()
		settings := []string{"--throttle-every=0", "--quota-client=52"}
		demands := []keyed{
			{"one-link-of-a-test", `{"url":"https://example.org/"}`},
			{"a-batch-of-a-test", "[" + strings.Repeat(`{"url":"https://example.org/"},`, 49) + `{"url":"https://example.org/","slug":"chosen"}]`},
		}
		p := start(t, dir, settings...)
		for _, demand := range demands {
			conn, err := demand.send(p.addr)
			if err != nil {
				return err
			}
			defer conn.Close()
		}
		// The commits show in the allowance, and the connections are not read.
		for deadline := time.Now().Add(patience); ; {
			allowance := mustAsk(t, http.StatusOK, "GET", p.url+"/api/quota", "", "")
			if strings.Contains(allowance.body, `"used":51,`) {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("nothing is made: %s", allowance.body)
			}
		}
		p.kill()

		p = start(t, dir, settings...)
		create(t, p, "https://example.org/the-last-one")
		var wrong error
		first := make([][]byte, len(demands))
		for i, demand := range demands {
			first[i] = demand.ask(t, p, http.StatusCreated)
		}
		end := inject(t, p, "pwrite64:error=EROFS")
		for i, demand := range demands {
			if again := demand.ask(t, p, http.StatusCreated); !bytes.Equal(again, first[i]) {
				wrong = errors.Join(wrong, fmt.Errorf("%s: %s, and again %s", demand.key, first[i], again))
			}
			keyed{demand.key, `{"url":"https://example.org/other"}`}.ask(t, p, []int{http.StatusUnprocessableEntity, http.StatusTooManyRequests}[i])
		}
		end()
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		content := audit(t, filepath.Join(dir, "snip.db"))
		if len(content.links) != 52 || !bytes.Contains(first[1], []byte(`"slug":"chosen"`)) {
			wrong = errors.Join(wrong, fmt.Errorf("%d links", len(content.links)))
		}
		return wrong
	})
}
