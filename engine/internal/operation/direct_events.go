package operation

import (
	"maps"
	"sync"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	sdkdisplay "github.com/pulumi/pulumi/pkg/v3/display"
	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	sdkproviders "github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

// directActions stores and reports what a deployment does, as the engine does for an update or a preview.
type directActions struct {
	events     *eventLog
	manager    *backend.SnapshotManager // nil in a preview
	terminated func() error

	mutex   sync.Mutex
	changes sdkdisplay.ResourceChanges
	steps   []deploy.Step
}

var _ deploy.Events = (*directActions)(nil)

func (a *directActions) OnSnapshotWrite(base *deploy.Snapshot) error {
	if a.manager == nil {
		return nil
	}
	return a.manager.Write(base)
}

func (a *directActions) OnRebuiltBaseState() error {
	if a.manager == nil {
		return nil
	}
	return a.manager.RebuiltBaseState()
}

// forget empties the steps: the deployment keeps those whose resources register no outputs.
func (a *directActions) forget() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, step := range a.steps {
		switch known := step.(type) {
		case *deploy.SameStep:
			*known = deploy.SameStep{}
		case *deploy.CreateStep:
			*known = deploy.CreateStep{}
		case *deploy.UpdateStep:
			*known = deploy.UpdateStep{}
		}
	}
	a.steps = nil
}

func (a *directActions) OnResourceStepPre(step deploy.Step) (any, error) {
	a.mutex.Lock()
	a.steps = append(a.steps, step)
	a.mutex.Unlock()
	a.events.begun(step)
	if a.manager == nil {
		return nil, nil
	}
	return a.manager.BeginMutation(step)
}

func (a *directActions) OnResourceStepPost(begun any, step deploy.Step, status resource.Status, err error) error {
	if a.terminated() != nil {
		return nil // the state keeps that the step has not ended
	}
	if err != nil {
		a.failed(step, err)
	} else {
		a.succeeded(step)
	}
	if a.manager == nil {
		return nil
	}
	if status == resource.StatusPartialFailure && step.Op() == deploy.OpUpdate {
		step.New().Inputs = maps.Clone(step.Old().Inputs) // what exists was not updated with the new ones
	}
	return begun.(engine.SnapshotMutation).End(step, err == nil || status == resource.StatusPartialFailure)
}

func (a *directActions) failed(step deploy.Step, err error) {
	urn := step.URN()
	if isInternal(step) {
		urn = ""
	}
	if a.manager == nil {
		a.events.messages().Errorf(diag.GetPreviewFailedError(urn), err)
		return
	}
	a.events.messages().Errorf(diag.GetResourceOperationFailedError(urn), err)
	a.events.failed(step)
}

func (a *directActions) succeeded(step deploy.Step) {
	if step.Logical() && !isInternal(step) {
		a.mutex.Lock()
		a.changes[step.Op()]++
		a.mutex.Unlock()
	}
	a.events.done(step)
}

func (a *directActions) OnResourceOutputs(step deploy.Step) error {
	if a.manager == nil {
		return nil
	}
	return a.manager.RegisterResourceOutputs(step)
}

// No policies are loaded.

func (a *directActions) OnPolicyViolation(resource.URN, plugin.AnalyzeDiagnostic) {}
func (a *directActions) OnPolicyRemediation(resource.URN, plugin.Remediation, property.Map, property.Map) {
}
func (a *directActions) OnPolicyAnalyzeSummary(plugin.PolicySummary)      {}
func (a *directActions) OnPolicyRemediateSummary(plugin.PolicySummary)    {}
func (a *directActions) OnPolicyAnalyzeStackSummary(plugin.PolicySummary) {}

// isInternal reports whether a step is none of the program.
func isInternal(step deploy.Step) bool {
	switch step.Op() {
	case deploy.OpRemovePendingReplace, deploy.OpExtendParameterize:
		return true
	}
	refresh, refreshes := step.(*deploy.RefreshStep)
	return sdkproviders.IsDefaultProvider(step.URN()) || refreshes && refresh.IsInternal()
}
