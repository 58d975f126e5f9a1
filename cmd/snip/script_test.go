package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script. Besides testscript's own commands there are:
//
//	server [args]   starts snip on a free port and sets $ADDR and $URL
//	stop            tells it to stop, and fails unless it exits with 0
func TestScripts(t *testing.T) {
	t.Parallel()
	type running struct{}
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", binaryDir+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Values[running{}] = new(*process)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"server": func(ts *testscript.TestScript, neg bool, args []string) {
				p, err := startProcess(ts.MkAbs("."), nil, args...)
				ts.Check(err)
				ts.Defer(p.kill)
				*ts.Value(running{}).(**process) = p
				ts.Setenv("ADDR", p.addr)
				ts.Setenv("URL", p.url)
			},
			"stop": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Check((*ts.Value(running{}).(**process)).stop())
			},
		},
	})
}
