package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRehearsedAttack drains a day as an attacker would, with addresses that rotate
// within an IPv6 /64, a /48 and an IPv4 /24 and then over many networks. Each stops
// where it should, the operator sees it meanwhile and is told each share of the
// budget once, the last hundred still serve newcomers, and one command ends what
// the links were made for.
func TestRehearsedAttack(t *testing.T) {
	t.Parallel()
	withinOneDay(t, func() error {
		var mu sync.Mutex
		var told []string
		arrived := make(chan struct{}, 100)
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var n struct{ ID string }
			body, _ := io.ReadAll(r.Body)
			if err := json.Unmarshal(body, &n); err != nil {
				t.Errorf("%s: %v", body, err)
			}
			_, share, _ := strings.Cut(n.ID, "/")
			mu.Lock()
			defer mu.Unlock()
			told = append(told, share)
			arrived <- struct{}{}
		}))
		defer receiver.Close()
		dir := t.TempDir()
		p := start(t, dir, "--throttle-every=0", "--trusted-proxies=127.0.0.1", "--alert-webhook="+receiver.URL)
		operate := func(args ...string) string {
			t.Helper()
			args = append(args, "--admin-listen", p.admin, "--store", filepath.Join(dir, "snip.db"))
			out, err := exec.Command(binary, args...).CombinedOutput()
			if err != nil {
				t.Fatalf("snip %v: %v: %s", args, err, out)
			}
			return string(out)
		}
		var last string // the slug of the link that was made last
		attack := func(from string) int {
			t.Helper()
			request := must(http.NewRequest(http.MethodPost, p.url+"/api/links", strings.NewReader(`{"url":"https://www.evil.example/login"}`)))
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Accept", "text/plain")
			request.Header.Set("X-Forwarded-For", from)
			response, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode == http.StatusCreated {
				last = strings.TrimSpace(string(body[strings.LastIndexByte(string(body), '/')+1:]))
			} else if response.StatusCode != http.StatusTooManyRequests {
				t.Fatalf("%s: %d %s", from, response.StatusCode, body)
			}
			return response.StatusCode
		}
		drain := func(want int, addresses ...string) {
			t.Helper()
			made := 0
			for _, from := range addresses {
				if attack(from) == http.StatusCreated {
					made++
				}
			}
			if made != want {
				t.Errorf("%d links were made from %s to %s, want %d", made, addresses[0], addresses[len(addresses)-1], want)
			}
		}
		seen := func(contains ...string) {
			t.Helper()
			status := operate("status")
			for _, text := range contains {
				if !strings.Contains(status, text) {
					t.Errorf("no %q in:\n%s", text, status)
				}
			}
		}
		rotate := func(format string, n int) (addresses []string) {
			for i := range n {
				addresses = append(addresses, fmt.Sprintf(format, i))
			}
			return addresses
		}
		drain(50, rotate("2001:db8:1:1::%x", 80)...)
		seen("50 of 1000", "50 created, 30 refused by client")
		drain(200, rotate("2001:db8:1:%x::1", 300)...) // with the /64 before, 250
		seen("250 of 1000", "refused by network")
		drain(250, rotate("192.0.2.%d", 256)...)
		seen("500 of 1000")
		for i := range 8 { // networks, one after the other
			drain(50, slices.Repeat([]string{fmt.Sprintf("198.51.%d.7", i)}, 50)...)
		}
		drain(0, rotate("198.51.%d.8", 8)...) // others in them
		seen("900 of 1000", "refused by service")

		// Who has made a link today is refused, and newcomers are served, one link each.
		if status := attack("192.0.2.9"); status != http.StatusTooManyRequests {
			t.Errorf("an attacker's next link: %d", status)
		}
		for i := range 100 {
			newcomer := fmt.Sprintf("203.%d.113.9", i)
			if status := attack(newcomer); status != http.StatusCreated {
				t.Errorf("newcomer %d: %d", i, status)
			}
			if status := attack(newcomer); status != http.StatusTooManyRequests {
				t.Errorf("newcomer %d's second link: %d", i, status)
			}
		}
		seen("1000 of 1000")
		for range 4 {
			select {
			case <-arrived:
			case <-time.After(patience):
				return fmt.Errorf("only %v were told", told)
			}
		}

		if status := mustVisit(t, p.url+"/"+last); status != http.StatusFound {
			t.Errorf("the last link: %d", status)
		}
		operate("blocks", "add", "evil.example")
		if status := mustVisit(t, p.url+"/"+last); status != http.StatusGone {
			t.Errorf("the last link, with its host blocked: %d", status)
		}
		if err := p.stop(); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"budget/50", "budget/80", "budget/90", "budget/100"}; !slices.Equal(told, want) {
			return fmt.Errorf("the operator was told %v, want %v", told, want)
		}
		return nil
	})
}
