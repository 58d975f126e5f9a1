package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOneSeriesFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("a wrong answer")
	measured := func(err error) func(context.Context, *table) error {
		return func(_ context.Context, t *table) error {
			t.note("a note")
			return err
		}
	}
	var out strings.Builder
	err := measureEach(t.Context(), []series{{"first", measured(nil)}, {"second", measured(broken)}, {"third", measured(nil)}}, &out)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "second") {
		t.Errorf("got error %v, want that of the second series", err)
	}
	if got := out.String(); strings.Count(got, "a note") != 3 || strings.Count(got, "FAILED  second: a wrong answer") != 1 {
		t.Errorf("printed %q, want three blocks and one failure", got)
	}
}

func TestOpenFolder(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/var/tmp", "bench-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	inner := filepath.Join(dir, "inner")
	if err := errors.Join(os.Mkdir(inner, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if !open(inner) {
		t.Error("every user may enter the folder, and open says no")
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if open(inner) {
		t.Error("the folder above is its owner's alone, and open says yes")
	}
}
