package providers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// closeGrace limits the time that a plugin may take to acknowledge Cancel, as in the stock engine.
const closeGrace = 5 * time.Second

// readPid returns the process id that the guard wrote into its folder.
func readPid(folder string) (int, error) {
	link, err := os.Readlink(filepath.Join(folder, "process"))
	if err != nil {
		return 0, fmt.Errorf("the plugin was not started through reside-plugin-guard: %w", err)
	}
	return strconv.Atoi(link)
}
