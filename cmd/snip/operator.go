package main

import (
	"context"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"snip/shortener"
	"snip/web"
	"snip/web/admin"
)

// operator is the admin listener; nil where there is none.
type operator struct {
	server   *http.Server
	listener net.Listener
}

func newOperator(c config, service *shortener.Service, store store, process admin.Process, log *slog.Logger) (*operator, error) {
	if c.admin == "" {
		return nil, nil
	}
	token, err := ensureAdminToken(c.adminToken, c.store.file)
	if err != nil {
		// Links lead on without an operator, on a disk that is full, too.
		log.Error("there is no admin listener", "err", err)
		return nil, nil
	}
	var backup func(context.Context, io.Writer) error
	if file, ok := store.(copier); ok {
		backup = file.Backup
	}
	handler, err := admin.New(admin.Config{Service: service, Backup: backup, Process: process, Token: token, Listen: c.admin, Origin: c.adminURL,
		Explain: web.InEnglish, Log: log, Now: time.Now})
	if err != nil {
		return nil, fmt.Errorf("admin listener: %w", err)
	}
	listener, err := listen("admin-listen", c.admin)
	if err != nil {
		return nil, err
	}
	return &operator{
		server: &http.Server{
			Handler:           handler,
			MaxHeaderBytes:    16 << 10,
			ReadHeaderTimeout: headerTime * time.Second,
			ReadTimeout:       answerTime * time.Second,
			IdleTimeout:       idleTime * time.Second, // none for writing: a profile takes as long as it was asked to
			ErrorLog:          stdlog.New(serverLog{log}, "", 0),
		},
		listener: listener,
	}, nil
}

// serve runs until close.
func (o *operator) serve() error { return o.server.Serve(o.listener) }

func (o *operator) address() string {
	if o == nil {
		return "off"
	}
	return o.listener.Addr().String()
}

func (o *operator) close() {
	if o != nil {
		_ = o.server.Close() // what it could not close ends with the process
	}
}
