// Package kubernetes is what the provider uses of Pulumi's SDK for Go.
//
// The SDK's 25 MB of generated types for every kind of every version took most of the provider's build. The provider
// reads none of them: it registers the objects of its components (yaml/v2, helm/v4, kustomize/v2) untyped.
package kubernetes

import "reflect"

// UntypedArgs are the inputs of a resource of any kind.
type UntypedArgs map[string]any

// ElementType returns the type of the inputs' values.
func (UntypedArgs) ElementType() reflect.Type { return reflect.TypeFor[map[string]any]() }
