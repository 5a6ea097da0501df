package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTicks is the number of clock ticks a second in process times (USER_HZ, which is 100 on all Linux systems).
const clockTicks = 100

// StartOf returns when a process was started; false if it does not exist.
func StartOf(pid int) (time.Time, bool) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return time.Time{}, false
	}
	// The start is the 20th field after the name, which is in brackets and may contain any character (proc(5))
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	if len(fields) < 20 {
		return time.Time{}, false
	}
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	return bootTime().Add(time.Duration(ticks) * time.Second / clockTicks), true
}

// bootTime returns when the kernel started.
func bootTime() time.Time {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}
	}
	for line := range strings.Lines(string(content)) {
		if seconds, ok := strings.CutPrefix(line, "btime "); ok {
			if since, err := strconv.ParseInt(strings.TrimSpace(seconds), 10, 64); err == nil {
				return time.Unix(since, 0)
			}
		}
	}
	return time.Time{}
}
