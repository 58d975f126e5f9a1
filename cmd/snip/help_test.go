package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goType is what kong calls a value without a name of its own.
var goType = regexp.MustCompile(`=(STRING|BOOL|U?INT|U?INT-\d+|FLOAT-\d+|DURATION|SWITCHED)\b`)

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
