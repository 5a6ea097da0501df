package providers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// closeGrace is how long a plugin has to acknowledge Cancel, as with the stock engine.
const closeGrace = 5 * time.Second

// readPid is the process id that the guard left in its folder.
func readPid(folder string) (int, error) {
	link, err := os.Readlink(filepath.Join(folder, "process"))
	if err != nil {
		return 0, fmt.Errorf("the plugin was not started through reside-plugin-guard: %w", err)
	}
	return strconv.Atoi(link)
}

// residentMemory is a process' resident memory in bytes; 0 if it is gone.
func residentMemory(pid int) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(content))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
