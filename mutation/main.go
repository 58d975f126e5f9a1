// Command mutation breaks the rules of the limiter, one at a time, and expects a
// named test to notice. It prints a table in Markdown and ends with status 1 when
// a broken rule was not noticed.
//
//	go run ./mutation          # every mutant
//	go run ./mutation hungry   # those whose description has the word
//
// A mutant is one edit of one file, kept in the lists beside this file: what a
// tired programmer might write, not every operator that could be swapped, so that
// each line of the table says something about the product. The source itself is
// never touched: go test is given the edited file by -overlay.
//
// An edit that no longer fits its file, a mutant that does not compile, and a test
// that fails with nothing broken are faults of the run: the list has to follow the
// code.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one broken rule and the test that must notice it.
type mutant struct {
	fault    string // what the program then does wrong
	file     string // from the module's root, with slashes
	from, to string // from stands exactly once in the file
	test     string // its path of names, as go test prints it, in the file's package
	room     string // the test's package where it is another, such as "./web"
}

func main() {
	if err := run(strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

// mutants returns the whole list.
func mutants() []mutant {
	return slices.Concat(limits(), reservations(), stores(), programs(), requests(), checks(), watching())
}

func run(word string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	var chosen []mutant
	for _, m := range mutants() {
		if strings.Contains(m.fault, word) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant is described with %q", word)
	}
	if err := allPass(root, chosen); err != nil {
		return err
	}
	fmt.Println("| broken rule | in | noticed by |\n|---|---|---|")
	survivors := 0
	var unfit []error
	for _, m := range chosen {
		caught, err := m.caught(root)
		if err != nil {
			unfit = append(unfit, fmt.Errorf("%s (%s): %w", m.fault, m.file, err))
			continue
		}
		by := fmt.Sprintf("`%s` in `%s`", m.test, m.tested())
		if !caught {
			survivors++
			by = "**nobody**; expected " + by
		}
		fmt.Printf("| %s | `%s` | %s |\n", m.fault, m.file, by)
	}
	fmt.Printf("\n%d of %d broken rules were noticed.\n", len(chosen)-survivors-len(unfit), len(chosen))
	if survivors > 0 {
		unfit = append(unfit, fmt.Errorf("%d broken rules were not noticed", survivors))
	}
	return errors.Join(unfit...)
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// allPass makes sure that the tests exist and pass where nothing is broken: one
// that fails anyway notices nothing.
func allPass(root string, chosen []mutant) error {
	seen := map[string]bool{}
	for _, m := range chosen {
		if seen[m.tested()+m.test] {
			continue
		}
		seen[m.tested()+m.test] = true
		out, err := m.goTest(root)
		if err != nil || !strings.Contains(out, "--- PASS: "+m.test+" ") {
			return fmt.Errorf("%s in %s does not pass with nothing broken (%v):\n%s", m.test, m.tested(), err, out)
		}
	}
	return nil
}

// tested is the package whose test must notice.
func (m mutant) tested() string {
	if m.room != "" {
		return m.room
	}
	return "./" + path.Dir(m.file)
}

// caught reports whether the test fails under the mutant.
func (m mutant) caught(root string) (bool, error) {
	folder, err := os.MkdirTemp("", "mutation-*")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(folder)
	original := filepath.Join(root, filepath.FromSlash(m.file))
	text, err := os.ReadFile(original)
	if err != nil {
		return false, err
	}
	edited, err := m.edit(string(text))
	if err != nil {
		return false, err
	}
	broken, overlay := filepath.Join(folder, "broken.go"), filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: broken}})
	if err != nil {
		return false, err
	}
	err = errors.Join(os.WriteFile(broken, []byte(edited), 0o600), os.WriteFile(overlay, replace, 0o600))
	if err != nil {
		return false, err
	}
	out, err := m.goTest(root, "-overlay", overlay)
	switch {
	case err == nil:
		return false, nil
	case strings.Contains(out, "--- FAIL: "+m.test+" "), strings.Contains(out, "\npanic: "):
		return true, nil
	}
	return false, fmt.Errorf("the test could not run: %w\n%s", err, out)
}

func (m mutant) edit(text string) (string, error) {
	if n := strings.Count(text, m.from); n != 1 {
		return "", fmt.Errorf("the text to edit stands there %d times, not once:\n%s", n, m.from)
	}
	return strings.Replace(text, m.from, m.to, 1), nil
}

// goTest runs the one test as make test does. A mutant may well wait for ever, hence the time-out,
// which ends the test in a panic.
func (m mutant) goTest(root string, flags ...string) (string, error) {
	names := strings.Split(m.test, "/")
	for i, name := range names {
		names[i] = "^" + name + "$"
	}
	args := append([]string{"test", "-race", "-v", "-vet=off", "-timeout=60s", "-run", strings.Join(names, "/")}, flags...)
	cmd := exec.Command("go", append(args, m.tested())...)
	cmd.Dir = root
	// A failure that rapid records would stay in the source tree, and be tried first by later runs.
	cmd.Env = append(os.Environ(), "RAPID_NOFAILFILE=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
