package operation

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/backend/backenderr"
	"github.com/pulumi/pulumi/pkg/v3/backend/secrets"
	cmdconfig "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/config"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/metadata"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/stack"
	sdkdisplay "github.com/pulumi/pulumi/pkg/v3/display"
	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	pkgsecrets "github.com/pulumi/pulumi/pkg/v3/secrets"
	pkgworkspace "github.com/pulumi/pulumi/pkg/v3/workspace"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/version"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"

	"reside.dev/engine/internal/command"
	"reside.dev/engine/internal/providers"
)

// update is one operation on a stack's resources: up, preview, refresh or destroy.
type update struct {
	*call
	kind    apitype.UpdateKind
	project *workspace.Project
	root    string
	stack   backend.Stack
	options backend.UpdateOptions
	about   <-chan map[string]string // result of aboutProgram; nil if the program is not asked
	secrets pkgsecrets.Manager
	config  backend.StackConfiguration
}

// readProject reads the project of the working directory. Its runtime is the client's program.
func (c *call) readProject() (*workspace.Project, string, error) {
	project, root, err := c.folder.ReadProject("")
	if err != nil {
		return nil, "", err
	}
	switch address := c.command.String("client"); address {
	case "":
	case declaredClient, aloneClient:
		project.Runtime = workspace.NewProjectRuntimeInfo(declaredRuntime, nil)
	default:
		project.Runtime = workspace.NewProjectRuntimeInfo("client", map[string]any{"address": address})
	}
	return project, root, plugin.ValidatePulumiVersionRange(project.RequiredPulumiVersion, version.Version)
}

// approve determines whether to preview first or to preview only. If approval would be needed, it returns an error,
// because the engine cannot prompt.
func (c *call) approve(refusal error) (backend.UpdateOptions, error) {
	var options backend.UpdateOptions
	options.SkipPreview = c.command.Bool("skip-preview")
	options.PreviewOnly = c.command.Bool("preview-only")
	options.AutoApprove = c.command.Bool("yes") || options.SkipPreview || env.SkipConfirmations.Value()
	switch {
	case !options.AutoApprove && !options.PreviewOnly:
		return options, refusal
	case options.SkipPreview && options.PreviewOnly:
		return options, errors.New("--skip-preview and --preview-only cannot be used together")
	case options.AutoApprove && options.PreviewOnly:
		return options, errors.New("--yes and --preview-only cannot be used together")
	}
	return options, nil
}

// configure loads the stack's settings and its secrets manager.
func (u *update) configure(ctx context.Context, loader stack.SecretsManagerLoader, validate bool) error {
	file, err := u.configuration(u.stack)
	if err != nil {
		return fmt.Errorf("getting stack configuration: %w", err)
	}
	end := keys.await(ctx, keyDerivation)
	config, manager, err := cmdconfig.GetStackConfiguration(ctx, u.sink, loader, u.stack, u.project, file, nil)
	end(err == nil)
	if err != nil {
		return fmt.Errorf("getting stack configuration: %w", err)
	}
	u.config, u.secrets = config, manager
	name := u.stack.Ref().Name().String()
	if validate {
		if err := pkgworkspace.ValidateStackConfigAndApplyProjectConfig(ctx, name, u.project, config.Environment,
			config.Config, manager.Encrypter(), manager.Decrypter()); err != nil {
			return fmt.Errorf("validating stack config: %w", err)
		}
		return nil
	}
	if err := pkgworkspace.ApplyProjectConfig(ctx, name, u.project, config.Environment, config.Config,
		manager.Encrypter(), manager.Decrypter()); err != nil {
		return fmt.Errorf("applying stack config: %w", err)
	}
	return nil
}

// perform runs the operation with one of the backend's functions.
func (u *update) perform(
	ctx context.Context, run func(context.Context, backend.UpdateOperation) (sdkdisplay.ResourceChanges, error),
) (sdkdisplay.ResourceChanges, error) {
	facts, err := u.facts()
	if err != nil {
		return nil, err
	}
	if u.about != nil {
		select {
		case found := <-u.about:
			maps.Copy(facts.Environment, found)
		case <-u.interrupts: // the program does not respond, and nothing has begun
			return nil, context.Canceled
		}
	}
	u.begin()
	target := u.stack.Ref()
	lease := u.shared.Begin(u.project.Name.String(), target.Name().String())
	outcome := providers.Failed
	defer func() { lease.End(outcome) }()
	base := backend.DefaultHostFactory(u.stack.Backend().GetReadOnlyCloudRegistry())
	kept := lease.HostFactory
	if u.command.String("client") == aloneClient {
		kept = func(own engine.HostFactory) engine.HostFactory { return own }
	}
	shown := &runs{update: u}
	if u.project.Runtime.Name() == declaredRuntime {
		program, err := parseDeclaration(u.stdin)
		if err != nil {
			return nil, err
		}
		direct, err := u.newDirect(program, program.steady(kept(base)))
		if err != nil {
			return nil, err
		}
		if direct != nil {
			shown.begun = true // it shows nothing
			run = direct.run
		}
		u.options.Engine.HostFactory = program.steady(kept(program.factory(base)))
	} else {
		u.options.Engine.HostFactory = kept(base)
	}

	if u.kind != apitype.PreviewUpdate && !u.options.PreviewOnly {
		defer u.noteLock(u.stack)()
	}
	changes, err := run(ctx, backend.UpdateOperation{
		Proj:               u.project,
		Root:               u.root,
		M:                  facts,
		Opts:               u.options,
		StackConfiguration: u.config,
		SecretsManager:     u.secrets,
		SecretsProvider:    secrets.DefaultProvider,
		Scopes:             &scopes{interrupts: u.interrupts, opened: shown.begin},
	})
	shown.failed(err)
	switch {
	case err == nil:
		outcome = providers.Succeeded
	case errors.Is(err, context.Canceled):
		outcome = providers.Cancelled
	}
	return changes, err
}

// facts returns what the history is to say about the operation. One whose events are in the reply writes no history (see
// newDirect), and the search for a git repository reads all folders above the project.
func (u *update) facts() (*backend.UpdateMetadata, error) {
	if u.command.String("event-log") == eventsInReply {
		return &backend.UpdateMetadata{Environment: map[string]string{}}, nil
	}
	found, err := metadata.GetUpdateMetadata(u.command.String("message"), u.root, u.command.String("exec-kind"),
		u.command.String("exec-agent"), false, u.config, u.command.Flags)
	if err != nil {
		return nil, fmt.Errorf("gathering environment metadata: %w", err)
	}
	return found, nil
}

// concluded returns the error that the CLI reports for the result of an operation.
func (u *update) concluded(changes sdkdisplay.ResourceChanges, err error) error {
	name := string(u.command.Verb)
	if u.command.Verb == command.Up {
		name = "update"
	}
	switch {
	case err == context.Canceled && u.command.Verb != command.Preview: // not wrapped, as in the CLI
		return backenderr.CancelledError{Operation: name}
	case err != nil:
		return err
	case u.command.Bool("expect-no-changes") && changes != nil && engine.HasChanges(changes):
		return backenderr.NoChangesExpectedError{Operation: name}
	}
	return nil
}
