// Package v2 registers the objects of the provider's components.
package v2

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// object is a resource of any kind.
type object struct{ pulumi.CustomResourceState }

// RegisterResource registers an object with the engine, by the type token that the SDK has for its kind.
func RegisterResource(ctx *pulumi.Context, apiVersion, kind, name string, props pulumi.Input,
	opts ...pulumi.ResourceOption) (pulumi.CustomResource, error) {
	if apiVersion == "v1" {
		apiVersion = "core/v1"
	}
	var registered object
	if err := ctx.RegisterResource(fmt.Sprintf("kubernetes:%s:%s", apiVersion, kind), name, props, &registered, opts...); err != nil {
		return nil, err
	}
	return &registered, nil
}
