package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script. Besides testscript's own commands there are:
//
//	server [args]   starts snip on free ports and sets $ADDR, $URL and $ADMIN
//	post [key]      makes a link, with a key where one is given, and prints the status
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
				ts.Setenv("ADMIN", p.admin)
			},
			"post": func(ts *testscript.TestScript, neg bool, args []string) {
				request, err := http.NewRequest(http.MethodPost, ts.Getenv("URL")+"/api/links", strings.NewReader(`{"url":"https://example.org/"}`))
				ts.Check(err)
				request.Header.Set("Content-Type", "application/json")
				if len(args) > 0 {
					request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(ts.ReadFile(args[0])))
				}
				response, err := http.DefaultClient.Do(request)
				ts.Check(err)
				ts.Check(response.Body.Close())
				fmt.Fprintln(ts.Stdout(), response.StatusCode)
			},
			"stop": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Check((*ts.Value(running{}).(**process)).stop())
			},
		},
	})
}
