package web

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"snip/quota"
	"snip/shortener"
	"snip/static"
)

func apiPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The page lists the statuses and codes of refusals that the description has, and no others.
func TestDocumentedRefusals(t *testing.T) {
	t.Parallel()
	_, page, _ := strings.Cut(apiPage(t), "## Refusals\n")
	page, _, _ = strings.Cut(page, "\n## ")
	word := regexp.MustCompile(`\w+`)
	documented, described := make(map[string]bool), make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| (\\d{3}) \\| (`[^|]+) \\|").FindAllStringSubmatch(page, -1) {
		for _, code := range word.FindAllString(row[2], -1) {
			documented[row[1]+" "+code] = true
		}
	}
	// Of a batch the first code is told, so the description of a status may name more.
	answers := regexp.MustCompile(`status: \{const: (\d+)\}\s+code: \{(?:const|enum): (\w+|\[[^\]]+\])\}`)
	for _, answer := range answers.FindAllStringSubmatch(static.OpenAPI, -1) {
		for _, code := range word.FindAllString(answer[2], -1) {
			described[answer[1]+" "+code] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(documented))); diff != "" || len(described) < 15 {
		t.Errorf("refusals (-openapi.yaml +api.md):\n%s", diff)
	}
}

// Every example of the page is run, in order, on a service of its own: it is answered
// with the status, the headers and the fields that the page shows.
func TestDocumentedExamples(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("curl is missing: install the package curl")
		}
		t.Skip("curl is missing, so the examples of docs/api.md cannot run: install curl.")
	}
	const address = "http://localhost:8080"
	s := newSite(t, siteSetup{public: address})
	full := newSite(t, siteSetup{public: address, every: 10 * time.Second, burst: 1, policy: &quota.Policy{Client: 50}})
	wantAnswer(t, full.do(call{body: goodJSON, header: asJSON, from: "127.0.0.1:1"}), http.StatusCreated, "")
	key := s.makeKey(t, "example", 50)
	open, closed := httptest.NewServer(s), httptest.NewServer(full)
	t.Cleanup(open.Close)
	t.Cleanup(closed.Close)
	folder, token := t.TempDir(), ""
	if err := os.WriteFile(filepath.Join(folder, "list.txt"), []byte("https://example.org/1\nhttps://example.org/2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(apiPage(t), -1) {
		for _, example := range strings.Split(block[1], "$ ")[1:] {
			typed, shown, _ := strings.Cut(example, "\n")
			want := answerOf(shown)
			server := open.URL
			if want.status == "429" {
				server = closed.URL
			}
			command := strings.NewReplacer(address, server, "GCL2JYH4HBCWZHDZBEEXAFW3KE", token, "GCL2…", token, "snip_…", key).Replace(typed)
			shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", command+` -sS -w '\n%{http_code}'`)
			shell.Dir = folder
			out, err := shell.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", typed, err, out)
			}
			ran++
			end := strings.LastIndexByte(string(out), '\n')
			got := answerOf(strings.ReplaceAll(string(out[:end]), "\r", ""))
			got.status = string(out[end+1:])
			if made, ok := got.body.(map[string]any); ok && token == "" {
				token, _ = made["manage_token"].(string)
				visits := shortener.Visits{Days: map[string]int64{"2026-11-29": 5}, Referrers: map[string]int64{"news.example": 4}}
				if err := s.store.AddVisits(t.Context(), map[shortener.Slug]shortener.Visits{"spring-2027": visits}); err != nil {
					t.Fatal(err)
				}
			}
			if want.status == "" && got.status[0] != '2' || want.status != "" && got.status != want.status {
				t.Errorf("%s: %s\n%s", typed, got.status, out)
			}
			for _, line := range want.headers {
				if !slices.Contains(got.headers, line) {
					t.Errorf("%s: no header %q in\n%s", typed, line, out)
				}
			}
			if want.body == nil {
				continue
			}
			if diff := cmp.Diff(shape(want.body), shape(got.body)); diff != "" {
				t.Errorf("%s: (-page +answer)\n%s", typed, diff)
			}
		}
	}
	if ran < 15 {
		t.Errorf("only %d examples", ran)
	}
}

// example is an answer as curl shows it, or the page.
type example struct {
	status  string // empty where it is not shown
	headers []string
	body    any // nil where it is no JSON, or only a part of it
}

func answerOf(text string) (e example) {
	if strings.HasPrefix(text, "HTTP/") {
		head, body, _ := strings.Cut(text, "\n\n")
		lines := strings.Split(strings.TrimSpace(head), "\n")
		e.status, e.headers, text = strings.Fields(lines[0])[1], lines[1:], body
	}
	if json.Unmarshal([]byte(text), &e.body) != nil || strings.Contains(text, "…") {
		e.body = nil
	}
	if status := regexp.MustCompile(`"status":(\d{3})`).FindStringSubmatch(text); status != nil {
		e.status = status[1]
	}
	return e
}

// shape is what must be equal of two bodies: their fields, and what a refusal says.
func shape(body any) any {
	switch v := body.(type) {
	case map[string]any:
		fields := make(map[string]any)
		for name, value := range v {
			fields[name] = shape(value)
			if v["code"] != nil {
				fields[name] = value
			}
		}
		return fields
	case []any:
		if len(v) > 0 {
			return []any{shape(v[0])}
		}
	}
	return nil
}
