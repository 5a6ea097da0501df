// Package v4 has the options of the component helm/v4.Chart.
package v4

import (
	"context"
	"reflect"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// PostRenderer is a program that gets a chart's manifests and returns others.
type PostRenderer struct {
	Args    []string `pulumi:"args"`
	Command string   `pulumi:"command"`
}

// PostRendererInput is a PostRenderer whose values may not be known yet.
type PostRendererInput interface {
	pulumi.Input

	ToPostRendererOutput() PostRendererOutput
	ToPostRendererOutputWithContext(ctx context.Context) PostRendererOutput
}

// PostRendererArgs are the inputs of a PostRenderer.
type PostRendererArgs struct {
	Args    pulumi.StringArrayInput `pulumi:"args"`
	Command pulumi.StringInput      `pulumi:"command"`
}

// ElementType returns the type of the inputs' value.
func (PostRendererArgs) ElementType() reflect.Type { return reflect.TypeFor[PostRenderer]() }

// ToPostRendererOutput returns the value once it is known.
func (i PostRendererArgs) ToPostRendererOutput() PostRendererOutput {
	return i.ToPostRendererOutputWithContext(context.Background())
}

// ToPostRendererOutputWithContext returns the value once it is known.
func (i PostRendererArgs) ToPostRendererOutputWithContext(ctx context.Context) PostRendererOutput {
	return pulumi.ToOutputWithContext(ctx, i).(PostRendererOutput)
}

// PostRendererOutput is a PostRenderer that becomes known.
type PostRendererOutput struct{ *pulumi.OutputState }

// ElementType returns the type of the value.
func (PostRendererOutput) ElementType() reflect.Type { return reflect.TypeFor[PostRenderer]() }

// ToPostRendererOutput returns the value itself.
func (o PostRendererOutput) ToPostRendererOutput() PostRendererOutput { return o }

// ToPostRendererOutputWithContext returns the value itself.
func (o PostRendererOutput) ToPostRendererOutputWithContext(context.Context) PostRendererOutput {
	return o
}

// RepositoryOpts tell where a chart is, and how to reach it.
type RepositoryOpts struct {
	CaFile   pulumi.AssetOrArchive `pulumi:"caFile"`
	CertFile pulumi.AssetOrArchive `pulumi:"certFile"`
	KeyFile  pulumi.AssetOrArchive `pulumi:"keyFile"`
	Password *string               `pulumi:"password"`
	Repo     *string               `pulumi:"repo"`
	Username *string               `pulumi:"username"`
}

// RepositoryOptsInput are RepositoryOpts whose values may not be known yet.
type RepositoryOptsInput interface {
	pulumi.Input

	ToRepositoryOptsOutput() RepositoryOptsOutput
	ToRepositoryOptsOutputWithContext(ctx context.Context) RepositoryOptsOutput
}

// RepositoryOptsArgs are the inputs of RepositoryOpts.
type RepositoryOptsArgs struct {
	CaFile   pulumi.AssetOrArchiveInput `pulumi:"caFile"`
	CertFile pulumi.AssetOrArchiveInput `pulumi:"certFile"`
	KeyFile  pulumi.AssetOrArchiveInput `pulumi:"keyFile"`
	Password pulumi.StringPtrInput      `pulumi:"password"`
	Repo     pulumi.StringPtrInput      `pulumi:"repo"`
	Username pulumi.StringPtrInput      `pulumi:"username"`
}

// ElementType returns the type of the inputs' value.
func (RepositoryOptsArgs) ElementType() reflect.Type { return reflect.TypeFor[RepositoryOpts]() }

// ToRepositoryOptsOutput returns the value once it is known.
func (i RepositoryOptsArgs) ToRepositoryOptsOutput() RepositoryOptsOutput {
	return i.ToRepositoryOptsOutputWithContext(context.Background())
}

// ToRepositoryOptsOutputWithContext returns the value once it is known.
func (i RepositoryOptsArgs) ToRepositoryOptsOutputWithContext(ctx context.Context) RepositoryOptsOutput {
	return pulumi.ToOutputWithContext(ctx, i).(RepositoryOptsOutput)
}

// RepositoryOptsOutput are RepositoryOpts that become known.
type RepositoryOptsOutput struct{ *pulumi.OutputState }

// ElementType returns the type of the value.
func (RepositoryOptsOutput) ElementType() reflect.Type { return reflect.TypeFor[RepositoryOpts]() }

// ToRepositoryOptsOutput returns the value itself.
func (o RepositoryOptsOutput) ToRepositoryOptsOutput() RepositoryOptsOutput { return o }

// ToRepositoryOptsOutputWithContext returns the value itself.
func (o RepositoryOptsOutput) ToRepositoryOptsOutputWithContext(context.Context) RepositoryOptsOutput {
	return o
}

func init() {
	pulumi.RegisterInputType(reflect.TypeFor[PostRendererInput](), PostRendererArgs{})
	pulumi.RegisterInputType(reflect.TypeFor[RepositoryOptsInput](), RepositoryOptsArgs{})
	pulumi.RegisterOutputType(PostRendererOutput{})
	pulumi.RegisterOutputType(RepositoryOptsOutput{})
}
