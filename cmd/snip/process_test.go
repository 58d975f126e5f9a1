package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every process that a test starts: one that hangs is killed,
// and the test that waits for it fails.
const patience = 2 * time.Minute

var (
	binaryDir string // where TestMain put the program
	binary    string
)

// TestMain builds the real program once: what ships is what is tested, with its
// own exit status, signals and lock on the file.
func TestMain(m *testing.M) {
	if path := os.Getenv(holdsFile); path != "" { // this is a process that a test has started
		fmt.Fprintln(os.Stderr, hold(path, os.Args[1]))
		os.Exit(0)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "snip-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		// Other users must reach it: a test runs the program as one.
		if err := os.Chmod(dir, 0o755); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		binaryDir, binary = dir, filepath.Join(dir, "snip")
		build := exec.Command("go", "build", "-o", binary, "-ldflags", "-X main.version=v0.0.0-test", ".")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// process is the running program.
type process struct {
	url  string // of the public listener, without a slash at the end
	addr string // the same as host:port

	admin string // the admin listener's host:port

	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended and its log is read
	err   error         // of its end; read it after ended

	mu    sync.Mutex
	lines []string
	news  chan struct{} // closed and replaced with each line
}

// startProcess starts the program on a free loopback port, in dir and with
// nothing in its environment but env, and returns when it serves.
func startProcess(dir string, env []string, args ...string) (*process, error) {
	return startCommand(exec.Command(binary, append([]string{"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, args...)...), dir, env)
}

// startCommand is startProcess for a command line of the caller's, which must
// end in the program's own process.
func startCommand(cmd *exec.Cmd, dir string, env []string) (*process, error) {
	p, err := launch(cmd, dir, env)
	if err != nil {
		return nil, err
	}
	start, err := p.await("listening")
	if err != nil {
		p.kill()
		return nil, err
	}
	p.addr, _ = start["address"].(string)
	p.admin, _ = start["admin"].(string)
	p.url = "http://" + p.addr
	return p, nil
}

// launch starts any program that writes its log to standard error.
func launch(cmd *exec.Cmd, dir string, env []string) (*process, error) {
	cmd.Dir, cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{}), news: make(chan struct{})}
	go p.read(stderr)
	return p, nil
}

// start is startProcess for tests: the process ends with the test.
func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p, err := startProcess(dir, nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

func (p *process) read(stderr io.Reader) {
	scanner := bufio.NewScanner(stderr)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, scanner.Text())
		close(p.news)
		p.news = make(chan struct{})
		p.mu.Unlock()
	}
	p.err = p.cmd.Wait()
	close(p.ended)
}

// log returns what the process has written so far.
func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// await returns the first log line with the message, once it is there.
func (p *process) await(message string) (entry map[string]any, err error) {
	err = p.awaitLine(message, func(line string) bool {
		entry = nil
		return json.Unmarshal([]byte(line), &entry) == nil && entry["msg"] == message
	})
	return entry, err
}

// awaitLine returns when the process has written a line that is the one wanted.
func (p *process) awaitLine(what string, wanted func(line string) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for seen := 0; ; {
		p.mu.Lock()
		lines, news := p.lines[seen:], p.news
		p.mu.Unlock()
		for _, line := range lines {
			seen++
			if wanted(line) {
				return nil
			}
		}
		if len(lines) > 0 {
			continue
		}
		select {
		case <-news:
		case <-p.ended:
			return fmt.Errorf("the process ended (%v) without %q:\n%s", p.err, what, p.log())
		case <-ctx.Done():
			return fmt.Errorf("no %q within %v:\n%s", what, patience, p.log())
		}
	}
}

// signal sends s, and is not an error once the process has ended.
func (p *process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends the process as a power cut would, and waits for that.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// stop asks the process to end, and returns an error unless it exits with 0.
func (p *process) stop() error {
	p.signal(syscall.SIGTERM)
	return p.wait()
}

// wait returns how the process ended; one that does not end is killed.
func (p *process) wait() error {
	timer := time.AfterFunc(patience, p.kill)
	defer timer.Stop()
	<-p.ended
	if p.err != nil {
		return fmt.Errorf("%w:\n%s", p.err, p.log())
	}
	return nil
}
