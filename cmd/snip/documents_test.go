package main

import (
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// root is the folder of the module.
const root = "../.."

// documents returns the text of every page that is written for people, by its path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages := make(map[string]string)
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			pages[name] = readText(t, name)
		}
	}
	if len(pages) < 13 {
		t.Fatalf("only %d pages", len(pages))
	}
	return pages
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fenced  = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```$")
	coded   = regexp.MustCompile("`([^`\n]+)`")
	linked  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// prose is a page without its blocks of code.
func prose(page string) string { return fenced.ReplaceAllString(page, "") }

// shellLines are the lines of a page's blocks that somebody types.
func shellLines(page string) (lines []string) {
	for _, block := range fenced.FindAllStringSubmatch(page, -1) {
		switch block[1] {
		case "sh":
			lines = append(lines, strings.Split(block[2], "\n")...)
		case "console":
			for _, line := range strings.Split(block[2], "\n") {
				if typed, ok := strings.CutPrefix(line, "$ "); ok {
					lines = append(lines, typed)
				}
			}
		}
	}
	return lines
}

// anchors are the fragments that GitHub gives to a page's headings.
func anchors(page string) (all []string) {
	for _, h := range heading.FindAllStringSubmatch(prose(page), -1) {
		text := linked.ReplaceAllString(h[1], "")
		all = append(all, strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(text), ""), " ", "-"))
	}
	return all
}

// Every link between the pages, and to a file of the repository, leads somewhere.
func TestDocumentsLink(t *testing.T) {
	t.Parallel()
	pages := documents(t)
	seen := 0
	for name, page := range pages {
		for _, link := range linked.FindAllStringSubmatch(prose(page), -1) {
			target, err := url.Parse(link[1])
			if err != nil || target.Scheme != "" {
				continue
			}
			seen++
			file := name
			if target.Path != "" {
				file = filepath.Join(filepath.Dir(name), target.Path)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if target.Fragment != "" && !slices.Contains(anchors(readText(t, file)), target.Fragment) {
				t.Errorf("%s: there is no #%s in %s", name, target.Fragment, file)
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d links", seen)
	}
}

// A file, a folder or a test that a page names is there.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	t.Parallel()
	tests := make(map[string]bool)
	var sources []string
	if err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		sources = append(sources, filepath.ToSlash(path))
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "storetest") {
			for _, f := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`).FindAllStringSubmatch(readText(t, path), -1) {
				tests[f[1]] = true
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile(`^[\w./-]*[\w-]\.(?:go|js|css|yaml|yml|md|sh|txtar)$`)
	test := regexp.MustCompile(`^(?:Test|Fuzz)[A-Z]\w+$`)
	seen := 0
	for name, page := range documents(t) {
		for _, code := range coded.FindAllStringSubmatch(prose(page), -1) {
			switch named := code[1]; {
			case test.MatchString(named):
				seen++
				if !tests[named] {
					t.Errorf("%s: there is no test %s", name, named)
				}
			case file.MatchString(named):
				seen++
				if !slices.ContainsFunc(sources, func(path string) bool { return strings.HasSuffix(path, "/"+named) }) {
					t.Errorf("%s: there is no file %s", name, named)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d names", seen)
	}
}

// The page of the first look names the oldest Go that can build the program.
func TestDocumentsNameTheGo(t *testing.T) {
	t.Parallel()
	oldest := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(readText(t, filepath.Join(root, "go.mod")))[1]
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "Makefile"} {
		if !strings.Contains(readText(t, filepath.Join(root, name)), "Go "+oldest+" or newer") {
			t.Errorf("%s does not ask for Go %s", name, oldest)
		}
	}
}

// The targets that pages, or their commands, name are the Makefile's.
func TestDocumentsMake(t *testing.T) {
	t.Parallel()
	makefile := readText(t, filepath.Join(root, "Makefile"))
	for name, page := range documents(t) {
		for _, target := range regexp.MustCompile("(?m)(?:^|`)make ([a-z]+)").FindAllStringSubmatch(page, -1) {
			if !regexp.MustCompile(`(?m)^` + target[1] + `:`).MatchString(makefile) {
				t.Errorf("%s: there is no make %s", name, target[1])
			}
		}
	}
}

