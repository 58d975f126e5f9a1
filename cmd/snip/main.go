// Command snip runs the URL shortener: it reads the settings, wires the rooms
// together, serves, and stops in order. Everything else is in the packages below
// it. Start with [run], then serve.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// The exit statuses. A service manager may restart after a failure; wrong
// settings stay wrong.
const (
	exitOK       = 0
	exitFailure  = 1
	exitSettings = 2
)

// gcPercent lets the heap grow to five times what is in use before it is
// collected. A few MiB are, so Go's own 100 collects many times a second under
// load; this was measured to make a redirect a twentieth cheaper.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// run is the program with its surroundings handed in. It returns the exit
// status, and whatever went wrong is on stderr by then.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	err := execute(ctx, args, environ, stdout, stderr)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "snip: %v\n", err)
	if _, ok := errors.AsType[*settingsError](err); ok {
		return exitSettings
	}
	return exitFailure
}

func execute(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	asked, err := parseCommandLine(args, environ, stdout)
	if err != nil {
		return err
	}
	switch asked.command {
	case commandHealth:
		return health(ctx, asked, stdout)
	case commandMigrate:
		return migrate(ctx, asked, stdout, stderr)
	case commandServe:
		c, err := readConfig(asked.settings)
		if err != nil {
			return err
		}
		log := newLog(stderr)
		for _, name := range asked.unknown {
			log.Warn("an environment variable names no setting; see snip --help", "variable", name)
		}
		return serve(ctx, c, log)
	}
	if command := fileCommands[asked.command]; command != nil {
		return command(asked, stdout)
	}
	if command := operatorCommands[asked.command]; command != nil {
		// So that a file that is half written is removed.
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		client, err := newAdminClient(asked.settings)
		if err != nil {
			return err
		}
		return command(ctx, client, asked.line, stdout, stderr)
	}
	return nil // --help or --version, which are answered by then
}
