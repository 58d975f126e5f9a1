package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// The tests that break the disk do so from outside, by strace: it makes a system
// call of the real program fail, wait, or be its last. Failpoints in the program
// were rejected: what they break is not what ships.

// needStrace skips the test where no process can be traced.
func needStrace(t *testing.T) {
	t.Helper()
	out, err := exec.Command("strace", "-f", "-qq", "-e", "trace=none", "true").CombinedOutput()
	if err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("strace: %v: %s", err, out)
	}
	t.Skipf("needs strace and the right to trace a process (install strace; in a container, allow ptrace): %v: %s", err, out)
}

// startTraced is startProcess under strace, which does as the options say and
// writes what it sees to the file trace. That is whole once the process has ended.
func startTraced(dir, trace string, options []string, args ...string) (*process, error) {
	line := slices.Concat(
		// -D: the program stays our child, and strace watches from aside. With
		// --seccomp-bpf, which is faster, strace 6.1 sends no signals.
		[]string{"-D", "-f", "-qq", "-xx", "-s", "1048576", "-o", trace},
		options, []string{binary, "--listen", "127.0.0.1:0", "--admin-listen", "off"}, args)
	return startCommand(exec.Command("strace", line...), dir, nil)
}

// inject lets strace break a call of the running process, in each of its threads,
// until the returned function is called. The fault is in strace's own words:
// "fdatasync:error=EIO".
func inject(t *testing.T, p *process, fault string) (end func()) {
	t.Helper()
	name, _, _ := strings.Cut(fault, ":")
	cmd := exec.Command("strace", "-f", "-o", os.DevNull, "-e", "trace="+name, "-e", "inject="+fault,
		"-p", strconv.Itoa(p.cmd.Process.Pid))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // strace lets the process go
		_ = cmd.Wait()                          // and says that it was told to
	})
	t.Cleanup(end)
	said, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil || !strings.Contains(said, "attached") {
		t.Fatalf("strace said %q, %v", said, err)
	}
	return end
}

// call is a system call that strace has seen.
type call struct {
	name   string
	text   string // the first argument that is a string, decoded
	number int64  // the last argument: an offset or a length
	begun  bool   // it has just been made; that it returned is another entry
	result string // what it returned, with strace's remarks
}

var (
	callLine   = regexp.MustCompile(`^\d+ +(\w+)\((.*)\) += (.*)$`)
	beginLine  = regexp.MustCompile(`^\d+ +(\w+)\((.*) <unfinished \.\.\.>(\) += \?)?$`)
	resumeLine = regexp.MustCompile(`^\d+ +<\.\.\. (\w+) resumed>(.*)\) += (.*)$`)
)

// readTrace returns the calls in the order in which they were made and returned:
// two entries for each that returned, and one for each that never did.
func readTrace(path string) ([]call, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var calls []call
	open := map[string]call{} // by thread
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSuffix(line, "\n")
		thread, _, _ := strings.Cut(line, " ")
		if m := beginLine.FindStringSubmatch(line); m != nil {
			c, err := newCall(m[1], m[2])
			if err != nil {
				return nil, err
			}
			c.begun = true
			if m[3] == "" {
				open[thread] = c
			}
			calls = append(calls, c)
			continue
		}
		if m := resumeLine.FindStringSubmatch(line); m != nil {
			c := open[thread]
			delete(open, thread)
			if c.name != m[1] {
				return nil, fmt.Errorf("%s was resumed, but %q begun", m[1], c.name)
			}
			if c.begun, c.result = false, m[3]; c.result != "?" {
				calls = append(calls, c)
			}
			continue
		}
		if m := callLine.FindStringSubmatch(line); m != nil {
			c, err := newCall(m[1], m[2])
			if err != nil {
				return nil, err
			}
			begun := c
			begun.begun = true
			calls = append(calls, begun)
			if c.result = m[3]; c.result != "?" {
				calls = append(calls, c)
			}
		}
		// The rest is signals and ends of threads.
	}
	return calls, nil
}

// newCall reads the arguments, of which strings are written byte by byte.
func newCall(name, args string) (call, error) {
	c := call{name: name}
	if before, rest, ok := strings.Cut(args, `"`); ok {
		digits, after, _ := strings.Cut(rest, `"`)
		text, err := hex.DecodeString(strings.ReplaceAll(digits, `\x`, ""))
		if err != nil || strings.HasPrefix(after, "...") {
			return c, fmt.Errorf("%s(%s...: not a whole string: %v", name, before, err)
		}
		c.text, args = string(text), after
	}
	last := strings.TrimSpace(args[strings.LastIndex(args, ",")+1:])
	number, err := strconv.ParseInt(last, 10, 64)
	if err != nil {
		return c, fmt.Errorf("%s: last argument: %w", name, err)
	}
	c.number = number
	return c, nil
}
