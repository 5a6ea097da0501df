//go:build tools

// Package tools pins the Pulumi CLI; tools/build.py builds it.
package tools

import _ "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
