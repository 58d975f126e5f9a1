package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/memstore"
)

// judge finds one host safe, one dangerous, and wants a pause after any other.
type judge struct{}

func (judge) Check(_ context.Context, destination string) (shortener.Verdict, error) {
	switch shortener.HostOf(destination) {
	case "safe.example":
		return shortener.Verdict{Until: time.Now().Add(time.Hour)}, nil
	case "dangerous.example":
		return shortener.Verdict{Dangerous: true, Until: time.Now().Add(time.Hour)}, nil
	}
	return shortener.Verdict{}, &shortener.CheckError{Outcome: shortener.CheckThrottled, Pause: 10 * time.Minute, Err: errors.New("not now")}
}

// TestReputationIsShown shows what checks have cost, everywhere an operator looks.
func TestReputationIsShown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	h, service := openChecked(t, memstore.New(), func() time.Time { return now }, &shortener.Checks{
		Reputation: judge{}, AllowOnFailure: true, Timeout: time.Minute,
		Price: 500, Budget: 1_000_000, Calls: 4000, NetworkCalls: 300, ClientCalls: 30,
	})
	for _, url := range []string{"https://safe.example/", "https://safe.example/2", "https://dangerous.example/", "https://odd.example/", "https://odd.example/2"} {
		_, err := service.Create(t.Context(), quota.Client{}, shortener.NewLink{URL: url}, "")
		if err != nil && !errors.Is(err, shortener.ErrBlockedDestination) {
			t.Fatal(err)
		}
	}
	var got struct{ Reputation *reputation }
	answer := ask(h, "GET", "/api/status", "Bearer "+token, "")
	if err := json.Unmarshal(answer.Body.Bytes(), &got, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	want := &reputation{
		OnFailure: "allow", Price: 500, DayAtMost: 1_000_000, Spent: 1000, Calls: 2, Limit: 2000,
		Ended: map[shortener.CheckOutcome]int64{
			"safe": 1, "dangerous": 1, "throttled": 1, "unreadable": 0, "unanswered": 0, "rejected": 0, "failed": 0, "unsent": 0,
		},
		Cached: 1, Unchecked: 2, PausedUntil: now.Add(10 * time.Minute),
	}
	if diff := cmp.Diff(want, got.Reputation); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	var listed struct {
		Reservations []reservation `json:"reservations"`
		More         bool          `json:"more"`
	}
	answer = ask(h, "GET", "/api/reputation/reservations?limit=2", "Bearer "+token, "")
	if err := json.Unmarshal(answer.Body.Bytes(), &listed); err != nil || !listed.More || len(listed.Reservations) != 2 {
		t.Fatalf("%v: %s", err, answer.Body)
	}
	answer = ask(h, "GET", "/api/reputation/reservations", "Bearer "+token, "")
	if err := json.Unmarshal(answer.Body.Bytes(), &listed); err != nil || listed.More {
		t.Fatalf("%v: %s", err, answer.Body)
	}
	states := map[quota.State]int64{}
	for _, r := range listed.Reservations {
		states[r.State] += r.Charges[0].Paid
		if !r.CreatedAt.Equal(now) || !r.UpdatedAt.Equal(now) || r.Expired || r.Charges[0].Level != shortener.LevelCheckBudget || r.Charges[0].Reserved != 500 {
			t.Errorf("%+v is listed", r)
		}
	}
	if diff := cmp.Diff(map[quota.State]int64{quota.Committed: 1000, quota.Released: 0}, states); diff != "" || len(listed.Reservations) != 3 {
		t.Errorf("%d reservations (-want +got):\n%s", len(listed.Reservations), diff)
	}
	metrics := ask(h, "GET", "/metrics", "Bearer "+token, "").Body.String()
	for _, line := range []string{
		`snip_creations_total{outcome="created"} 4`, `snip_creations_total{outcome="unchecked"} 0`,
		`snip_reputation_calls_total{outcome="safe"} 1`, `snip_reputation_calls_total{outcome="throttled"} 1`, `snip_reputation_calls_total{outcome="unsent"} 0`,
		`snip_reputation_cached_total 1`, `snip_reputation_unchecked_total 2`, `snip_reputation_unsettled_total 0`,
		`snip_reputation_spent_micros 1000`, `snip_reputation_held_micros 0`, `snip_reputation_day_at_most_micros 1e+06`,
		`snip_reputation_calls_today 2`, `snip_reputation_calls_limit 2000`, `snip_reputation_paused 1`,
	} {
		if !strings.Contains(metrics, "\n"+line) {
			t.Errorf("no %q in:\n%s", line, metrics)
		}
	}
	page := signIn(t, h).get("/").Body.String()
	for _, text := range []string{"0.001 of 1 spent today; 2 of 2,000 calls; 2 destinations not checked", "2026-11-29 12:10:00 UTC, because calls have failed", "could not be checked 0"} {
		if !strings.Contains(page, text) {
			t.Errorf("no %q on the page", text)
		}
	}
	// Whoever checks nothing is told nothing of it.
	h = newAdmin(t)
	for _, target := range []string{"/api/status", "/metrics"} {
		if w := ask(h, "GET", target, "Bearer "+token, ""); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "reputation") {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
}
