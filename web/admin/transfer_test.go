package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/memstore"
)

// everything is a link that uses every field.
func everything() shortener.Managed {
	return shortener.Managed{
		Link: shortener.Link{
			Slug: "everything", Destination: "https://example.org/\u2028<&>;=1+1?q=\"ü\"", Creator: quota.Subject("\x00\xff0123456789abcd"),
			CreatedAt: time.Date(2026, 11, 29, 12, 0, 0, 1000, time.UTC), ExpiresAt: time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
			Key: 7, MaxVisits: 5, ForwardQuery: true, ShowsTarget: true, DirectRedirect: true, Token: shortener.NewToken().Hash(), TakenDown: "spam",
		},
		Visited: 4,
		Visits: shortener.Visits{
			Kinds: [5]int64{1, 2, 3, 4, 5}, Days: map[string]int64{"2026-11-29": 1, "2026-11-30": 2}, Referrers: map[string]int64{"b.example": 1, "a.example": 2, "other": 3},
		},
	}
}

// A line holds all of a link but the day that paid for it; a field more of a link
// fails here until it is in the line.
func TestRowsAreLossless(t *testing.T) {
	t.Parallel()
	full := everything()
	link := reflect.ValueOf(full.Link)
	for i := range link.NumField() {
		name := link.Type().Field(i).Name
		if link.Field(i).IsZero() != (name == "Day" || name == "Deleted") {
			t.Errorf("the field %s is not tested", name)
		}
	}
	deleted := shortener.Managed{Link: full.Link.Tombstone()}
	bare := shortener.Managed{Link: shortener.Link{Slug: "bare", Destination: "https://example.org/", CreatedAt: time.Unix(0, 0).UTC()}}
	for _, m := range []shortener.Managed{full, deleted, bare} {
		line, err := encodeRow(m)
		if err != nil || bytes.Count(line, []byte("\n")) != 1 || !bytes.HasSuffix(line, []byte("}\n")) {
			t.Fatalf("%q, %v", line, err)
		}
		for range 10 {
			if again, err := encodeRow(m); err != nil || !bytes.Equal(again, line) {
				t.Fatalf("%q and %q, %v", line, again, err)
			}
		}
		got, err := decodeRow(line)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s\nis read as %+v, %v", line, got, err)
		}
	}
	full.Link.Destination = "https://example.org/\xff"
	if line, err := encodeRow(full); err == nil {
		t.Errorf("what is no text becomes %q", line)
	}
	for _, line := range []string{
		"", "{", "[]", "null {}", `{"slug":"a","url":"https://a.b/","created_at":"2026-11-29T12:00:00Z","extra":1}`, `{"slug":"a","slug":"b"}`,
		`{"Slug":"a"}`, `{"slug":"a","created_at":"yesterday"}`, `{"key":"00"}`, `{"key":"x"}`, `{"token_hash":"00"}`, `{"slug":"` + "\xff" + `"}`,
	} {
		if m, err := decodeRow([]byte(line)); err == nil {
			t.Errorf("%q is read as %+v", line, m)
		} else if strings.Contains(err.Error(), "json") || strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "encoding") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestSafeCells(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                            "",
		"https://example.org/a=b+c":   "https://example.org/a=b+c",
		"=HYPERLINK(\"x\")":           "'=HYPERLINK(\"x\")",
		"+1":                          "'+1",
		"-1":                          "'-1",
		"@SUM(A1)":                    "'@SUM(A1)",
		"\t=1":                        "'\t=1",
		"\r=1":                        "'\r=1",
		"\n=1":                        "'\n=1",
		"\x00=1":                      "'\x00=1",
		"＝1":                          "'＝1",
		"＠x":                          "'＠x",
		"'=1":                         "'=1",
		"https://a.example/;=1+1":     "https://a.example/;=1+1",
		";=cmd|' /C calc'!A0":         ";=cmd|' /C calc'!A0",
		"https://a.example/ü?x=\"y\"": "https://a.example/ü?x=\"y\"",
	} {
		if got := safeCell(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestCSV(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	table, err := newCSV(&out)
	if err != nil {
		t.Fatal(err)
	}
	m := everything()
	if err := table.Write(csvRow(m)); err != nil {
		t.Fatal(err)
	}
	table.Flush()
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(out.String(), "\ufeff"))).ReadAll()
	want := []string{
		"everything", "https://example.org/\u2028<&>;=1+1?q=\"ü\"", "2026-11-29T12:00:00.000001Z", "9999-12-31T23:59:59.999999Z",
		"5", "4", "true", "spam", "false", "1", "2", "3", "4", "5", "true",
	}
	if !strings.HasPrefix(out.String(), "\ufeffslug,url,") {
		t.Errorf("the table begins with %.20q", out.String())
	}
	if err != nil || len(rows) != 2 || len(rows[0]) != len(want) || !slices.Equal(rows[1], want) || strings.Count(out.String(), "\r\n") != 2 {
		t.Errorf("%q, %v, want %q", out.String(), err, want)
	}
}

