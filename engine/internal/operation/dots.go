package operation

import (
	"io"
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
)

// dots shows that an operation is running by a line of dots, which grows each second until there is other output. The
// CLI's display writes the dots to the standard output of the process.
type dots struct {
	color colors.Colorization

	mutex  sync.Mutex
	writer io.Writer
	open   bool // a line of dots is not ended
	inside bool // a line of the display is not ended; the display writes text and newline separately
}

// Write ends the line of dots and writes the text.
func (d *dots) Write(text []byte) (int, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.open {
		d.open = false
		if _, err := io.WriteString(d.writer, "\n"); err != nil {
			return 0, err
		}
	}
	if len(text) > 0 {
		d.inside = text[len(text)-1] != '\n'
	}
	return d.writer.Write(text)
}

// begin adds dots until the returned function is called.
func (d *dots) begin(label string, every time.Duration) (end func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				d.grow(label)
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

func (d *dots) grow(label string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.inside {
		return
	}
	text := colors.Yellow + "." + colors.Reset
	if !d.open {
		text = colors.Yellow + "@ " + label + "..." + colors.Reset + text
	}
	d.open = true
	_, _ = io.WriteString(d.writer, d.color.Colorize(text)) // fails if the client has disconnected
}
