package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// server is a process that serves HTTP on loopback.
type server struct {
	url   string // without a slash at the end
	cmd   *exec.Cmd
	ended chan struct{}
}

// huge are quotas that are counted and never reached.
var huge = []string{"--quota-client", "1000000000", "--quota-network", "1000000000",
	"--quota-service", "1000000000", "--quota-newcomers", "0"}

// unthrottled turns the throttle off, so that one address can be all the load.
const unthrottled = "--throttle-every=0"

// unlimited is both.
var unlimited = append(slices.Clip(huge), unthrottled)

// startSnip starts the binary under test on a data file in the folder.
func (b *bench) startSnip(ctx context.Context, store string, settings ...string) (*server, error) {
	return b.startBinary(ctx, b.snip, store, settings...)
}

func (b *bench) startBinary(ctx context.Context, binary, store string, settings ...string) (*server, error) {
	args := append([]string{"--listen", "127.0.0.1:0", "--admin-listen", "off", "--public-url", "http://snip.example", "--store", store}, settings...)
	return b.start(ctx, binary, args...)
}

// start starts a program that logs its address as snip does. Nothing of the
// environment reaches it, or a setting left there would be measured.
func (b *bench) start(ctx context.Context, name string, args ...string) (*server, error) {
	cmd := b.command(ctx, serverCore, name, args...)
	cmd.Dir, cmd.Env = b.dir, []string{"PATH=" + os.Getenv("PATH")}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(stderr)
	address, err := readAddress(lines)
	s := &server{url: "http://" + address, cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		io.Copy(os.Stderr, lines) // from here on it has only faults to report
		cmd.Wait()                // a kill is how it ends
	}()
	if err != nil {
		s.kill()
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return s, nil
}

// readAddress reads the log up to the line that names the address.
func readAddress(log *bufio.Reader) (string, error) {
	var seen strings.Builder
	for {
		line, err := log.ReadString('\n')
		seen.WriteString(line)
		var entry struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "listening" {
			return entry.Address, nil
		}
		if err != nil {
			return "", fmt.Errorf("it ended before it served:\n%s", seen.String())
		}
	}
}

// spent is what a process has used so far.
type spent struct {
	cpu  time.Duration // in steps of 10 ms
	disk int           // how often it waited for a page of a mapped file to be read
}

// spent reads the fields utime, stime and majflt of proc_pid_stat(5). Every machine
// that Go runs on counts the times in hundredths of a second.
func (s *server) spent() (spent, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return spent{}, fmt.Errorf("the server has ended: %w", err)
	}
	// The second field is the program's name, which may hold blanks.
	fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
	var numbers [3]int
	for i, field := range []int{12, 14, 15} {
		if numbers[i], err = strconv.Atoi(fields[field-3]); err != nil {
			return spent{}, err
		}
	}
	return spent{cpu: time.Duration(numbers[1]+numbers[2]) * 10 * time.Millisecond, disk: numbers[0]}, nil
}

// written returns how many bytes the process has written to disks, by proc_pid_io(5).
func (s *server) written() (int64, error) {
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", s.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("the server has ended: %w", err)
	}
	for line := range strings.Lines(string(io)) {
		if bytes, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			return strconv.ParseInt(strings.TrimSpace(bytes), 10, 64)
		}
	}
	return 0, fmt.Errorf("no write_bytes in %q", io)
}

// kill ends the process without warning.
func (s *server) kill() {
	s.cmd.Process.Kill() // an error means that it has ended already
	<-s.ended
}
