package operation

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// yieldAnnotation names the fields that an object leaves to others (reside/policy/yielded_fields.py).
const yieldAnnotation = "reside.io/yield"

// identifying are the members that tell apart the elements of Kubernetes' lists.
var identifying = []resource.PropertyKey{
	"name", "key", "uid", "ip", "port", "containerPort", "protocol", "mountPath", "devicePath", "topologyKey",
	"whenUnsatisfiable", "type",
}

// removes reports whether an update may remove a field that its object had. Another manager that has changed the field
// owns it then, and it would stay: only the release's way of an update takes it over from kubectl first. An object that
// leaves fields to others keeps theirs.
func removes(before, after resource.PropertyMap) bool {
	return !leavesFields(after) && !keeps(resource.NewProperty(before), resource.NewProperty(after))
}

func leavesFields(inputs resource.PropertyMap) bool {
	metadata := shown(inputs["metadata"])
	if !metadata.IsObject() {
		return false
	}
	annotations := shown(metadata.ObjectValue()["annotations"])
	return annotations.IsObject() && annotations.ObjectValue().HasValue(yieldAnnotation)
}

// keeps reports whether a value certainly has the members and elements of an earlier one. Their values may differ: if
// somebody else has changed one of them, the update is a conflict.
func keeps(before, after resource.PropertyValue) bool {
	before, after = shown(before), shown(after)
	switch {
	case before.IsObject() && after.IsObject():
		for name, each := range before.ObjectValue() {
			if found, there := after.ObjectValue()[name]; !there || !keeps(each, found) {
				return false
			}
		}
		return true
	case before.IsArray() && after.IsArray():
		return slices.EqualFunc(before.ArrayValue(), after.ArrayValue(), isSameElement)
	}
	return !before.IsObject() && !before.IsArray() && !after.IsNull()
}

// isSameElement reports whether two elements of lists are certainly of the same thing, and the later one keeps it.
func isSameElement(before, after resource.PropertyValue) bool {
	before, after = shown(before), shown(after)
	if !before.IsObject() || !after.IsObject() {
		return isSame(before, after, true)
	}
	for _, name := range identifying {
		one, there := before.ObjectValue()[name]
		other, also := after.ObjectValue()[name]
		if there != also || there && !isSame(one, other, true) {
			return false
		}
	}
	return keeps(before, after)
}
