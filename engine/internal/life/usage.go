package life

import (
	"os"
	"runtime"

	"reside.dev/engine/internal/proc"
)

// Usage is what a process takes.
type Usage struct {
	RSS         int64 `json:"rss"` // bytes
	Goroutines  int   `json:"goroutines"`
	Descriptors int   `json:"descriptors"`
}

// OwnUsage is what this process takes; zero where the kernel doesn't say.
func OwnUsage() Usage {
	usage := Usage{RSS: proc.Resident(os.Getpid()), Goroutines: runtime.NumGoroutine()}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		usage.Descriptors = len(open) - 1 // the listing's own
	}
	return usage
}
