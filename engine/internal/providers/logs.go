package providers

import (
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
)

// routing is the diagnostics sink of a kept process. What the process says goes to the operation that it is about: by
// project and stack of the resource, or, without a resource, to all operations that use the process. What nobody is
// waiting for is dropped, as a message after the end of an operation is in the stock engine.
type routing struct {
	process *process
	status  bool // whether it is the sink of passing status messages
}

var _ diag.Sink = routing{}

func (r routing) Logf(severity diag.Severity, message *diag.Diag, args ...any) {
	for _, lease := range r.process.listeners(message.URN) {
		lease.log(r.status, severity, message, args...)
	}
}

func (r routing) Debugf(message *diag.Diag, args ...any)   { r.Logf(diag.Debug, message, args...) }
func (r routing) Infof(message *diag.Diag, args ...any)    { r.Logf(diag.Info, message, args...) }
func (r routing) Infoerrf(message *diag.Diag, args ...any) { r.Logf(diag.Infoerr, message, args...) }
func (r routing) Warningf(message *diag.Diag, args ...any) { r.Logf(diag.Warning, message, args...) }
func (r routing) Errorf(message *diag.Diag, args ...any)   { r.Logf(diag.Error, message, args...) }
