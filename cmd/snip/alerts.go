package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/blocklist"
	"snip/web/admin"
)

const (
	// alertsEvery is how often faults are looked for, and notices delivered.
	alertsEvery = time.Second
	// alertPause is how long a fault of one kind is told of no more.
	alertPause = time.Hour
	// causePause is how long no more causes are logged, as for requests that are refused.
	causePause = time.Minute
	// manyTokens is how many refused admin tokens an operator is told of: one peer is
	// throttled by then, and slips of the finger are fewer.
	manyTokens = admin.WrongTokens
	// mostKept bounds the notices in memory, when the store cannot keep them.
	mostKept = 100
	// sendGrace is how long the end of the process waits for an attempt.
	sendGrace = 2 * time.Second
	// The pauses after an attempt to deliver that failed.
	firstRetry, lastRetry = 5 * time.Second, 5 * time.Minute
)

// alerts tells the operator of faults and of the budget: in the log, and over a
// webhook where there is one. It looks at what is counted anyway, so that nothing
// waits for it, and it refuses nothing.
//
// A notice is kept by the store until it has been delivered; a fault may be the
// store's own, and is kept in memory then.
type alerts struct {
	service    *shortener.Service
	blocklists func() []blocklist.Status
	tokens     *admin.TokensRefused                          // nil counts none
	leads      func() bool                                   // whether the store's notices are for this server to deliver
	send       func(context.Context, shortener.Notice) error // nil where there is no webhook
	log        *slog.Logger
	now        func() time.Time

	delivered, failed atomic.Int64

	mu     sync.Mutex
	memory []shortener.Notice

	// The looker's own.
	told                               map[string]time.Time // when, by the kind of fault
	unavailable, turnedAway, unchecked int64                // as they were seen last
	explained                          int64                // of unchecked, as it was when a cause was logged last
	refusedTokens                      int64                // as they were told of last

	// The deliverer's own.
	logged  map[string]bool // IDs of notices that were not raised here
	arrived map[string]bool // IDs of what was sent and could not be written down
	retryAt time.Time
	retryIn time.Duration
}

func newAlerts(c config, service *shortener.Service, blocklists *blocklist.Files, leads func() bool, log *slog.Logger) *alerts {
	a := &alerts{
		service:    service,
		blocklists: blocklists.Status,
		leads:      leads,
		log:        log,
		now:        time.Now,
		told:       map[string]time.Time{},
		logged:     map[string]bool{},
		arrived:    map[string]bool{},
	}
	if c.webhook != nil {
		a.send = newWebhook(c.webhook)
	}
	return a
}

