package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mayImport says which of our packages each of them may know. A package that is
// not listed may know none and is reported, so a new one needs its line here.
var mayImport = map[string][]string{
	"snip/mutation":                      {},
	"snip/quota":                         {},
	"snip/quota/boltquota":               {"snip/quota"},
	"snip/quota/pgquota":                 {"snip/quota"},
	"snip/quota/pgquota/pgtest":          {},
	"snip/quota/quotatest":               {"snip/quota"},
	"snip/shortener":                     {"snip/quota"},
	"snip/shortener/blocklist":           {"snip/shortener"},
	"snip/shortener/boltstore":           {"snip/quota", "snip/quota/boltquota", "snip/shortener"},
	"snip/shortener/memstore":            {"snip/quota", "snip/shortener"},
	"snip/shortener/pgstore":             {"snip/quota", "snip/quota/pgquota", "snip/shortener"},
	"snip/shortener/storetest":           {"snip/quota", "snip/shortener"},
	"snip/shortener/webrisk":             {"snip/shortener"},
	"snip/shortener/webrisk/webrisktest": {"snip/shortener/webrisk"},
	"snip/static":                        {},
	"snip/web":                           {"snip/quota", "snip/shortener", "snip/static", "snip/web/foreign"},
	"snip/web/admin":                     {"snip/quota", "snip/shortener", "snip/static", "snip/web/foreign"},
	"snip/web/foreign":                   {},
	"snip/cmd/snip":                      {"snip/quota", "snip/shortener", "snip/shortener/blocklist", "snip/shortener/boltstore", "snip/shortener/pgstore", "snip/shortener/webrisk", "snip/web", "snip/web/admin"},
}

// confined says which packages alone may use a technology.
var confined = []struct {
	prefix string
	to     []string
}{
	{"github.com/labstack/echo/", []string{"snip/web"}},
	{"go.etcd.io/bbolt", []string{"snip/quota/boltquota", "snip/shortener/boltstore"}},
	{"github.com/jackc/pgx/", []string{"snip/quota/pgquota", "snip/quota/pgquota/pgtest", "snip/shortener/pgstore"}},
	{"github.com/alecthomas/kong", []string{"snip/cmd/snip"}},
	{"net/http", []string{"snip/shortener/webrisk", "snip/shortener/webrisk/webrisktest", "snip/web", "snip/web/admin", "snip/web/foreign", "snip/cmd/snip"}},
	{"github.com/prometheus/", []string{"snip/web/admin"}},
	{"github.com/nicksnyder/go-i18n/", []string{"snip/web"}},
	{"golang.org/x/text/", []string{"snip/web"}},
}

// wrongArrows returns a sentence for each import that must not be, sorted. The
// graph holds what each of our packages imports outside its tests.
func wrongArrows(graph map[string][]string) []string {
	var wrong []string
	for from, imports := range graph {
		known, listed := mayImport[from]
		if !listed {
			wrong = append(wrong, from+" is not listed")
		}
		for _, to := range imports {
			if strings.HasPrefix(to, "snip/") && !slices.Contains(known, to) {
				wrong = append(wrong, from+" must not import "+to)
			}
			for _, c := range confined {
				if strings.HasPrefix(to, c.prefix) && !slices.Contains(c.to, from) {
					wrong = append(wrong, from+" must not import "+to)
				}
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	list := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	graph := map[string][]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		graph[p.ImportPath] = p.Imports
	}
	for p := range mayImport {
		if _, ok := graph[p]; !ok {
			t.Errorf("%s is listed and does not exist", p)
		}
	}
	for _, wrong := range wrongArrows(graph) {
		t.Error(wrong)
	}
}

func TestWrongArrowsAreFound(t *testing.T) {
	t.Parallel()
	got := wrongArrows(map[string][]string{
		"snip/quota":              {"fmt", "snip/shortener", "go.etcd.io/bbolt"},
		"snip/shortener":          {"snip/quota", "net/http"},
		"snip/shortener/memstore": {"github.com/labstack/echo/v4"},
		"snip/web":                {"snip/shortener", "net/http", "github.com/labstack/echo/v4", "snip/shortener/boltstore"},
		"snip/helpers":            {"fmt"},
	})
	want := []string{
		"snip/helpers is not listed",
		"snip/quota must not import go.etcd.io/bbolt",
		"snip/quota must not import snip/shortener",
		"snip/shortener must not import net/http",
		"snip/shortener/memstore must not import github.com/labstack/echo/v4",
		"snip/web must not import snip/shortener/boltstore",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// No file may grow beyond what can be read in one sitting.
func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	const most = 500
	seen := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		if lines := bytes.Count(text, []byte("\n")); lines > most {
			t.Errorf("%s has %d lines, more than %d", path, lines, most)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < len(mayImport) {
		t.Errorf("only %d files were seen", seen)
	}
}
