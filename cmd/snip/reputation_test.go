package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/blocklist"
	"snip/shortener/boltstore"
	"snip/shortener/memstore"
	"snip/shortener/webrisk/webrisktest"
)

// checking is the settings of a process that checks destinations with the server.
func checking(server *webrisktest.Server, more ...string) []string {
	return append([]string{"--throttle-every=0", "--reputation-key=" + webrisktest.Key, "--reputation-url=" + server.URL.String()}, more...)
}

// TestProcessChecks runs the program with checks from the first word in its log to
// what its status says, and shows the key nowhere.
func TestProcessChecks(t *testing.T) {
	t.Parallel()
	server := webrisktest.Start(t)
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "key")
	if err := os.WriteFile(keyFile, []byte(webrisktest.Key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, "--throttle-every=0", "--reputation-key-file="+keyFile, "--reputation-url="+server.URL.String(), "--reputation-daily-budget=1234")
	said, err := p.await("destinations are checked")
	if err != nil {
		t.Fatal(err)
	}
	if said["day_at_most"] != 1000.0 || said["on_failure"] != "refuse" {
		t.Errorf("it says beforehand %v", said)
	}
	post := func(status int, destination string) answer {
		t.Helper()
		return mustAsk(t, status, "POST", p.url+"/api/links", "application/json", `{"url":"`+destination+`"}`)
	}
	post(http.StatusCreated, "https://one.example/")
	server.Set(webrisktest.Dangerous(time.Now().Add(time.Hour)))
	if a := post(http.StatusBadRequest, "https://two.example/"); !strings.Contains(a.body, "blocked_destination") {
		t.Errorf("a dangerous destination: %+v", a)
	}
	if a := post(http.StatusServiceUnavailable, "https://three.example/"); !strings.Contains(a.body, "could not be checked") {
		t.Errorf("with the money spent: %+v", a)
	}
	post(http.StatusCreated, "https://one.example/again")
	if asked := server.Asked(); len(asked) != 2 {
		t.Errorf("asked about %q", asked)
	}
	out, err := exec.Command(binary, "status", "--admin-listen", p.admin, "--store", filepath.Join(dir, "snip.db")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, text := range []string{"0.001 of 0.001 at most, 0 held", "calls of " + quota.DayOf(time.Now()).Label, "2 of 2\n", "1 dangerous, 1 safe; 1 answered from memory", "refuse; 1 destinations were not checked", "1 unchecked"} {
		if !strings.Contains(string(out), text) {
			t.Errorf("the status has no %q:\n%s", text, out)
		}
	}
	listed, err := command(t, p, nil, "reputation", "reservations")
	if err != nil || strings.Count(listed, "  committed  ") != 2 || strings.Count(listed, "reputation-budget 500/500, reputation-calls 1/1") != 2 ||
		strings.Contains(listed, "unknown") {
		t.Errorf("reservations: %v\n%s", err, listed)
	}
	if listed, err := command(t, p, nil, "reputation", "reservations", "--limit=1", "--json"); err != nil || strings.Count(listed, `"created_at": "20`) != 1 {
		t.Errorf("one of them: %v\n%s", err, listed)
	}
	for _, id := range []string{"/reputation-budget/100", "/reputation/"} { // the money, and what came of it
		if err := p.awaitLine(id, func(line string) bool { return strings.Contains(line, `"alert"`) && strings.Contains(line, id) }); err != nil {
			t.Error(err)
		}
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if log := p.log(); strings.Contains(log, webrisktest.Key) || strings.Contains(log, "two.example") {
		t.Errorf("the log tells the key or a destination:\n%s", log)
	}
}

// TestKilledAroundACall kills the program after each of the steps that a call is
// paid in. The next process settles what was left: never is less counted than the
// service may bill.
func TestKilledAroundACall(t *testing.T) {
	t.Parallel()
	needStrace(t)
	for name, row := range map[string]struct {
		step func(*testing.T, *process, *webrisktest.Server)
		left quota.State // how the reservation is found
	}{
		// The service has the request and has said nothing: nobody knows what it did.
		"after the reservation": {func(t *testing.T, p *process, server *webrisktest.Server) {
			arrived := make(chan struct{})
			server.Set(func(w http.ResponseWriter, r *http.Request) {
				close(arrived)
				server.Silent(w, r)
			})
			go ask("POST", p.url+"/api/links", "application/json", `{"url":"https://example.org/"}`)
			<-arrived
			p.kill()
		}, quota.Pending},
		// The verdict is there, and the end comes when the disk is to keep that it is paid.
		"after the call": {func(t *testing.T, p *process, server *webrisktest.Server) {
			arrived, answered := make(chan struct{}), make(chan struct{})
			server.Set(func(w http.ResponseWriter, r *http.Request) {
				close(arrived)
				server.Held(answered, webrisktest.Safe)(w, r)
			})
			go ask("POST", p.url+"/api/links", "application/json", `{"url":"https://example.org/"}`)
			<-arrived
			inject(t, p, "fdatasync:signal=KILL")
			close(answered)
			<-p.ended
		}, quota.Pending},
		"after it was paid": {func(t *testing.T, p *process, server *webrisktest.Server) {
			server.Set(webrisktest.Dangerous(time.Now().Add(time.Hour)))
			mustAsk(t, http.StatusBadRequest, "POST", p.url+"/api/links", "application/json", `{"url":"https://example.org/"}`)
			p.kill()
		}, quota.Committed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withinOneDay(t, func() error {
				server := webrisktest.Start(t)
				dir := t.TempDir()
				// The reservation lasts ten seconds longer than a call may.
				p := start(t, dir, checking(server, "--reputation-timeout=2s")...)
				row.step(t, p, server)
				file := filepath.Join(dir, "snip.db")
				paid, err := paidIn(file)
				if err != nil {
					return err
				}
				if want := map[bool]quota.Count{true: {Held: 500}, false: {Used: 500}}[row.left == quota.Pending]; paid != want {
					return fmt.Errorf("the killed process has left %+v, want %+v", paid, want)
				}
				p = start(t, dir, checking(server)...)
				err = awaitSpent(t, dir, p, spent{Spent: 500, Calls: 1})
				if asked := server.Asked(); len(asked) != 1 {
					t.Errorf("asked about %q", asked)
				}
				if stopErr := p.stop(); stopErr != nil {
					t.Error(stopErr)
				}
				if err != nil {
					return err
				}
				if paid, err = paidIn(file); err == nil && paid != (quota.Count{Used: 500}) {
					err = fmt.Errorf("in the end %+v, want 500 used", paid)
				}
				return err
			})
		})
	}
}

// paidIn reads what a data file says of today's money for checks.
func paidIn(file string) (quota.Count, error) {
	store, err := boltstore.Open(file, boltstore.Options{})
	if err != nil {
		return quota.Count{}, err
	}
	defer store.Close()
	day := quota.DayOf(time.Now()).Label
	counts, err := store.Counts(context.Background(), []quota.Counter{{Level: shortener.LevelCheckBudget, Period: day}})
	if err != nil {
		return quota.Count{}, err
	}
	return counts[0], nil
}

// spent is what the status says of the money.
type spent struct {
	Spent int64 `json:"spent_micros"`
	Held  int64 `json:"held_micros"`
	Calls int64 `json:"calls"`
}

// awaitSpent returns once the process has settled all there is, as wanted.
func awaitSpent(t *testing.T, dir string, p *process, want spent) error {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(dir, "snip.db.admin-token"))
	if err != nil {
		return err
	}
	operator := asker{t, http.DefaultClient, "http://" + p.admin, map[string]string{"Authorization": "Bearer " + strings.TrimSpace(string(token))}}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var got struct {
		Reputation spent `json:"reputation"`
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		_, _, text := operator.ask("GET", "/api/status", "")
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			return err
		}
		if got.Reputation.Held == 0 {
			break
		}
	}
	if got.Reputation != want {
		return fmt.Errorf("spent %+v, want %+v", got.Reputation, want)
	}
	return nil
}

