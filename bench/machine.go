package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// The cores of a pinned run.
const (
	serverCore = "0"
	loadCore   = "1"
)

// canPin reports whether there are two cores to keep servers and load apart on.
func canPin(ctx context.Context) bool {
	for _, core := range []string{serverCore, loadCore} {
		if exec.CommandContext(ctx, "taskset", "-c", core, "true").Run() != nil {
			return false
		}
	}
	return true
}

// command returns a command that ends with ctx, on the given core if that can be.
func (b *bench) command(ctx context.Context, core, name string, args ...string) *exec.Cmd {
	if b.pinned {
		name, args = "taskset", append([]string{"-c", core, name}, args...)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	// Nothing outlives this program, not even when it is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// heading says in words what is measured, where and when.
func (b *bench) heading(ctx context.Context, now time.Time) (string, error) {
	version, err := exec.CommandContext(ctx, b.snip, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", b.snip, err)
	}
	disk, err := fileSystem(b.dir)
	if err != nil {
		return "", err
	}
	where := "servers on one core, wrk on the other"
	if !b.pinned {
		where = "servers and wrk share the cores"
	}
	return fmt.Sprintf("%s, measured on %s\n%d cores (%s), %s, Linux %s, data on %s, load average %s at the start\n%s; %d rounds of %s in turn, if not said otherwise; median (least-most); the largest file has %s links\n",
		strings.TrimSpace(string(version)), now.Format("2006-01-02"),
		runtime.NumCPU(), processor(), runtime.Version(), firstWord("/proc/sys/kernel/osrelease"), disk, firstWord("/proc/loadavg"),
		where, b.rounds, b.each, whole(float64(b.large()))), nil
}

// hasRoom refuses a disk that the data files could fill.
func hasRoom(dir string) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("statfs %s: %w", dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < room {
		return fmt.Errorf("%s has %d MiB free and %d MiB are needed: choose another folder, with -dir or TMPDIR, or try -quick", dir, free>>20, room>>20)
	}
	return nil
}

// processor is the model's name, where the kernel tells it.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// firstWord reads one of the kernel's files.
func firstWord(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	word, _, _ := strings.Cut(strings.TrimSpace(string(content)), " ")
	return word
}

// fileSystem names what the folder is on, and refuses memory: a flush there
// costs nothing and measures nothing. The numbers are those of statfs(2).
func fileSystem(dir string) (string, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return "", fmt.Errorf("statfs %s: %w", dir, err)
	}
	switch uint32(fs.Type) {
	case 0x01021994, 0x858458f6:
		return "", fmt.Errorf("%s is in memory, where a flush costs nothing: choose a folder on a disk, with -dir or TMPDIR", dir)
	case 0xef53:
		return "ext4", nil // or its elders, which share the number
	case 0x58465342:
		return "xfs", nil
	case 0x9123683e:
		return "btrfs", nil
	case 0x794c7630:
		return "overlayfs", nil
	case 0x2fc12fc1:
		return "zfs", nil
	}
	return fmt.Sprintf("file system %#x", uint32(fs.Type)), nil
}