// start runs until it is told to end. Then what was delivered is written down, so
// that it does not come again.
func (a *alerts) start() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// run looks and delivers until ctx ends.
func (a *alerts) run(ctx context.Context) {
	var group sync.WaitGroup
	for _, work := range []func(context.Context){a.look, a.deliver} {
		group.Go(func() {
			tick := time.NewTicker(alertsEvery)
			defer tick.Stop()
			for {
				work(ctx)
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	group.Wait()
}

// look raises what is wrong now.
func (a *alerts) look(ctx context.Context) {
	if err := a.service.Ready(ctx); err != nil && ctx.Err() == nil {
		kind := "store"
		switch {
		case errors.Is(err, quota.ErrClock):
			kind = "clock"
		case errors.Is(err, shortener.ErrBlocklist):
			kind = "blocklist"
		}
		a.raise(ctx, kind, fmt.Sprintf("Links cannot be made: %v.", err))
	}
	if n := a.service.Outcomes().Unavailable; n > a.unavailable {
		a.raise(ctx, "count", fmt.Sprintf("%d links could not be counted, so they were not made.", n-a.unavailable))
		a.unavailable = n
	}
	if n := a.service.StoreHealth().TurnedAway; n > a.turnedAway {
		a.raise(ctx, "queue", fmt.Sprintf("%d writes found no room to wait.", n-a.turnedAway))
		a.turnedAway = n
	}
	u := a.service.Unchecked()
	if n := u.Number; n > a.unchecked {
		a.raise(ctx, "reputation", fmt.Sprintf("%d destinations could not be checked. What became of their links is set with --reputation-on-failure; see snip status.", n-a.unchecked))
		a.unchecked = n
	}
	// Where the links are refused, the refusals are logged.
	if u.Made && u.Number > a.explained && a.due("unchecked", causePause) {
		a.log.Error("links were made whose destinations could not be checked", "destinations", u.Number-a.explained, "last_error", u.Cause)
		a.explained = u.Number
	}
	if n := a.tokens.Total(); n >= a.refusedTokens+manyTokens {
		a.raise(ctx, "token", fmt.Sprintf("%d wrong tokens were shown to the admin listener.", n-a.refusedTokens))
		a.refusedTokens = n
	}
	for _, list := range a.blocklists() {
		if list.Err != nil {
			a.raise(ctx, "blocklist", fmt.Sprintf("A list of hosts could not be loaded; what was last read from it stays in use. %v.", list.Err))
		}
	}
}

// due reports whether a kind of thing was not told of for as long as a pause. Then it
// is told of now.
func (a *alerts) due(kind string, pause time.Duration) bool {
	now := a.now().UTC()
	// A clock that went back would keep it silent until it has caught up.
	if last, ok := a.told[kind]; ok && now.Sub(last) < pause && !now.Before(last) {
		return false
	}
	a.told[kind] = now
	return true
}

// raise tells of a fault, unless its kind was told of in the last hour.
func (a *alerts) raise(ctx context.Context, kind, text string) {
	if !a.due(kind, alertPause) {
		return
	}
	now := a.told[kind]
	n := shortener.Notice{ID: fmt.Sprintf("%s/%s/%s", now.Format(time.DateOnly), kind, now.Format("150405.000000")), At: now, Kind: kind, Text: text}
	a.log.Error("alert", "id", n.ID, "kind", n.Kind, "text", n.Text)
	if a.send == nil {
		a.delivered.Add(1)
		return
	}
	if a.service.Post(ctx, n) == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.memory) < mostKept {
		a.memory = append(a.memory, n)
	}
}

// deliver sends what waits, the oldest first, and stops at the first failure until
// a pause is over.
func (a *alerts) deliver(ctx context.Context) {
	a.mu.Lock()
	waiting := slices.Clone(a.memory)
	a.mu.Unlock()
	if a.leads() {
		// A fault is told of by itself.
		if kept, err := a.service.Notices(ctx, mostKept); err == nil {
			waiting = append(waiting, kept...)
		}
	}
	for _, n := range waiting { // first, whatever becomes of the webhook
		if slices.Contains([]string{shortener.KindBudget, shortener.KindOverrun, shortener.KindLate}, n.Kind) && !a.logged[n.ID] {
			a.log.Warn("alert", "id", n.ID, "kind", n.Kind, "text", n.Text)
			a.logged[n.ID] = true
		}
	}
	if now := a.now(); now.Before(a.retryAt) && a.retryAt.Sub(now) <= lastRetry {
		return
	}
	for _, n := range waiting {
		if a.send != nil && !a.arrived[n.ID] {
			if err := a.sendOut(ctx, n); err != nil {
				a.failed.Add(1)
				a.retryIn = min(lastRetry, max(firstRetry, 2*a.retryIn))
				a.retryAt = a.now().Add(a.retryIn)
				a.log.Warn("an alert could not be delivered", "id", n.ID, "again_in", a.retryIn.String(), "err", err)
				return
			}
		}
		a.retryIn = 0
		a.forget(ctx, n)
	}
}

// sendOut sends a notice, and gives it a moment more when ctx ends meanwhile: cut
// off, it may have arrived, and would come again.
func (a *alerts) sendOut(ctx context.Context, n shortener.Notice) error {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(sendGrace, cancel) })()
	return a.send(sending, n)
}

// forget ends a notice that was delivered. Where the store cannot be told, it is
// told later, and the notice is sent again by the next process at the most.
func (a *alerts) forget(ctx context.Context, n shortener.Notice) {
	a.mu.Lock()
	before := len(a.memory)
	a.memory = slices.DeleteFunc(a.memory, func(m shortener.Notice) bool { return m.ID == n.ID })
	inMemory := len(a.memory) < before
	a.mu.Unlock()
	if !inMemory {
		if err := a.service.Delivered(context.WithoutCancel(ctx), n.ID); err != nil {
			a.arrived[n.ID] = true
			return
		}
	}
	delete(a.arrived, n.ID)
	a.delivered.Add(1)
}

// stats is for whoever watches.
func (a *alerts) stats() admin.Alerts {
	return admin.Alerts{Delivered: a.delivered.Load(), Failed: a.failed.Load()}
}
