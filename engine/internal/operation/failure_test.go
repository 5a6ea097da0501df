package operation

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/go-multierror"
	"github.com/pulumi/pulumi/pkg/v3/backend/backenderr"
	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/stack/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/result"
)

func TestErrorsAreShownAsTheCLIShowsThem(t *testing.T) {
	for name, one := range map[string]struct {
		err  error
		code int
		text string
	}{
		"nothing":    {nil, 0, ""},
		"an error":   {errors.New("100% wrong"), 1, "error: 100% wrong\n"},
		"shown":      {result.BailErrorf("shown already"), 1, ""},
		"no stack":   {backenderr.StackNotFoundError{StackName: "dev"}, 6, "error: no stack named 'dev' found\n"},
		"cancelled":  {backenderr.CancelledError{Operation: "update"}, 8, "error: update cancelled\n"},
		"two errors": {multierror.Append(errors.New("a"), errors.New("b")), 1, "error: 2 errors occurred:\n    1) a\n    2) b\n"},
		"joined":     {errors.Join(errors.New("a")), 1, "error: a\n"},
		"a secret": {
			fmt.Errorf("x: %w", &engine.DecryptError{Key: config.MustMakeKey("p", "k"), Err: errors.New("no key")}), 1,
			"error: failed to decrypt encrypted configuration value 'p:k': no key\nThis can occur when a secret is copied " +
				"from one stack to another. Encryption of secrets is done per-stack and it is not possible to share an " +
				"encrypted configuration value across stacks.\n\nYou can re-encrypt your configuration by running " +
				"`pulumi config set p:k [value] --secret` with your new stack selected.\n\nrefusing to proceed\n",
		},
	} {
		var shown bytes.Buffer
		code := exit(one.err, diag.DefaultSink(&shown, &shown, diag.FormatOptions{Color: colors.Never}), []string{"up"})
		if code != one.code || shown.String() != one.text {
			t.Errorf("%s: %d %q", name, code, shown.String())
		}
	}
}

func TestAnInvalidStateIsReportedCompletely(t *testing.T) {
	var shown bytes.Buffer
	err := fmt.Errorf("reading: %w", &snapshot.SnapshotIntegrityError{
		Err: errors.New("resource without a parent"), Op: snapshot.SnapshotIntegrityRead, Stack: []byte("the stack"),
	})
	code := exit(err, diag.DefaultSink(&shown, &shown, diag.FormatOptions{Color: colors.Never}), []string{"up", "--yes"})
	for _, part := range []string{"pulumi state repair", "pulumi up --yes", "resource without a parent", "the stack"} {
		if !strings.Contains(shown.String(), part) {
			t.Errorf("%q is missing", part)
		}
	}
	if code != 1 {
		t.Error(code)
	}
}
