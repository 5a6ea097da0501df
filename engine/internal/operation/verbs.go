package operation

import (
	"context"
	"errors"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/backend/backenderr"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/stack"
	sdkdisplay "github.com/pulumi/pulumi/pkg/v3/display"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
)

// up creates and updates the resources of a stack.
func (c *call) up(ctx context.Context) error {
	project, root, err := c.readProject()
	if err != nil {
		return err
	}
	options, err := c.approve(backenderr.NoConfirmationInNonInteractiveError{})
	if err != nil {
		return err
	}
	options.Display = c.display()
	options.Display.ShowLinkToNeo = !env.SuppressNeoLink.Value()
	about := c.aboutProgram(ctx, project, root)
	target, err := c.requireStack(ctx, c.command.String("stack"), stack.OfferNew)
	if err != nil {
		return err
	}
	u := &update{
		call: c, kind: apitype.UpdateUpdate, project: project, root: root, stack: target, options: options,
		about: about,
	}
	loader := stack.NewStackSecretsManagerLoaderFromEnv()
	if err := u.configure(ctx, loader, !c.command.Bool("skip-config-validation")); err != nil {
		return err
	}
	if u.options.Engine, err = u.programOptions(env.Experimental.Value()); err != nil {
		return err
	}
	u.options.Engine.ContinueOnError = c.command.Bool("continue-on-error")
	return u.concluded(u.perform(ctx,
		func(ctx context.Context, operation backend.UpdateOperation) (sdkdisplay.ResourceChanges, error) {
			return backend.UpdateStack(ctx, target, operation, nil)
		}))
}

// preview shows what up would change.
func (c *call) preview(ctx context.Context) error {
	project, root, err := c.readProject()
	if err != nil {
		return err
	}
	options := backend.UpdateOptions{Display: c.display()}
	options.Display.ShowLinkToNeo = !env.SuppressNeoLink.Value()
	about := c.aboutProgram(ctx, project, root)
	target, err := c.requireStack(ctx, c.command.String("stack"), stack.OfferNew)
	if err != nil {
		return err
	}
	u := &update{
		call: c, kind: apitype.PreviewUpdate, project: project, root: root, stack: target, options: options,
		about: about,
	}
	loader := stack.NewStackSecretsManagerLoaderFromEnv()
	if err := u.configure(ctx, loader, !c.command.Bool("skip-config-validation")); err != nil {
		return err
	}
	if u.options.Engine, err = u.programOptions(env.Experimental.Value()); err != nil {
		return err
	}
	return u.concluded(u.perform(ctx,
		func(ctx context.Context, operation backend.UpdateOperation) (sdkdisplay.ResourceChanges, error) {
			_, changes, err := backend.PreviewStack(ctx, target, operation, nil)
			return changes, err
		}))
}

// refresh updates the state from the resources.
func (c *call) refresh(ctx context.Context) error {
	project, root, err := c.readProject()
	if err != nil {
		return err
	}
	options, err := c.approve(errors.New("--yes or --skip-preview or --preview-only " +
		"must be passed in to proceed when running in non-interactive mode"))
	if err != nil {
		return err
	}
	options.Display = c.display()
	target, err := c.requireStack(ctx, c.command.String("stack"), stack.OfferNew)
	if err != nil {
		return err
	}
	u := &update{
		call: c, kind: apitype.RefreshUpdate, project: project, root: root, stack: target, options: options,
	}
	runs := c.command.Bool("run-program")
	loader := stack.NewStackSecretsManagerLoaderFromEnv()
	if err := u.configure(ctx, loader, runs && !c.command.Bool("skip-config-validation")); err != nil {
		return err
	}
	if err := u.clearPendingCreates(ctx); err != nil {
		return err
	}
	u.options.Engine = u.engineOptions()
	u.options.Engine.ExecKind = c.command.String("exec-kind")
	u.options.Engine.RefreshProgram = runs
	return u.concluded(u.perform(ctx,
		func(ctx context.Context, operation backend.UpdateOperation) (sdkdisplay.ResourceChanges, error) {
			return backend.RefreshStack(ctx, target, operation)
		}))
}
