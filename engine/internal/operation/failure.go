package operation

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/go-multierror"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/cmd"
	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/stack/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/result"
)

// exit prints an error as the CLI does, and returns the CLI's exit code for it. The CLI's own function is not exported
// and writes to the standard error of the process.
func exit(err error, sink diag.Sink, arguments []string) int {
	var integrity *snapshot.SnapshotIntegrityError
	switch decryption, isDecryption := engine.AsDecryptError(err); {
	case err == nil:
		return cmd.ExitSuccess
	case result.IsBail(err): // it was printed before
	case isDecryption:
		sink.Errorf(diag.RawMessage("", decryptionText(decryption)))
	case errors.As(err, &integrity):
		sink.Errorf(diag.RawMessage("", integrityText(err, integrity, arguments)))
	default:
		sink.Errorf(diag.Message("", "%s"), errorText(err))
	}
	return cmd.ExitCodeFor(err)
}

// errorText returns the texts of all errors that an error wraps.
func errorText(err error) string {
	parts := flatten(err)
	if len(parts) == 0 {
		return err.Error()
	}
	if len(parts) == 1 {
		return parts[0].Error()
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d errors occurred:", len(parts))
	for index, part := range parts {
		fmt.Fprintf(&text, "\n    %d) %s", index+1, errorText(part))
	}
	return text.String()
}

func flatten(err error) []error {
	var parts []error
	switch several := err.(type) {
	case *multierror.Error:
		parts = several.Errors
	case interface{ Unwrap() []error }:
		parts = several.Unwrap()
	default:
		return []error{err}
	}
	var flat []error
	for _, part := range parts {
		flat = append(flat, flatten(part)...)
	}
	return flat
}

func decryptionText(err *engine.DecryptError) string {
	return fmt.Sprintf("failed to decrypt encrypted configuration value '%s': %s\n"+
		"This can occur when a secret is copied from one stack to another. Encryption of secrets is done per-stack and "+
		"it is not possible to share an encrypted configuration value across stacks.\n"+
		"\n"+
		"You can re-encrypt your configuration by running `pulumi config set %s [value] --secret` with your "+
		"new stack selected.\n"+
		"\n"+
		"refusing to proceed", err.Key, err.Err, err.Key)
}