// TestCausesAreLogged makes links unchecked, and sees that the log says why: at once,
// and then once a minute.
func TestCausesAreLogged(t *testing.T) {
	t.Parallel()
	for _, allow := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			service := shortener.New(shortener.Config{Store: memstore.New(), Policy: quota.Policy{Service: 1000}, Now: time.Now, Checks: &shortener.Checks{
				Reputation: failing{}, AllowOnFailure: allow, Calls: 1000, NetworkCalls: 1000, ClientCalls: 1000,
			}})
			var lines strings.Builder
			a := newAlerts(config{}, service, blocklist.NewFiles(blocklist.Config{}), func() bool { return true }, slog.New(slog.NewTextHandler(&lines, nil)))
			var got []string
			for i := range 200 {
				_, err := service.Create(t.Context(), quota.Client{}, shortener.NewLink{URL: fmt.Sprintf("https://%d.example/", i)}, "")
				if allow != (err == nil) {
					t.Fatal(err)
				}
				a.look(t.Context())
				for line := range strings.Lines(lines.String()) {
					if _, said, ok := strings.Cut(line, "could not be checked\" "); ok {
						got = append(got, strings.TrimSpace(said))
					}
				}
				lines.Reset()
				<-time.After(time.Second)
			}
			const why = ` last_error="`
			var want []string
			if allow {
				want = []string{"destinations=1", "destinations=60", "destinations=60", "destinations=60"}
			}
			if len(got) != len(want) {
				t.Fatalf("logged %q, want %q", got, want)
			}
			for i := range want {
				if !strings.HasPrefix(got[i], want[i]+why) || i == 0 && !strings.Contains(got[i], "failed: odd") {
					t.Errorf("logged %s, want %s and why", got[i], want[i])
				}
			}
		})
	}
}

