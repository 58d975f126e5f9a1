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

// TestCaughtLeavesNothing breaks a rule that a property test notices. rapid must not
// record the failure next to the test, where it would be taken for one of the program.
func TestCaughtLeavesNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    readFile(t, "../go.mod"),
		"go.sum":    readFile(t, "../go.sum"),
		"double.go": "package double\n\nfunc double(n int) int { return n + n }\n",
		"double_test.go": `package double

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDouble(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		if n := rapid.Int().Draw(r, "n"); double(n) != 2*n {
			r.Fatal(n)
		}
	})
}
`,
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := mutant{file: "double.go", from: "n + n", to: "n * n", test: "TestDouble"}
	if caught, err := m.caught(root); !caught || err != nil {
		t.Fatalf("noticed: %t, %v", caught, err)
	}
	if _, err := os.Stat(filepath.Join(root, "testdata")); !os.IsNotExist(err) {
		t.Errorf("the run left a testdata folder: %v", err)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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
