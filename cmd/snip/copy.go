package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"snip/shortener/boltstore"
	"snip/shortener/pgstore"
)

// copyStore is the command copy.
func copyStore(a asked, stdout io.Writer) error {
	asked := a.line.Copy
	if err := needFile(asked.From, "copy reads"); err != nil {
		return err
	}
	to, err := parseStore(asked.To)
	if err == nil && to.database == "" {
		err = errors.New("a postgres:// URL is needed")
	}
	if err != nil {
		return &settingsError{[]error{fmt.Errorf("--to: %w", err)}}
	}
	r := reader{given: a.settings}
	if to = withPasswordFile(&r, "to", to); len(r.problems) > 0 {
		return &settingsError{r.problems}
	}
	from, found, err := boltstore.OpenContents(asked.From)
	if err != nil {
		return fmt.Errorf("nothing was copied: %w", err)
	}
	defer from.Close() // nothing is written
	fmt.Fprintf(stdout, "%s: %s\n", asked.From, summary(found))
	printDoubts(stdout, found)
	const said = 100_000
	copied, err := pgstore.Copy(context.Background(), to.database, from, from.ID(), func(kind string, count int64) {
		if count%said == 0 {
			fmt.Fprintf(stdout, "%s: %d so far\n", kind, count)
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	for _, c := range copied {
		fmt.Fprintf(stdout, "%s: %d, checksum %x, the same in the database\n", c.Kind, c.Count, c.Checksum[:8])
	}
	fmt.Fprintln(stdout, "copied")
	return nil
}
