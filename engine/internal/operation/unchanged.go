package operation

import (
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Most objects of a stack are declared as before. For these, the Kubernetes provider's answers to Check and Diff follow
// from the request (source of 4.25): both compare with the state alone. What is not certain here is asked.

// isChecked reports whether Check returns the new inputs as they are: they are those that it returned last.
//
// It would give an object without a name a random one, note a resource definition, and tell of hooks of Helm.
func isChecked(request plugin.CheckRequest) bool {
	if !isObject(request.URN) || request.Type.Name() == "CustomResourceDefinition" {
		return false
	}
	metadata, named := request.News["metadata"], false
	if metadata.IsObject() {
		name := metadata.ObjectValue()["name"]
		named = name.IsString() && name.StringValue() != ""
	}
	return named && isSame(resource.NewProperty(request.Olds), resource.NewProperty(request.News), true)
}

// isUnchanged reports whether Diff finds no changes: the inputs are those of the last write, and the object that the API
// server returned then has their values.
//
// Diff would look at the live object if it is to be replaced while it is not ready.
func isUnchanged(request plugin.DiffRequest) bool {
	if !isObject(request.URN) || len(request.IgnoreChanges) > 0 {
		return false
	}
	if metadata := request.NewInputs["metadata"]; !metadata.IsObject() || hasReplaceUnready(metadata.ObjectValue()) {
		return false
	}
	inputs, live := resource.NewProperty(request.NewInputs), resource.NewProperty(request.OldOutputs)
	return isSame(request.OldOutputs["__inputs"], inputs, true) && isSame(live, inputs, false)
}

// isObject reports whether a resource is an object, and neither a Helm release nor anything else.
func isObject(urn resource.URN) bool {
	kind := urn.Type()
	return kind.Package() == "kubernetes" && kind.Module().Name() != "helm.sh/v3" && kind.Module().Name() != "helm.sh/v4"
}

func hasReplaceUnready(metadata resource.PropertyMap) bool {
	annotations, there := metadata["annotations"]
	return there && (!annotations.IsObject() || annotations.ObjectValue().HasValue("pulumi.com/replaceUnready"))
}

// isSame reports whether a value has the plain values of another one; a whole one has no other members. Marks of secrets
// don't count, as for the provider.
func isSame(value, other resource.PropertyValue, whole bool) bool {
	value, other = shown(value), shown(other)
	switch {
	case other.IsObject() && value.IsObject():
		members, others := value.ObjectValue(), other.ObjectValue()
		for name, each := range others {
			if found, there := members[name]; !there || !isSame(found, each, whole) {
				return false
			}
		}
		return !whole || len(members) == len(others)
	case other.IsArray() && value.IsArray():
		elements, others := value.ArrayValue(), other.ArrayValue()
		if len(elements) != len(others) {
			return false
		}
		for i, each := range others {
			if !isSame(elements[i], each, whole) {
				return false
			}
		}
		return true
	case other.IsString() || other.IsBool() || other.IsNumber():
		return value.V == other.V
	}
	return false
}

func shown(value resource.PropertyValue) resource.PropertyValue {
	for value.IsSecret() {
		value = value.SecretValue().Element
	}
	return value
}
