package operation

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/backend/backenderr"
	"github.com/pulumi/pulumi/pkg/v3/backend/display"
	"github.com/pulumi/pulumi/pkg/v3/backend/state"
	cmdbackend "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/backend"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/stack"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/ui"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"

	"reside.dev/engine/internal/command"
)

var errTwoNames = errors.New("only one of --stack or argument stack name may be specified, not both")

// named returns the name of the stack, from the flag or the first argument.
func (c *call) named() (string, error) {
	name := c.command.String("stack")
	if len(c.command.Args) == 0 {
		return name, nil
	}
	if name != "" {
		return "", errTwoNames
	}
	return c.command.Args[0], nil
}

// open opens the backend, with the project of the working directory if there is one.
func (c *call) open(ctx context.Context) (backend.Backend, error) {
	project, _, err := c.folder.ReadProject("")
	if err != nil && !errors.Is(err, workspace.ErrProjectNotFound) {
		return nil, err
	}
	return cmdbackend.CurrentBackend(ctx, c.folder, logins{sink: c.sink}, project, display.Options{Color: c.color})
}

// noteLock notes that this command is about to lock a stack, and returns a function to call when it has released it.
func (c *call) noteLock(target backend.Stack) (release func()) {
	c.begin()
	return c.shared.NoteLock(target.Backend().URL(), string(target.Ref().FullyQualifiedName()))
}

// selectStack makes a stack the default of commands without the name of a stack.
func (c *call) selectStack(ctx context.Context) error {
	opened, err := c.open(ctx)
	if err != nil {
		return err
	}
	name, err := c.named()
	if err != nil {
		return err
	}
	if name == "" {
		return backenderr.NoStackSelectedError{}
	}
	reference, err := opened.ParseStackReference(name)
	if err != nil {
		return err
	}
	found, err := opened.GetStack(ctx, reference)
	if err != nil {
		return err
	}
	if found == nil {
		if !c.command.Bool("create") {
			return backenderr.StackNotFoundError{StackName: reference.String()}
		}
		_, err := c.create(ctx, opened, reference, c.command.String("secrets-provider"), true)
		return err
	}
	return c.choose(opened, reference.FullyQualifiedName().String())
}

// choose saves which stack is selected.
func (c *call) choose(opened backend.Backend, name string) error {
	c.begin()
	selected, err := c.folder.New("")
	if err != nil {
		return err
	}
	selected.Settings().SetStackForBackend(state.BackendURLKey(opened), name)
	return selected.Save()
}

// newStack creates an empty stack.
func (c *call) newStack(ctx context.Context) error {
	opened, err := c.open(ctx)
	if err != nil {
		return err
	}
	name, err := c.named()
	if err != nil {
		return err
	}
	provider := c.command.String("secrets-provider")
	if provider == "" {
		provider = "default"
	}
	if err := stack.ValidateSecretsProvider(provider); err != nil {
		return err
	}
	if name == "" {
		return errors.New("missing stack name")
	}
	reference, err := opened.ParseStackReference(name)
	if err != nil {
		return err
	}
	_, err = c.create(ctx, opened, reference, provider, !c.command.Bool("no-select"))
	return err
}

func (c *call) create(
	ctx context.Context, opened backend.Backend, reference backend.StackReference, provider string, choose bool,
) (backend.Stack, error) {
	file, err := c.folder.settings(reference.Name().Q())
	if errors.Is(err, workspace.ErrProjectNotFound) {
		return nil, command.Unserved{Why: "creating a stack is served in the folder of a project only"}
	}
	if err != nil {
		return nil, err
	}
	_, root, err := c.folder.ReadProject("")
	if err != nil {
		return nil, err
	}
	c.begin()
	defer c.shared.NoteLock(opened.URL(), string(reference.FullyQualifiedName()))()
	created, err := stack.CreateStack(ctx, c.sink, c.folder, opened, reference, root,
		stack.CreateStackOptions{SecretsProvider: provider, ConfigFile: file})
	if err != nil || !choose {
		return created, err
	}
	return created, c.choose(opened, created.Ref().FullyQualifiedName().String())
}

// removeStack removes a stack and its settings.
func (c *call) removeStack(ctx context.Context) error {
	name, err := c.named()
	if err != nil {
		return err
	}
	target, err := c.requireStack(ctx, name, stack.LoadOnly)
	if err != nil {
		return err
	}
	options := display.Options{Color: c.color}
	sure := c.command.Bool("yes") || env.SkipConfirmations.Value()
	prompt := fmt.Sprintf("This will permanently remove the '%s' stack!", target.Ref())
	if err := ui.ConfirmDeletion(sure, false, prompt, target.Ref().String(), c.stdout, options); err != nil {
		return err
	}
	release := c.noteLock(target)
	hasResources, err := backend.RemoveStack(ctx, target, c.command.Bool("force"), c.command.Bool("remove-backups"))
	release()
	if err != nil && hasResources {
		return fmt.Errorf(
			"'%s' still has resources; removal rejected. Possible actions:\n"+
				"- Make sure that '%[1]s' is the stack that you want to destroy\n"+
				"- Run `pulumi destroy` to delete the resources, then run `pulumi stack rm`\n"+
				"- Run `pulumi stack rm --force` to override this error", target.Ref())
	}
	if err != nil {
		return err
	}
	if !c.command.Bool("preserve-config") {
		if err := c.removeSettings(target); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("%sStack '%s' has been removed!%s", colors.SpecAttention, target.Ref(), colors.Reset)
	fmt.Fprintln(c.stdout, c.color.Colorize(text))
	// The CLI ignores this error, too
	_ = c.choose(target.Backend(), "")
	return nil
}

// removeSettings removes the settings file of a stack, if this is the folder of its project.
func (c *call) removeSettings(target backend.Stack) error {
	project, _, err := c.folder.project()
	if err != nil {
		return nil // without a project there are no settings
	}
	if owner, known := target.Ref().Project(); !known || owner != tokens.Name(project.Name) {
		return nil
	}
	file, err := c.folder.settings(target.Ref().Name().Q())
	if err != nil {
		return err
	}
	if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// cancel removes the locks of a stack.
func (c *call) cancel(ctx context.Context) error {
	name, err := c.named()
	if err != nil {
		return err
	}
	target, err := c.requireStack(ctx, name, stack.LoadOnly)
	if err != nil {
		return err
	}
	c.begin()
	if err := target.Backend().CancelCurrentUpdate(ctx, target.Ref()); err != nil {
		return err
	}
	text := fmt.Sprintf("%sThe currently running update for '%s' has been canceled!%s",
		colors.SpecAttention, target.Ref().Name(), colors.Reset)
	fmt.Fprintln(c.stdout, c.color.Colorize(text))
	return nil
}
