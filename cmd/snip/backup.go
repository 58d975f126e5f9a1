package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"snip/shortener/boltstore"
)

// fileLine are the sub-commands about whole files.
type fileLine struct {
	Backup struct {
		File  string `arg:"" help:"Where to; - is standard output, which is not checked."`
		Force bool   `help:"Replace the file where it is there."`
	} `cmd:"" help:"Copy the data file of a running server, which goes on, and check the copy."`
	Check struct {
		File string `arg:"" help:"A data file that no server has open, such as a backup."`
	} `cmd:"" help:"Look whether a data file is whole, each record can be read, and counters are links; exit 0 or 1."`
	Restore struct {
		File  string `arg:"" help:"A data file that no server has open, such as a backup."`
		Force bool   `help:"Where --store is there, move it aside."`
	} `cmd:"" help:"Check a data file and put a compact copy of it at --store, while no server runs there."`
	Copy struct {
		From string `required:"" placeholder:"FILE" help:"A data file that no server has open."`
		To   string `required:"" placeholder:"URL" help:"An empty PostgreSQL database, such as postgres://snip@db.example/snip. The password is better given in --store-password-file, or as libpq has it, in PGPASSWORD or ~/.pgpass."`
	} `cmd:"" help:"Copy all of a data file into a PostgreSQL database, and compare. A copy that was broken off goes on when it is begun again."`
	Export struct {
		Format string `default:"jsonl" enum:"jsonl,csv" help:"jsonl for import, with all that is kept of a link; csv for spreadsheets."`
		Out    string `placeholder:"FILE" help:"Where to; standard output without it."`
		Force  bool   `help:"Replace the file where it is there."`
	} `cmd:"" help:"Write every link of a running server."`
	Import struct {
		File string `arg:"" help:"What export wrote; - is standard input."`
	} `cmd:"" help:"Make the links of an export in a running server, free of quota, and report each line; exit 1 when one was refused."`
}

func backup(ctx context.Context, c *adminClient, line *commandLine, stdout, stderr io.Writer) error {
	asked := line.Backup
	receive := func(to io.Writer) error { return c.receive(ctx, "/api/backup", to) }
	if asked.File == "-" {
		return receive(stdout)
	}
	var found boltstore.Report
	err := writeFile(asked.File, asked.Force, receive, func(path string) (err error) {
		if found, err = boltstore.Check(path); err == nil {
			err = found.Err()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("no backup was made: %w", err)
	}
	printDoubts(stderr, found)
	fmt.Fprintf(stdout, "%s: %s\n", asked.File, summary(found))
	return nil
}

// writeFile makes a file that is whole, durable and readable by its owner only, or
// leaves none. The check, where there is one, sees it under another name.
func writeFile(path string, replace bool, write func(io.Writer) error, check func(path string) error) (err error) {
	if _, err := os.Lstat(path); err == nil && !replace {
		return fmt.Errorf("%s: %w; --force replaces it", path, fs.ErrExist)
	}
	// Replacing a server's file would leave the server with one that nobody finds.
	if err := boltstore.NotInUse(path); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".partial-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if check != nil {
		if err := check(file.Name()); err != nil {
			return err
		}
	}
	if err := boltstore.NotInUse(path); err != nil { // as it may be by now
		return err
	}
	return boltstore.Place(file.Name(), path, replace)
}
