package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"snip/shortener"
	"snip/shortener/webrisk"
)

// settleEvery is how often reservations are looked for that have expired.
const settleEvery = 5 * time.Second

// The bounds of one call. A longer one would keep people waiting for nothing.
const (
	shortestCall = 100 * time.Millisecond
	longestCall  = 10 * time.Second
)

// readChecks returns nil where destinations are not to be checked.
func readChecks(r *reader, keysOnly bool) *shortener.Checks {
	key := readSecret(r, "reputation-key", parseReputationKey)
	sound := len(r.problems)
	address := read(r, "reputation-url", parseReputationURL)
	limit := whole(1, math.MaxInt64)
	c := shortener.Checks{
		AllowOnFailure: read(r, "reputation-on-failure", parseOnFailure),
		Timeout:        read(r, "reputation-timeout", parseCallTime),
		Price:          read(r, "reputation-price", whole(0, math.MaxInt64)),
		Budget:         read(r, "reputation-daily-budget", limit),
		Calls:          read(r, "reputation-calls", limit),
		NetworkCalls:   read(r, "reputation-network-calls", limit),
		ClientCalls:    read(r, "reputation-client-calls", limit),
		KeysOnly:       keysOnly,
	}
	if len(r.problems) == sound {
		for _, err := range each(c.Validate()) {
			r.problems = append(r.problems, fmt.Errorf("--reputation-*: %w", err))
		}
	}
	if key == "" {
		return nil
	}
	c.Reputation = webrisk.New(webrisk.Config{URL: address, Key: key, Now: time.Now})
	return &c
}

func checkWarnings(c config, given settings) (w []string) {
	if c.checks == nil {
		for _, flag := range slices.Sorted(maps.Keys(given)) {
			if strings.HasPrefix(flag, "reputation-") && given[flag].given {
				w = append(w, "--"+flag+" has no effect without --reputation-key or --reputation-key-file")
			}
		}
		return w
	}
	if u, err := parseReputationURL(given["reputation-url"].text); err == nil && u.Scheme == "http" && reachable(net.JoinHostPort(u.Hostname(), "80")) {
		w = append(w, "--reputation-url is not encrypted, so others may read the key on the way")
	}
	return w
}

func parseReputationKey(text string) (string, error) {
	if strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "", errors.New("visible ASCII characters without blanks are needed")
	}
	return text, nil
}

func parseReputationURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" || u.User != nil {
		return nil, errors.New("an http or https URL with a host and no user is needed, such as " + webrisk.DefaultURL)
	}
	if schemeTwice(u) {
		return nil, errSchemeTwice
	}
	return u, nil
}

// parseOnFailure returns whether links are made all the same.
func parseOnFailure(text string) (allow bool, err error) {
	switch text {
	case "refuse":
		return false, nil
	case "allow":
		return true, nil
	}
	return false, errors.New("refuse or allow is needed")
}

func parseCallTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < shortestCall || d > longestCall {
		return 0, fmt.Errorf("a time from %v to %v is needed, such as 3s", shortestCall, longestCall)
	}
	return d, nil
}

// settleReservations settles what a process before this one has left and has expired,
// and then again and again what expires, until it is told to end. What has not
// expired stays held meanwhile, so nothing is spent twice.
func settleReservations(writing context.Context, service *shortener.Service, leads func() bool, log *slog.Logger) (end func()) {
	settle := func(context.Context) {
		if !leads() {
			return
		}
		if err := service.SettleExpired(writing); err != nil {
			log.Warn("reservations that have expired could not be settled; they stay held", "err", err)
		}
	}
	settle(context.Background())
	return repeat(settleEvery, settle)
}

// logChecks says beforehand what the checks of a day can cost.
func logChecks(log *slog.Logger, c config) {
	if c.checks == nil {
		return
	}
	policy := "refuse"
	if c.checks.AllowOnFailure {
		policy = "allow"
	}
	log.Info("destinations are checked", "on_failure", policy, "price", c.checks.Price, "day_at_most", c.checks.DayAtMost(),
		"calls", c.checks.Calls, "network_calls", c.checks.NetworkCalls, "client_calls", c.checks.ClientCalls, "unit", "millionths")
}
