package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// goType is what kong calls a value without a name of its own.
var goType = regexp.MustCompile(`=(STRING|BOOL|U?INT|U?INT-\d+|FLOAT-\d+|DURATION|SWITCHED)\b`)

// A value that is wrong is told without the words of Go, and days are a length of time.
func TestWrongValuesAreToldInWords(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ args, want string }{
		{"quota override 192.0.2.1 --block --for 7d", ""},
		{"quota override 192.0.2.1 --block --for soon", `--for: "soon": a length of time such as 90m, 24h or 7d is needed; see snip --help`},
		{"quota override 192.0.2.1 --limit x", `--limit: "x": a whole number that is not too large is needed; see snip --help`},
		{"quota override 192.0.2.1 --limit 99999999999999999999", `--limit: "99999999999999999999": a whole number that is not too large is needed; see snip --help`},
		{"keys create --name a --daily 1e3", `--daily: "1e3": a whole number that is not too large is needed; see snip --help`},
		{"links list --limit 1.5", `--limit: "1.5": a whole number that is not too large is needed; see snip --help`},
		{"audit --before -1", `--before: "-1": a whole number of at least 0 that is not too large is needed; see snip --help`},
	} {
		got := ""
		if _, err := parseCommandLine(strings.Fields(row.args), nil, io.Discard); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("snip %s: %q, want %q", row.args, got, row.want)
		}
	}
	asked, err := parseCommandLine(strings.Fields("quota override 192.0.2.1 --block --for 7d"), nil, io.Discard)
	if err != nil || *asked.line.Quota.Override.For != 7*24*time.Hour {
		t.Errorf("7d is read as %+v, %v", asked.line, err)
	}
}

// No help calls a value by its Go type.
func TestHelpNamesValues(t *testing.T) {
	t.Parallel()
	commands := []string{commandServe, commandHealth, commandMigrate}
	for name := range operatorCommands {
		commands = append(commands, name)
	}
	for name := range fileCommands {
		commands = append(commands, name)
	}
	slices.Sort(commands)
	for _, name := range append(commands, "") {
		words := slices.DeleteFunc(strings.Fields(name), func(word string) bool { return strings.HasPrefix(word, "<") })
		var help strings.Builder
		if _, err := parseCommandLine(append(words, "--help"), nil, &help); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.HasPrefix(help.String(), "Usage: snip") {
			t.Errorf("%s: %.60q", name, help.String())
		}
		for _, line := range strings.Split(help.String(), "\n") {
			if goType.MatchString(line) {
				t.Errorf("snip %s --help: %s", name, strings.TrimSpace(line))
			}
		}
	}
}
