package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/pkg/v3/backend/secrets"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/state"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"

	pkgdisplay "github.com/pulumi/pulumi/pkg/v3/backend/display"
	pkgresource "github.com/pulumi/pulumi/pkg/v3/resource"
)

// clearPendingCreates removes pending creates of an interrupted operation from the state, if the flag is set.
func (u *update) clearPendingCreates(ctx context.Context) error {
	clears := u.command.Bool("clear-pending-creates")
	if clears && u.command.Bool("skip-pending-creates") {
		return errors.New("cannot set both --skip-pending-creates and --clear-pending-creates")
	}
	snapshot, err := u.stack.Snapshot(ctx, secrets.DefaultProvider)
	if err != nil {
		return fmt.Errorf("getting snapshot: %w", err)
	}
	pending := func(operation pkgresource.Operation) bool {
		return operation.Type == pkgresource.OperationTypeCreating
	}
	if !clears || snapshot == nil || !slices.ContainsFunc(snapshot.PendingOperations, pending) {
		return nil
	}
	defer u.noteLock(u.stack)()
	return state.TotalStateEdit(ctx, u.stack, u.options.AutoApprove, u.options.Display,
		func(_ pkgdisplay.Options, snapshot *deploy.Snapshot) error {
			snapshot.PendingOperations = slices.DeleteFunc(snapshot.PendingOperations, pending)
			return nil
		}, nil)
}
