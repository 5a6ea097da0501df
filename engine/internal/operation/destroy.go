package operation

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/backend/backenderr"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/stack"
	sdkdisplay "github.com/pulumi/pulumi/pkg/v3/display"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"

	"reside.dev/engine/internal/command"
)

// destroy deletes the resources of a stack, and with --remove the stack itself.
func (c *call) destroy(ctx context.Context) error {
	options, err := c.approve(backenderr.NoConfirmationInNonInteractiveError{})
	if err != nil {
		return err
	}
	options.Display = c.display()
	target, err := c.requireStack(ctx, c.command.String("stack"), stack.LoadOnly)
	if err != nil {
		return err
	}
	project, root, err := c.readProject()
	if errors.Is(err, workspace.ErrProjectNotFound) {
		return command.Unserved{Why: "`pulumi destroy` is served in the folder of a project only"}
	}
	if err != nil {
		return err
	}
	u := &update{
		call: c, kind: apitype.DestroyUpdate, project: project, root: root, stack: target, options: options,
	}
	runs := c.command.Bool("run-program")
	// If the settings of the stack are lost, the secrets manager of the state is used
	loader := stack.SecretsManagerLoader{FallbackToState: true}
	if err := u.configure(ctx, loader, runs && !c.command.Bool("skip-config-validation")); err != nil {
		return err
	}
	refresh, err := u.refreshes()
	if err != nil {
		return err
	}
	u.options.Engine = u.engineOptions()
	u.options.Engine.Refresh = refresh
	u.options.Engine.ContinueOnError = c.command.Bool("continue-on-error")
	u.options.Engine.IgnoreProtect = c.command.Bool("ignore-protect")
	u.options.Engine.DestroyProgram = runs
	_, err = u.perform(ctx,
		func(ctx context.Context, operation backend.UpdateOperation) (sdkdisplay.ResourceChanges, error) {
			return backend.DestroyStack(ctx, target, operation)
		})
	if err != nil {
		if err == context.Canceled { // not wrapped, as in the CLI; a wrapped one is an error like others
			return backenderr.CancelledError{Operation: "destroy"}
		}
		return err
	}
	if len(c.command.Strings("target")) > 0 {
		return nil
	}
	return u.destroyed(ctx)
}

// destroyed removes the stack if --remove is set, and otherwise prints that it remains.
func (u *update) destroyed(ctx context.Context) error {
	if !u.command.Bool("remove") {
		if !u.options.PreviewOnly && u.command.String("event-log") != eventsInReply {
			fmt.Fprintf(u.stdout, "The resources in the stack have been deleted, but the history and configuration "+
				"associated with the stack are still maintained. \nIf you want to remove the stack "+
				"completely, run `pulumi stack rm %s`.\n", u.stack.Ref())
		}
		return nil
	}
	release := u.noteLock(u.stack)
	_, err := backend.RemoveStack(ctx, u.stack, false, false)
	release()
	if err != nil {
		return err
	}
	file, err := u.folder.settings(u.stack.Ref().Name().Q())
	if err != nil {
		return nil // without a project there are no settings
	}
	if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
		return err
	} else if err == nil {
		fmt.Fprintf(u.stdout, "The resources in the stack have been deleted, and the history and "+
			"configuration removed.\n")
	}
	return nil
}
