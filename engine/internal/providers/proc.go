package providers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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