// failing is a reputation that is never there.
type failing struct{}

func (failing) Check(context.Context, string) (shortener.Verdict, error) {
	return shortener.Verdict{}, &shortener.CheckError{Outcome: shortener.CheckFailed, Err: errors.New("odd")}
}

func TestCheckSettings(t *testing.T) {
	t.Parallel()
	c, err := configOf(t, nil)
	if err != nil || c.checks != nil {
		t.Errorf("without a key %+v, %v", c.checks, err)
	}
	if c, err = configOf(t, nil, "--reputation-key=k"); err != nil {
		t.Fatal(err)
	}
	got := *c.checks
	if got.Reputation == nil {
		t.Error("with a key nobody is asked")
	}
	got.Reputation = nil
	want := shortener.Checks{Timeout: 3 * time.Second, Price: 500, Budget: 1_000_000, Calls: 2000, NetworkCalls: 500, ClientCalls: 100}
	if got != want {
		t.Errorf("the defaults are %+v, want %+v", got, want)
	}
	if c, err = configOf(t, nil, "--reputation-key=k", "--creation=keys"); err != nil || !c.checks.KeysOnly {
		t.Errorf("with links of keys only %+v, %v", c.checks, err)
	}
	for _, row := range []struct {
		args []string
		want string // a part of the only warning; empty is none
	}{
		{[]string{"--reputation-key=k"}, ""},
		{[]string{"--reputation-key=k", "--reputation-url=http://127.0.0.1:1/x"}, ""},
		{[]string{"--reputation-key=k", "--reputation-url=http://webrisk.example/"}, "--reputation-url is not encrypted"},
		{[]string{"--reputation-on-failure=allow"}, "--reputation-on-failure has no effect without --reputation-key"},
	} {
		c, err := configOf(t, nil, append(row.args, "--public-url=https://s.example")...)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(c.warnings, "\n"); row.want == "" && text != "" || !strings.Contains(text, row.want) {
			t.Errorf("%v: warned of %q, want %q", row.args, text, row.want)
		}
	}
}

// TestSettlesAtTheStart finds a reservation that a process before this one has left,
// and has settled it when the program begins to serve.
func TestSettlesAtTheStart(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	counter := quota.Counter{Level: shortener.LevelCheckBudget, Period: "2026-11-29"}
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	if _, _, err := store.Reserve(t.Context(), quota.Reservation{
		ID: "left", Charges: []quota.Charge{{Counter: counter, Cost: 500, Max: 500, ResetAt: now.Add(12 * time.Hour)}},
		ExpiresAt: now, OnExpiry: quota.Committed,
	}); err != nil {
		t.Fatal(err)
	}
	service := shortener.New(shortener.Config{Store: store, Now: func() time.Time { return now }})
	end := settleReservations(t.Context(), service, func() bool { return true }, slog.New(slog.DiscardHandler))
	defer end()
	if counts, err := store.Counts(t.Context(), []quota.Counter{counter}); err != nil || counts[0] != (quota.Count{Used: 500}) {
		t.Errorf("%+v, %v, want 500 used", counts, err)
	}
}