// model is the command line as kong knows it.
func model(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := kong.New(&commandLine{}, kong.Name("snip"), kong.Vars{"version": "", "reputation_url": "Google's"}, kong.WithHyphenPrefixedParameters(true))
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// Each row of the settings has the defaults that the command line has, and there is
// a row for each setting.
func TestDocumentsTellDefaults(t *testing.T) {
	t.Parallel()
	rows := make(map[string]string) // the cell of the default by flag
	flags := regexp.MustCompile(`--[a-z0-9-]+`)
	for _, name := range []string{"docs/operating.md", "docs/reputation.md", "README.md"} {
		for line := range strings.Lines(readText(t, filepath.Join(root, name))) {
			cells := strings.Split(line, " | ")
			if !strings.HasPrefix(line, "| `--") || len(cells) < 3 {
				continue
			}
			named := flags.FindAllString(cells[0], -1)
			defaults := strings.Split(cells[1], ", ")
			for i, flag := range named {
				cell := defaults[0]
				if len(defaults) == len(named) {
					cell = defaults[i]
				}
				if before, ok := rows[flag]; ok && before != cell {
					t.Errorf("%s: %s is by default %s, elsewhere %s", name, flag, cell, before)
				}
				rows[flag] = cell
			}
		}
	}
	for _, flag := range model(t).Model.Flags {
		if !isSetting(flag.Value) {
			continue
		}
		cell, ok := rows["--"+flag.Name]
		switch {
		case !ok:
			t.Errorf("no page has a row for --%s", flag.Name)
		case flag.HasDefault && strings.Trim(cell, "`") != flag.Default, !flag.HasDefault && strings.Contains(cell, "`"):
			t.Errorf("--%s is by default %q, the page says %s", flag.Name, flag.Default, cell)
		}
		delete(rows, "--"+flag.Name)
	}
	for flag := range rows {
		t.Errorf("there is no setting %s", flag)
	}
}

// Every command of Snip's that a page tells to type is one, with flags that it has.
func TestDocumentsCommands(t *testing.T) {
	t.Parallel()
	between := regexp.MustCompile(`&&|[;|\n]`)
	begins := regexp.MustCompile(`(?:^|.*[ ('])/?snip ((?:-|[a-z]).*)`) // the last: before it there may be a user of that name
	ends := regexp.MustCompile(` *(?:[)#>]|$).*`)
	inner := regexp.MustCompile(`\$\([^)]*\)`)
	word := regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s]+`)
	seen := 0
	for name, page := range documents(t) {
		lines := shellLines(page)
		for _, code := range coded.FindAllStringSubmatch(prose(page), -1) {
			lines = append(lines, code[1])
		}
		for _, line := range between.Split(inner.ReplaceAllString(strings.Join(lines, "\n"), "X"), -1) {
			found := begins.FindStringSubmatch(line)
			if found == nil || strings.Contains(line, "…") || strings.HasPrefix(strings.TrimSpace(line), "for ") {
				continue
			}
			var args []string
			for _, text := range word.FindAllString(ends.ReplaceAllString(found[1], ""), -1) {
				args = append(args, strings.Trim(text, `'"`))
			}
			seen++
			if err := parses(t, args); err != nil {
				t.Errorf("%s: snip %q: %v", name, args, err)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d commands", seen)
	}
}

// parses reports what is wrong with the arguments, but for what may follow them.
func parses(t *testing.T, args []string) error {
	parser := model(t)
	var exited bool
	parser.Exit, parser.Stdout, parser.Stderr = func(int) { exited = true }, io.Discard, io.Discard
	_, err := parser.Parse(args)
	if err == nil || exited {
		return nil
	}
	if text := err.Error(); strings.HasPrefix(text, "expected ") || strings.HasPrefix(text, "missing flags") {
		return nil // more is typed than the page repeats
	}
	return err
}

// A flag in backticks that is none of Snip's belongs to another program, and is
// listed here.
func TestDocumentsNameFlags(t *testing.T) {
	t.Parallel()
	others := []string{"--ulimit", "--json"}
	known := make(map[string]bool)
	var collect func(*kong.Node)
	collect = func(n *kong.Node) {
		for _, flag := range n.Flags {
			known["--"+flag.Name] = true
		}
		for _, child := range n.Children {
			collect(child)
		}
	}
	collect(model(t).Model.Node)
	for name, page := range documents(t) {
		for _, code := range coded.FindAllStringSubmatch(prose(page), -1) {
			if flag, _, _ := strings.Cut(code[1], " "); strings.HasPrefix(flag, "--") && !known[flag] && !slices.Contains(others, flag) {
				t.Errorf("%s: there is no flag %s", name, flag)
			}
		}
	}
}

// The clock that decides is passed down: only the stores measure how long something
// takes.
func TestClockIsPassedDown(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"quota", "shortener"} {
		if err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			room := filepath.Base(filepath.Dir(path))
			measures := slices.Contains([]string{"boltstore", "pgstore"}, room) || strings.HasSuffix(room, "test")
			if !measures && strings.Contains(readText(t, path), "time.Now()") {
				t.Errorf("%s reads the clock", path)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
