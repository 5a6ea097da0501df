package life

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Usage is what a process takes.
type Usage struct {
	RSS         int64 `json:"rss"` // bytes
	Goroutines  int   `json:"goroutines"`
	Descriptors int   `json:"descriptors"`
}

// OwnUsage is what this process takes; zero where the kernel doesn't say.
func OwnUsage() Usage {
	usage := Usage{RSS: ownRSS(), Goroutines: runtime.NumGoroutine()}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		usage.Descriptors = len(open) - 1 // the listing's own
	}
	return usage
}

func ownRSS() int64 {
	content, err := os.ReadFile("/proc/self/statm")
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
