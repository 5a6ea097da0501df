// Package proc reads information about processes from /proc.
package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Resident returns the resident memory of a process in bytes, or 0 if it has ended. Pages that several processes share
// are counted in full.
func Resident(pid int) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	if fields := strings.Fields(string(content)); len(fields) > 1 {
		if pages, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			return pages * int64(os.Getpagesize())
		}
	}
	return 0
}

// Proportional returns the proportional set size of a process in bytes. A page that n processes share counts as an n-th
// of a page, so the sum over processes is their total memory. A call takes about a millisecond. If the kernel does not
// provide the value, the resident memory is returned.
func Proportional(pid int) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return Resident(pid)
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Pss:" {
			if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				return kib << 10
			}
		}
	}
	return Resident(pid)
}
