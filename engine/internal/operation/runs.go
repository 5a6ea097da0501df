package operation

import (
	"fmt"
	"strings"
	"time"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/backend/display"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
)

// runs writes the output about the runs of the engine within an operation that the CLI's backend and display write to
// the standard output of the process. There are two runs if the operation begins with a preview.
type runs struct {
	update *update
	begun  bool
}

// begin writes the first line of a run, and dots until the run ends.
func (r *runs) begin(preview bool) (end func()) {
	r.begun = true
	label := r.banner(preview)
	options := r.update.options.Display
	dots, ok := options.Stdout.(*dots)
	if !ok || options.SuppressProgress || options.Type != display.DisplayProgress {
		return func() {}
	}
	return dots.begin(strings.ToLower(label), time.Second)
}

func (r *runs) banner(preview bool) (label string) {
	label = backend.ActionLabel(r.update.kind, preview || r.update.kind == apitype.PreviewUpdate)
	fmt.Fprintf(r.update.stdout, r.update.color.Colorize(colors.SpecHeadline+"%s (%s):"+colors.Reset+"\n"),
		label, r.update.stack.Ref())
	return label
}

// failed writes the first line of a run that failed before it began. There is none for a locked stack.
func (r *runs) failed(err error) {
	if err == nil || r.begun || strings.HasPrefix(err.Error(), "the stack is currently locked by") ||
		backend.CurrentProjectContradictsWorkspace(r.update.project, r.update.stack.Ref()) != nil {
		return
	}
	r.banner(r.update.options.PreviewOnly || !r.update.options.SkipPreview)
}
