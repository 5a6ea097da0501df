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

// runs are the runs of the engine within an operation: one, or two if a preview comes first. What the backend and the
// display write about them to the process's standard output, where no client would see it, is written here.
type runs struct {
	update *update
	begun  bool
}

// begin writes the first line of a run, and dots while it lasts.
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

// failed writes the first line of a run that failed before it began; a stack that is locked has none.
func (r *runs) failed(err error) {
	if err == nil || r.begun || strings.HasPrefix(err.Error(), "the stack is currently locked by") ||
		backend.CurrentProjectContradictsWorkspace(r.update.project, r.update.stack.Ref()) != nil {
		return
	}
	r.banner(r.update.options.PreviewOnly || !r.update.options.SkipPreview)
}
