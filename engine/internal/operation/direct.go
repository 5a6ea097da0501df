package operation

import (
	"context"
	"errors"
	"fmt"

	"github.com/opentracing/opentracing-go"
	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/backend/secrets"
	sdkdisplay "github.com/pulumi/pulumi/pkg/v3/display"
	"github.com/pulumi/pulumi/pkg/v3/engine"
	pkgresource "github.com/pulumi/pulumi/pkg/v3/resource"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/pkg/v3/util/cancel"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/contract"
)

// direct is an operation whose program is a declaration and whose state is in files.
//
// It gives the resources to Pulumi's deployment engine itself. Other programs reach that through a language runtime, a
// resource monitor, a display and a history, which cost more than the rest of a small operation, and part of which the
// pinned version never releases. What the providers are asked, what the state contains, and the events are the same.
// The history is not written.
type direct struct {
	*update
	program *declaration
	hosts   engine.HostFactory
	file    stateFile
	events  *eventLog
	forget  func() // empties what the deployment refers to, once its state is stored
}

// locker is what the backends have that keep locks.
type locker interface {
	Lock(ctx context.Context, reference backend.StackReference) error
	Unlock(ctx context.Context, reference backend.StackReference)
}

// newDirect returns the operation, or nil if it has to take the usual way.
func (u *update) newDirect(program *declaration, hosts engine.HostFactory) (*direct, error) {
	file, found := findStateFile(u.stack)
	twice := u.kind != apitype.PreviewUpdate && (!u.options.SkipPreview || u.options.PreviewOnly)
	programless := u.kind == apitype.DestroyUpdate && !u.options.Engine.DestroyProgram
	log := u.command.String("event-log")
	if !found || twice || programless || u.kind == apitype.RefreshUpdate || usualEventLog(log) {
		if log == eventsInReply {
			return nil, errors.New("events are in the reply only for a declaration whose state is in a file")
		}
		return nil, nil
	}
	if err := backend.CurrentProjectContradictsWorkspace(u.project, u.stack.Ref()); err != nil {
		return nil, err
	}
	events, err := u.newEventLog()
	if err != nil {
		return nil, err
	}
	return &direct{update: u, program: program, hosts: hosts, file: file, events: events, forget: func() {}}, nil
}

func (d *direct) dryRun() bool { return d.kind == apitype.PreviewUpdate }

// run runs the operation, instead of a function of the backend.
func (d *direct) run(ctx context.Context, _ backend.UpdateOperation) (changes sdkdisplay.ResourceChanges, err error) {
	defer func() {
		if failure := d.events.close(); err == nil {
			err = failure
		}
	}()
	if keeper, locks := d.stack.Backend().(locker); locks && !d.dryRun() {
		if err := keeper.Lock(ctx, d.stack.Ref()); err != nil {
			return nil, err
		}
		defer keeper.Unlock(ctx, d.stack.Ref())
	}
	target, err := d.target(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { d.forget() }()
	var manager *backend.SnapshotManager
	if !d.dryRun() {
		d.file.first = target.Snapshot == nil || len(target.Snapshot.Resources) == 0
		manager = backend.NewSnapshotManager(d.file, d.secrets, target.Snapshot, nil)
		defer func() {
			if failure := manager.Close(); failure != nil {
				err = fmt.Errorf("writing snapshot: %w", failure)
			}
		}()
	}
	messages := make(chan engine.Event, 4) // of interrupts, which the client knows
	interrupting := &scopes{interrupts: d.interrupts, opened: func(bool) func() { return func() {} }}
	scope := interrupting.NewScope(ctx, messages, d.dryRun())
	defer scope.Close()
	return d.deploy(scope.Context(), target, manager)
}

// target returns the stack with its state, which nobody else changes from now on.
func (d *direct) target(ctx context.Context) (*deploy.Target, error) {
	present, err := d.stack.Backend().GetStack(ctx, d.stack.Ref())
	if err != nil {
		return nil, err
	}
	if present == nil {
		return nil, fmt.Errorf("stack %s was removed", d.stack.Ref())
	}
	snapshot, err := present.Snapshot(ctx, secrets.DefaultProvider)
	if err != nil {
		return nil, err
	}
	return &deploy.Target{
		Name:         d.stack.Ref().Name(),
		Organization: "organization", // of every stack of a file backend
		Config:       d.config.Config,
		Decrypter:    d.config.Decrypter,
		Snapshot:     snapshot,
	}, nil
}

// deploy executes the deployment, unless the operation is terminated first.
func (d *direct) deploy(
	cancelled *cancel.Context, target *deploy.Target, manager *backend.SnapshotManager,
) (sdkdisplay.ResourceChanges, error) {
	host, plugins, err := d.plugins(target)
	if err != nil {
		return nil, err
	}
	defer contract.IgnoreClose(host)
	defer contract.IgnoreClose(plugins)
	source := newDeclaredSource(d.program, tokens.PackageName(d.project.Name))
	actions := &directActions{
		events: d.events, manager: manager, terminated: cancelled.TerminateErr, changes: sdkdisplay.ResourceChanges{},
	}
	deployment, err := deploy.NewDeployment(plugins, d.deployOptions(), actions, target, target.Snapshot, nil, source,
		backend.NewBackendClient(d.stack.Backend(), secrets.DefaultProvider), deploy.NewResourceHooks(plugins.DialOptions))
	if err != nil {
		return nil, err
	}
	err = execute(cancelled, deployment)
	ended := err == nil && cancelled.CancelErr() == nil
	if cancelled.TerminateErr() == nil { // else it may still run
		d.forget = func() {
			forget(deployment, source)
			d.program.Resources = nil // the host has it, too
			if ended {                // else a part of it may still run
				*deployment = deploy.Deployment{}
				actions.forget()
			}
		}
	}
	return actions.changes, err
}

// execute executes a deployment until its end, or until it is terminated.
//
// The context of a deployment that succeeds is not cancelled at its end: a goroutine that waits for that could use the
// deployment when it is emptied.
func execute(cancelled *cancel.Context, deployment *deploy.Deployment) error {
	ctx, stop := context.WithCancel(context.Background())
	succeeded := false
	defer func() {
		if !succeeded {
			stop()
		}
	}()
	panics, ended := make(chan error, 1), make(chan error, 1)
	go deploy.PanicRecovery(panics, func() {
		_, err := deployment.Execute(ctx)
		ended <- err
	})
	for canceled := cancelled.Canceled(); ; {
		select {
		case err := <-panics:
			panic(err) // only this command fails
		case err := <-ended:
			succeeded = err == nil
			return err
		case <-cancelled.Terminated():
			return cancelled.TerminateErr()
		case <-canceled:
			stop()
			canceled = nil
		}
	}
}

// plugins returns a host of plugins, and the context in which it starts them.
func (d *direct) plugins(target *deploy.Target) (plugin.Host, *plugin.Context, error) {
	settings, err := target.Config.Decrypt(target.Decrypter)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to decrypt config: %w", err)
	}
	information := engine.Projinfo{Proj: d.project, Root: d.root}
	folder, _, err := information.GetPwdMain()
	if err != nil {
		return nil, nil, err
	}
	// A cancelled operation may still call its plugins
	host, err := d.hosts(context.Background(), d.events.messages(), d.events.status(), nil)
	if err != nil {
		return nil, nil, err
	}
	plugins, err := newPluginContext(d, host, folder, settings)
	if err != nil {
		contract.IgnoreClose(host)
	}
	return host, plugins, err
}

