package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/web"
	"snip/web/admin"
)

// drainTime is how long requests that have begun may take once the process has
// been told to stop. Container engines kill after 10 to 30 seconds; the compose
// file allows 20.
const drainTime = 15 * time.Second

// lastTime is how long what is written beside requests, such as visits, may take
// after the last of them: it would wait for a database that is gone.
const lastTime = 4 * time.Second

// store is what the process needs of one, beside what creations do.
type store interface {
	shortener.Store
	Close() error
}

// connectionsOf returns how many connections the store itself keeps; a file needs none.
func connectionsOf(s store) int {
	if remote, ok := s.(interface{ Connections() int }); ok {
		return remote.Connections()
	}
	return 0
}

// copier is a store that is a file. It writes a copy of it.
type copier interface {
	Backup(ctx context.Context, w io.Writer) error
}

// serve runs until ctx ends or the process is told to stop, and then closes in
// order: the listener, the requests under way, the store. A second signal finds
// no handler any more and ends the process at once.
func serve(ctx context.Context, c config, log *slog.Logger) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()

	for _, warning := range c.warnings {
		log.Warn(warning)
	}
	store, err := openStore(ctx, c.store, log)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := store.Close(); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("closing the store: %w", closeErr))
		}
	}()
	blocklists, watchBlocklists := openBlocklists(c, log)
	service := newService(c, store, blocklists, time.Now)
	if err := service.LoadOperatorSet(ctx); err != nil {
		return err
	}
	throttles, err := newThrottles(c.throttle, time.Now)
	if err != nil {
		return err
	}
	requests := new(web.RequestTimes)
	handler, err := newHandler(c, service, throttles, requests, time.Now, log)
	if err != nil {
		return err
	}
	share, err := shareStore(c, store, service, log)
	if err != nil {
		return err
	}
	defer share.end()
	alerts := newAlerts(c, service, blocklists, share.leads, log)
	alerts.tokens = &admin.TokensRefused{}
	listener, err := listen("listen", c.listen)
	if err != nil {
		return err
	}
	bounds := connBoundsFor(descriptors(), connectionsOf(store), c.checks != nil)
	watch := newConnWatch(listener, bounds, c.proxies, c.nat64)
	operator, err := newOperator(c, service, store, admin.Process{
		Version:     versionText(),
		Started:     time.Now().UTC(),
		Connections: watch.stats,
		Requests:    requests.Each,
		Settings: admin.Settings{
			Policy: c.policy, Every: c.throttle.Every, Burst: c.throttle.Burst,
			KeysOnly: c.keysOnly, Checks: c.checks,
		},
		Throttle:  throttles.creations.Stats,
		Changes:   throttles.changes.Stats,
		Blocklist: func() []admin.Blocklist { return viewBlocklists(blocklists.Status()) },
		Alerts:    alerts.stats,
		Tokens:    alerts.tokens,
	}, log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := newServer(handler, log)
	watching, unwatch := context.WithCancel(context.Background())
	defer unwatch() // after the last connections, which may be overdue too
	go watch.run(watching)
	go watchBlocklists(watching)
	// After the requests under way, whose visits count, and before the store is closed.
	writing, stopWriting := context.WithCancel(context.Background())
	defer stopWriting()
	defer storeVisits(writing, service, log)()
	defer keepHistory(writing, service, log)()
	defer settleReservations(writing, service, share.leads, log)()
	defer clearExpired(service, c.keptDays, share.leads, log)()
	defer alerts.start()()
	defer func() { time.AfterFunc(lastTime, stopWriting) }()
	served := make(chan error, 2)
	go func() { served <- server.Serve(watch) }()
	if operator != nil {
		go func() { served <- operator.serve() }()
	}
	logChecks(log, c)
	logStart(log, c, listener.Addr(), operator.address())

	select {
	case err := <-served:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	stop()
	log.Info("stopping", "at_most", drainTime.String())
	operator.close() // first: a long profile must not take the visitors' time
	drain(server, log)
	log.Info("stopped")
	return nil
}

// drain lets the requests under way finish, and cuts off those that do not.
func drain(server *http.Server, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		log.Error("requests were cut off", "error", err)
		if err := server.Close(); err != nil {
			log.Error("closing connections", "error", err)
		}
	}
}

func newService(c config, store shortener.Store, blocklist shortener.Blocklist, now func() time.Time) *shortener.Service {
	return shortener.New(shortener.Config{
		Blocklist:    blocklist,
		Store:        store,
		Policy:       c.policy,
		Destinations: c.destinations,
		Reserved:     web.ReservedSlugs(c.publicURL),
		Words:        c.words,
		Checks:       c.checks,
		NAT64:        c.nat64,
		Now:          now,
	})
}

func newHandler(
	c config, service *shortener.Service, throttles throttles, requests *web.RequestTimes,
	now func() time.Time, log *slog.Logger,
) (http.Handler, error) {
	return web.New(web.Config{
		Service:        service,
		Throttle:       throttles.creations,
		Changes:        throttles.changes,
		KeysOnly:       c.keysOnly,
		Rules:          web.Rules{Daily: c.policy.Client, Every: c.throttle.Every},
		PublicURL:      c.publicURL,
		CORSOrigins:    c.origins,
		Contact:        c.contact,
		TrustedProxies: c.proxies,
		NAT64:          c.nat64,
		ClientIPHeader: c.header,
		RequestTimes:   requests,
		RedirectStatus: c.redirect,
		Log:            log,
		Now:            now,
	})
}

// throttles are nil, which admits everyone, when they are off.
type throttles struct{ creations, changes *quota.Throttle }

func newThrottles(c quota.ThrottleConfig, now func() time.Time) (t throttles, err error) {
	if c.Every == 0 {
		return throttles{}, nil
	}
	c.Now = now
	if t.creations, err = quota.NewThrottle(c); err == nil {
		t.changes, err = quota.NewThrottle(c)
	}
	return t, err
}

// newServer returns the server, to be given a [connWatch]: it has no timeouts of
// its own.
func newServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:        handler,
		ConnState:      observe,
		MaxHeaderBytes: 16 << 10,
		// OPTIONS * is refused like every other method that is not there.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     stdlog.New(serverLog{log}, "", 0),
	}
}

func logStart(log *slog.Logger, c config, address net.Addr, admin string) {
	log.Info("listening",
		"address", address.String(),
		"admin", admin,
		"public_url", c.publicURL.String(),
		"store", c.store.String(),
		slog.Group("throttle", "every", c.throttle.Every.String(), "burst", c.throttle.Burst, "clients", c.throttle.Clients),
		slog.Group("quota", "client", c.policy.Client, "network", c.policy.Network,
			"service", c.policy.Service, "newcomers", c.policy.Newcomers),
		"version", versionText())
}
