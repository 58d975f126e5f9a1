package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every edit fits the source as it stands, and every test has a name that is
// there: a list that has fallen behind is noticed before anyone runs it.
func TestMutantsFit(t *testing.T) {
	t.Parallel()
	described := map[string]bool{}
	for _, m := range mutants() {
		text, err := os.ReadFile(filepath.Join("..", m.file))
		if err != nil {
			t.Error(err)
			continue
		}
		edited, err := m.edit(string(text))
		if err != nil {
			t.Errorf("%s (%s): %v", m.fault, m.file, err)
		} else if edited == string(text) {
			t.Errorf("%s (%s): the edit changes nothing", m.fault, m.file)
		}
		if described[m.fault] {
			t.Errorf("two mutants are described as %q", m.fault)
		}
		described[m.fault] = true
		if !hasTest(t, filepath.Join("..", m.tested()), m.test) {
			t.Errorf("%s: there is no %s in %s", m.fault, m.test, m.tested())
		}
	}
}

func hasTest(t *testing.T, folder, test string) bool {
	t.Helper()
	name, _, _ := strings.Cut(test, "/")
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T) {") {
			return true
		}
	}
	return false
}

func TestEditMustFitOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a < b":      "a <= b",
		"a <= b":     "",
		"a < b, < c": "",
	} {
		got, err := mutant{from: " < ", to: " <= "}.edit(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("edit of %q: got %q, %v, want %q", text, got, err, want)
		}
	}
}
