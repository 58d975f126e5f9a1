package admin

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"time"

	"snip/shortener"
)

const (
	// stall is how long whoever receives a stream may take nothing of it.
	stall = 30 * time.Second
	// longest bounds a stream: while a backup is copied, the file can only grow.
	longest = 4 * time.Hour

	// DigestField is the trailer with the SHA-256 of a stream that is whole
	// (RFC 9530).
	DigestField = "Repr-Digest"

	// MaxImport bounds the body of an import, in bytes, and MaxRows its lines.
	MaxImport = 2 << 20
	MaxRows   = 256

	// exportRows is how many links an export reads in one transaction.
	exportRows = 256
)

// Digest is the value of the trailer [DigestField] for a sum.
func Digest(sum []byte) string {
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum) + ":"
}

// errNoFile says how what is in no file is backed up.
var errNoFile = errors.New("there is no data file to copy: a database is backed up with its own tools, such as pg_dump or pg_basebackup")

// backup streams a copy of the data file.
func (s *server) backup(w http.ResponseWriter, r *http.Request) error {
	if s.copyFile == nil {
		return errNoFile
	}
	s.record(r.Context(), "backup")
	return s.stream(w, r, "application/octet-stream", s.copyFile)
}

// export streams every link, as JSON lines or CSV. Without its line in the audit log
// nothing is handed out.
func (s *server) export(w http.ResponseWriter, r *http.Request) error {
	format := cmp.Or(r.URL.Query().Get("format"), "jsonl")
	if format != "jsonl" && format != "csv" {
		return &badRequest{fmt.Errorf("the format %q is not known: jsonl or csv is needed", format)}
	}
	if err := s.service.Record(r.Context(), "export", format); err != nil {
		return err
	}
	switch format {
	case "jsonl":
		return s.stream(w, r, "application/jsonl", func(ctx context.Context, to io.Writer) error {
			return s.eachLink(ctx, func(m shortener.Managed) error {
				line, err := encodeRow(m)
				if err == nil {
					_, err = to.Write(line)
				}
				return err
			})
		})
	default:
		return s.stream(w, r, "text/csv; charset=utf-8; header=present", func(ctx context.Context, to io.Writer) error {
			table, err := newCSV(to)
			if err == nil {
				err = s.eachLink(ctx, func(m shortener.Managed) error { return table.Write(csvRow(m)) })
			}
			table.Flush()
			return errors.Join(err, table.Error())
		})
	}
}

// eachLink reads the links in small transactions: one that lasts keeps the file
// from using pages again.
func (s *server) eachLink(ctx context.Context, use func(shortener.Managed) error) error {
	for mark := ""; ; {
		links, next, err := s.service.Export(ctx, mark, exportRows)
		if err != nil {
			return err
		}
		for _, m := range links {
			if err := use(m); err != nil {
				return err
			}
		}
		if mark = next; mark == "" {
			return nil
		}
	}
}

// stream answers with what write writes. Whoever receives it learns by its end, and
// by the digest behind it, whether it is whole.
func (s *server) stream(w http.ResponseWriter, r *http.Request, mediaType string, write func(context.Context, io.Writer) error) error {
	ctx, cancel := context.WithTimeout(r.Context(), longest)
	defer cancel()
	control := http.NewResponseController(w)
	// The server's time for reading a request would end this one while it is answered.
	_ = control.SetReadDeadline(time.Time{})
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	out := &steady{to: w, control: control, sum: sha256.New(), mediaType: mediaType}
	buffered := bufio.NewWriterSize(out, 64<<10)
	err := write(ctx, buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		out.begin() // of nothing
		w.Header().Set(DigestField, Digest(out.sum.Sum(nil)))
		return nil
	}
	if !out.begun {
		return err
	}
	s.log.Error("a stream to an operator was cut off", "path", r.URL.Path, "err", err)
	panic(http.ErrAbortHandler) // the connection is closed, so that the end is missed
}

// steady writes an answer as long as somebody takes it.
type steady struct {
	to        http.ResponseWriter
	control   *http.ResponseController
	sum       hash.Hash
	mediaType string
	begun     bool
}

func (s *steady) Write(p []byte) (int, error) {
	s.begin()
	s.sum.Write(p)
	// Not every ResponseWriter of a test has deadlines.
	_ = s.control.SetWriteDeadline(time.Now().Add(stall))
	return s.to.Write(p)
}

// begin sets the header. It is not there before, for what fails at once is answered
// with a problem.
func (s *steady) begin() {
	if s.begun {
		return
	}
	s.begun = true
	s.to.Header().Set("Content-Type", s.mediaType)
	s.to.Header().Set("Trailer", DigestField)
}

// ImportResult is what became of a line.
type ImportResult struct {
	Slug    string `json:"slug,omitzero"`
	Outcome string `json:"outcome"` // one of those below
	Detail  string `json:"detail,omitzero"`
}

// The outcomes of a line.
const (
	ImportCreated = "created"
	ImportPresent = "present" // the same link is there already
	ImportRefused = "refused" // for the reason in the detail
)

// importLinks stores the links of JSON lines as an export has them, and says of each
// line that is not blank what became of it.
func (s *server) importLinks(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r, MaxImport)
	if err != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimPrefix(body, []byte("\ufeff")), []byte("\n"))
	lines = slices.DeleteFunc(lines, func(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 })
	if len(lines) > MaxRows {
		return &badRequest{fmt.Errorf("the body has %d lines; at most %d are allowed", len(lines), MaxRows)}
	}
	results := make([]ImportResult, len(lines))
	var links []shortener.Managed
	var of []int // the line of each link
	for i, line := range lines {
		m, err := decodeRow(line)
		results[i] = s.resultOf(m, err)
		if err == nil {
			links, of = append(links, m), append(of, i)
		}
	}
	said, err := s.service.Import(r.Context(), links, len(lines)-len(links))
	if err != nil {
		return err
	}
	created := 0
	for i, err := range said {
		results[of[i]] = s.resultOf(links[i], err)
		if err == nil {
			created++
		}
	}
	if created > 0 {
		s.log.Info("links were imported", "links", created)
	}
	return writeJSON(w, http.StatusOK, struct {
		Results []ImportResult `json:"results"`
	}{results})
}

func (s *server) resultOf(m shortener.Managed, err error) ImportResult {
	slug := string(m.Link.Slug)
	switch {
	case err == nil:
		return ImportResult{slug, ImportCreated, ""}
	case errors.Is(err, shortener.ErrPresent):
		return ImportResult{slug, ImportPresent, ""}
	case errors.Is(err, shortener.ErrSlugTaken):
		return ImportResult{slug, ImportRefused, "another link has this slug"}
	}
	if invalid, ok := errors.AsType[*shortener.InvalidError](err); ok && s.explain != nil {
		err = fmt.Errorf("%s: %w", invalid.Field, s.explain(invalid.Reason))
	}
	return ImportResult{slug, ImportRefused, err.Error()}
}
