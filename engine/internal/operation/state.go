package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hashicorp/go-multierror"
	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/backend/display"
	"github.com/pulumi/pulumi/pkg/v3/backend/secrets"
	cmdstack "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/stack"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/ui"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/pkg/v3/resource/stack"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

// output writes the outputs of a stack.
func (c *call) output(ctx context.Context) error {
	target, err := c.requireStack(ctx, c.command.String("stack"), cmdstack.LoadOnly)
	if err != nil {
		return err
	}
	shows := c.command.Bool("show-secrets")
	provider := secrets.DefaultProvider
	if !shows {
		provider = secrets.BlindingProvider
	}
	found, err := target.SnapshotStackOutputs(ctx, provider)
	if err != nil {
		return err
	}
	// Secrets are replaced or shown, so the crypter is never used
	outputs, err := stack.SerializeProperties(ctx,
		display.MassageSecrets(resource.ToResourcePropertyMap(found), shows), config.NewPanicCrypter(), shows)
	if err != nil {
		return fmt.Errorf("getting outputs: %w", err)
	}
	if outputs == nil {
		outputs = map[string]any{}
	}
	if len(c.command.Args) == 0 {
		return ui.FprintJSON(c.stdout, outputs)
	}
	value, known := outputs[c.command.Args[0]]
	if !known {
		return fmt.Errorf("current stack does not have output property '%v'", c.command.Args[0])
	}
	return ui.FprintJSON(c.stdout, value)
}

// export writes the state of a stack.
func (c *call) export(ctx context.Context) (err error) {
	name := c.command.String("stack")
	target, err := c.requireStack(ctx, name, cmdstack.LoadOnly)
	if err != nil {
		return err
	}
	deployment, err := backend.ExportStackDeployment(ctx, target)
	if err != nil {
		return err
	}
	c.begin()
	writer := c.stdout
	if path := c.command.String("file"); path != "" {
		file, err := os.Create(c.folder.resolve(path))
		if err != nil {
			return fmt.Errorf("could not open file: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		writer = file
	}
	if c.command.Bool("show-secrets") {
		if deployment, err = plain(ctx, deployment, name); err != nil {
			return err
		}
	}
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(deployment); err != nil {
		return fmt.Errorf("could not export deployment: %w", err)
	}
	return nil
}

// plain decrypts the secrets of a state.
func plain(
	ctx context.Context, deployment *apitype.UntypedDeployment, name string,
) (*apitype.UntypedDeployment, error) {
	snapshot, err := stack.DeserializeUntypedDeployment(ctx, deployment, secrets.DefaultProvider)
	if err != nil {
		return nil, stack.FormatDeploymentDeserializationError(err, name)
	}
	return stack.SerializeUntypedDeployment(ctx, snapshot, &stack.SerializeOptions{ShowSecrets: true, Pretty: true})
}

// importState replaces the state of a stack.
func (c *call) importState(ctx context.Context) error {
	target, err := c.requireStack(ctx, c.command.String("stack"), cmdstack.LoadOnly)
	if err != nil {
		return err
	}
	var reader io.Reader = strings.NewReader(c.stdin)
	if path := c.command.String("file"); path != "" {
		file, err := os.Open(c.folder.resolve(path))
		if err != nil {
			return fmt.Errorf("could not open file: %w", err)
		}
		defer file.Close()
		reader = file
	}
	var deployment apitype.UntypedDeployment
	if err := json.NewDecoder(reader).Decode(&deployment); err != nil {
		return err
	}
	snapshot, err := stack.DeserializeUntypedDeployment(ctx, &deployment, secrets.DefaultProvider)
	if err != nil {
		return stack.FormatDeploymentDeserializationError(err, target.Ref().Name().String())
	}
	if err := c.check(target, snapshot); err != nil {
		return err
	}
	for _, operation := range snapshot.PendingOperations {
		c.sink.Warningf(diag.Message(operation.Resource.URN, fmt.Sprintf(
			"removing pending operation '%s' on '%s' from snapshot", operation.Type, operation.Resource.URN)))
	}
	snapshot.PendingOperations = nil
	serialized, err := stack.SerializeUntypedDeployment(ctx, snapshot, nil)
	if err != nil {
		return fmt.Errorf("constructing deployment for upload: %w", err)
	}
	defer c.noteLock(target)()
	if err := backend.ImportStackDeployment(ctx, target, serialized); err != nil {
		return fmt.Errorf("could not import deployment: %w", err)
	}
	fmt.Fprintln(c.stdout, "Import complete.")
	return nil
}

// check returns an error for an invalid state or that of another stack. With --force it prints warnings instead.
func (c *call) check(target backend.Stack, snapshot *deploy.Snapshot) error {
	var problems error
	report := func(text string) {
		if c.command.Bool("force") {
			c.sink.Warningf(diag.Message("", text))
		} else {
			problems = multierror.Append(problems, errors.New(text))
		}
	}
	name := target.Ref().Name()
	for _, state := range snapshot.Resources {
		if state.URN.Stack() != name.Q() {
			report(fmt.Sprintf("resource '%s' is from a different stack (%s != %s)", state.URN, state.URN.Stack(), name))
		}
	}
	if err := snapshot.VerifyIntegrity(); err != nil {
		report(fmt.Sprintf("state file contains errors: %v", err))
	}
	if problems == nil {
		return nil
	}
	return multierror.Append(problems,
		errors.New("importing this file could be dangerous; rerun with --force to proceed anyway"))
}