// What is cut off cannot be taken for whole, and what fails at once is said.
func TestStreams(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 20_000)
	for name, row := range map[string]struct {
		write  func(context.Context, io.Writer) error
		status int
		whole  bool
	}{
		"whole":           {func(_ context.Context, w io.Writer) error { _, err := io.WriteString(w, text); return err }, http.StatusOK, true},
		"nothing":         {func(context.Context, io.Writer) error { return nil }, http.StatusOK, true},
		"it cannot begin": {func(context.Context, io.Writer) error { return shortener.ErrUnavailable }, http.StatusServiceUnavailable, true},
		"it ends in between": {func(_ context.Context, w io.Writer) error {
			_, _ = io.WriteString(w, text)
			return errors.New("the disk")
		}, http.StatusOK, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := shortener.New(shortener.Config{Store: memstore.New(), Now: time.Now})
			h, err := New(Config{Service: service, Backup: row.write, Token: token, Log: slog.New(slog.DiscardHandler), Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(h)
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/backup", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+token)
			response, err := server.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if response.StatusCode != row.status || (err == nil) != row.whole {
				t.Errorf("%d, %d bytes, %v", response.StatusCode, len(body), err)
			}
			sum := sha256.Sum256(body)
			digest := response.Trailer.Get(DigestField)
			if sent := digest == Digest(sum[:]); sent != (row.whole && row.status == http.StatusOK) {
				t.Errorf("the digest of %d bytes is %q", len(body), digest)
			}
		})
	}
}

func TestExportAndImport(t *testing.T) {
	t.Parallel()
	h := newAdmin(t)
	do := func(method, target, body string, status int, contains string) {
		t.Helper()
		wantAnswer(t, ask(h, method, target, "Bearer "+token, body), status, contains)
	}
	line := `{"slug":"abc","url":"https://example.org/","created_at":"2026-11-29T12:00:00Z"}` + "\n"
	do("POST", "/api/import", line, http.StatusOK, `{"results":[{"slug":"abc","outcome":"created"}]}`)
	do("POST", "/api/import", strings.TrimSuffix(line, "\n"), http.StatusOK, `{"results":[{"slug":"abc","outcome":"present"}]}`)
	do("POST", "/api/import", strings.Replace(line, "org", "net", 1), http.StatusOK, `{"slug":"abc","outcome":"refused","detail":"another link has this slug"}`)
	do("POST", "/api/import", line+"{\n"+strings.Replace(line, "abc", "def", 1), http.StatusOK, `"outcome":"present"},{"outcome":"refused","detail":"`)
	do("POST", "/api/import", strings.Replace(line, "https", "ftp", 1), http.StatusOK, `"outcome":"refused","detail":"url: must start with`)
	do("POST", "/api/import", strings.Repeat(line, MaxRows+1), http.StatusBadRequest, "at most 256 are allowed")
	do("POST", "/api/import", strings.Repeat("x", MaxImport+1), http.StatusBadRequest, `"the body cannot be used: it has more than 2097152 bytes."`)
	do("POST", "/api/keys", strings.Repeat("x", maxBody+1), http.StatusBadRequest, `"the body cannot be used: it has more than 65536 bytes."`)
	for _, rest := range []string{`,"slug":"def"}`, `,"url":"` + "\xff" + `"}`, `,"url":"https://exam`, `,"url":5}`, `,"color":1}`} {
		do("POST", "/api/import", `{"slug":"abc"`+rest, http.StatusOK, `[{"slug":"`)
	}
	do("GET", "/api/export", "", http.StatusOK, line+strings.Replace(line, "abc", "def", 1))
	do("GET", "/api/export?format=csv", "", http.StatusOK, "abc,https://example.org/,2026-11-29T12:00:00Z,,0,0,false,,false,0,0,0,0,0,false\r\n")
	do("GET", "/api/export?format=xml", "", http.StatusBadRequest, "jsonl or csv is needed")
}
