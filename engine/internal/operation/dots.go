package operation

import (
	"io"
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
)

// dots shows each second that an operation still runs: a line of its own that grows until there is something to say.
// The CLI's display does this on the process's standard output.
type dots struct {
	color colors.Colorization

	mutex  sync.Mutex
	writer io.Writer
	open   bool // a line of dots is there
	inside bool // a line of the display is not whole yet: it writes text and end of each apart
}

// Write ends the line of dots before it writes what there is to say.
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

// begin lets the dots grow until the returned function is called.
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
	_, _ = io.WriteString(d.writer, d.color.Colorize(text)) // a client that has gone sees nothing
}