func newPluginContext(
	d *direct, host plugin.Host, folder string, settings map[config.Key]string,
) (*plugin.Context, error) {
	return plugin.NewContextWithRoot(context.Background(), d.events.messages(), d.events.status(), host, folder, d.root,
		d.project.Runtime.Options(), d.options.Engine.DisableProviderPreview, opentracing.NoopTracer{}.StartSpan(""),
		d.project.Plugins, d.project.GetPackageSpecs(), settings)
}

// deployOptions returns the options that the engine makes of those of an operation.
func (d *direct) deployOptions() *deploy.Options {
	given := d.options.Engine
	return &deploy.Options{
		ParallelDiff:              given.ParallelDiff,
		DryRun:                    d.dryRun(),
		Parallel:                  given.Parallel,
		Refresh:                   given.Refresh,
		RefreshProgram:            given.RefreshProgram,
		DestroyProgram:            given.DestroyProgram,
		ReplaceTargets:            given.ReplaceTargets,
		Targets:                   given.Targets,
		Excludes:                  given.Excludes,
		TargetDependents:          given.TargetDependents,
		ExcludeDependents:         given.ExcludeDependents,
		UseLegacyDiff:             given.UseLegacyDiff,
		UseLegacyRefreshDiff:      given.UseLegacyRefreshDiff,
		DisableResourceReferences: given.DisableResourceReferences,
		DisableOutputValues:       given.DisableOutputValues,
		ContinueOnError:           given.ContinueOnError,
		IgnoreProtect:             given.IgnoreProtect,
		Autonamer:                 given.Autonamer,
		ShowSecrets:               given.ShowSecrets,
	}
}

// forget empties what a deployment refers to. The pinned version keeps each deployment for ever: the goroutine that
// waits for its panics never ends. What a live heap grows by, each collection of garbage has to look at again.
func forget(deployment *deploy.Deployment, source *declaredSource) {
	if before := deployment.Prev(); before != nil {
		for _, state := range before.Resources {
			forgetState(state)
		}
		before.Resources = nil
	}
	clear(deployment.Olds())
	for _, state := range source.registered {
		forgetState(state)
	}
	source.forget()
}

func forgetState(state *pkgresource.State) {
	if state == nil {
		return
	}
	state.Lock.Lock()
	defer state.Lock.Unlock()
	state.Inputs, state.Outputs, state.PropertyDependencies = nil, nil, nil
}
