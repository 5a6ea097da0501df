package providers

import (
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
)

// routing is the diagnostics sink of a kept process. A message about a resource goes to the operation on the resource's
// stack. A message without a resource goes to all operations that use the process. If there is none, the message is
// dropped, as the stock engine drops messages after the end of an operation.
type routing struct {
	process *process
	status  bool // whether it is the sink of transient status messages
}

var _ diag.Sink = routing{}

func (r routing) Logf(severity diag.Severity, message *diag.Diag, args ...any) {
	r.process.answers.messages.Add(1)
	for _, lease := range r.process.listeners(message.URN) {
		lease.log(r.status, severity, message, args...)
	}
}

func (r routing) Debugf(message *diag.Diag, args ...any)   { r.Logf(diag.Debug, message, args...) }
func (r routing) Infof(message *diag.Diag, args ...any)    { r.Logf(diag.Info, message, args...) }
func (r routing) Infoerrf(message *diag.Diag, args ...any) { r.Logf(diag.Infoerr, message, args...) }
func (r routing) Warningf(message *diag.Diag, args ...any) { r.Logf(diag.Warning, message, args...) }
func (r routing) Errorf(message *diag.Diag, args ...any)   { r.Logf(diag.Error, message, args...) }
