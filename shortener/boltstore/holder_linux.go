package boltstore

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// holder names the process that holds the file's lock, as far as the kernel
// tells: in another container it has no id that means anything here.
func holder(path string) string {
	var stat syscall.Stat_t
	locks, err := os.ReadFile("/proc/locks")
	if err != nil || syscall.Stat(path, &stat) != nil {
		return ""
	}
	inode := fmt.Sprintf(":%d", stat.Ino)
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234567 0 EOF
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "FLOCK" || !strings.HasSuffix(fields[5], inode) {
			continue
		}
		name, err := os.ReadFile("/proc/" + fields[4] + "/comm")
		if err != nil {
			continue
		}
		return fmt.Sprintf(" (%s, process id %s)", strings.TrimSpace(string(name)), fields[4])
	}
	return ""
}
