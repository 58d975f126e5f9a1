package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"snip/web/admin"
)

func export(ctx context.Context, c *adminClient, line *commandLine, stdout, _ io.Writer) error {
	asked := line.Export
	receive := func(to io.Writer) error {
		return c.receive(ctx, "/api/export?format="+url.QueryEscape(asked.Format), to)
	}
	if asked.Out == "" {
		return receive(stdout)
	}
	return writeFile(asked.Out, asked.Force, receive, nil)
}

func importLinks(ctx context.Context, c *adminClient, line *commandLine, stdout, stderr io.Writer) error {
	from := os.Stdin
	if path := line.Import.File; path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		from = file
	}
	i := importer{client: c, report: bufio.NewWriter(stdout), outcomes: map[string]int{}}
	err := i.run(ctx, from)
	if err = errors.Join(err, i.report.Flush()); err != nil {
		return fmt.Errorf("the import stopped after line %d: %s. Fix that, and import the same file again", i.reported, strings.TrimSuffix(err.Error(), "."))
	}
	fmt.Fprintf(stderr, "%d links were made, %d were there already, %d lines were refused\n",
		i.outcomes[admin.ImportCreated], i.outcomes[admin.ImportPresent], i.outcomes[admin.ImportRefused])
	if i.outcomes[admin.ImportRefused] > 0 {
		return errors.New("not every line could be imported")
	}
	return nil
}

// importer sends lines in batches and reports what becomes of each.
type importer struct {
	client   *adminClient
	report   *bufio.Writer
	batch    bytes.Buffer
	lines    []int // in the batch, by their numbers in the file
	reported int   // how many lines are done with
	outcomes map[string]int
}

// longestLine is far above the longest that an export writes, and no more than one
// request may hold.
const longestLine = admin.MaxImport / 2

func (i *importer) run(ctx context.Context, from io.Reader) error {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, longestLine)
	n := 1
	for ; scanner.Scan(); n++ {
		line := scanner.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if len(i.lines) == admin.MaxRows || i.batch.Len()+len(line)+1 > admin.MaxImport {
			if err := i.send(ctx); err != nil {
				return err
			}
		}
		i.batch.Write(line)
		i.batch.WriteByte('\n')
		i.lines = append(i.lines, n)
	}
	if len(i.lines) > 0 {
		if err := i.send(ctx); err != nil {
			return err
		}
	}
	err := scanner.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("it has %d bytes or more", longestLine)
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", n, err)
	}
	return nil
}

func (i *importer) send(ctx context.Context) error {
	var answer struct {
		Results []admin.ImportResult `json:"results"`
	}
	if err := i.client.send(ctx, http.MethodPost, "/api/import", i.batch.Bytes(), &answer); err != nil {
		return err
	}
	if len(answer.Results) != len(i.lines) {
		return fmt.Errorf("the server answered for %d of %d lines", len(answer.Results), len(i.lines))
	}
	for n, r := range answer.Results {
		i.reported = i.lines[n]
		i.outcomes[r.Outcome]++
		text := fmt.Sprintf("%d\t%s\t%s", i.reported, printable(r.Slug), r.Outcome)
		if r.Detail != "" {
			text += "\t" + printable(r.Detail)
		}
		fmt.Fprintln(i.report, text)
	}
	i.batch.Reset()
	i.lines = i.lines[:0]
	return nil
}
