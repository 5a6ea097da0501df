package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTicks is how many of the kernel's ticks of process times make a second (USER_HZ, the same on all Linux).
const clockTicks = 100

// StartOf is when the process with this id was started; false if there is none.
func StartOf(pid int) (time.Time, bool) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return time.Time{}, false
	}
	// After the name, which may hold anything and stands in brackets, the start is the 20th field (proc(5))
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

// bootTime is when the kernel started.
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
