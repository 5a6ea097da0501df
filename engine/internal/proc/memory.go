// Package proc reads what Linux tells of processes in /proc.
package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Resident is a process' resident memory in bytes; 0 if it is gone. It counts pages of program files in full, even
// where several processes share them.
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

// Proportional is a process' share of memory in bytes: a page that n processes share counts as a n-th of a page, so that
// the sum over processes is what they take together. It costs about a millisecond. Where the kernel doesn't tell it, it
// is the resident memory.
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
