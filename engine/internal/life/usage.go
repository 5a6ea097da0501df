package life

import (
	"os"
	"runtime"

	"reside.dev/engine/internal/proc"
)

// Usage is the resource usage of a process.
type Usage struct {
	RSS         int64 `json:"rss"` // bytes
	Goroutines  int   `json:"goroutines"`
	Descriptors int   `json:"descriptors"`
}

// OwnUsage returns the usage of this process. Values that the kernel does not provide are zero.
func OwnUsage() Usage {
	usage := Usage{RSS: proc.Resident(os.Getpid()), Goroutines: runtime.NumGoroutine()}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		usage.Descriptors = len(open) - 1 // without the one that lists them
	}
	return usage
}
