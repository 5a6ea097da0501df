package operation

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestAnUpdateThatMayRemoveAFieldIsTold(t *testing.T) {
	type m = map[string]any
	list := func(elements ...any) m { return m{"spec": m{"list": elements}} }
	hidden := resource.NewPropertyMapFromMap(m{"data": m{"a": "1"}})
	hidden["data"] = resource.MakeSecret(hidden["data"])
	for name, each := range map[string]struct {
		before, after m
		expected      bool
	}{
		"same":             {m{"data": m{"a": "1"}}, m{"data": m{"a": "1"}}, false},
		"changed":          {m{"data": m{"a": "1"}}, m{"data": m{"a": "2"}}, false},
		"added":            {m{"data": m{"a": "1"}}, m{"data": m{"a": "1", "b": "1"}}, false},
		"removed":          {m{"data": m{"a": "1", "b": "1"}}, m{"data": m{"a": "1"}}, true},
		"removed whole":    {m{"data": m{"a": "1"}}, m{}, true},
		"null":             {m{"data": "1"}, m{"data": nil}, true},
		"another kind":     {m{"data": m{"a": "1"}}, m{"data": "1"}, true},
		"element changed":  {list(m{"name": "a", "value": "1"}), list(m{"name": "a", "value": "2"}), false},
		"element renamed":  {list(m{"name": "a", "value": "1"}), list(m{"name": "b", "value": "1"}), true},
		"element removed":  {list(m{"name": "a"}, m{"name": "b"}), list(m{"name": "a"}), true},
		"member of one":    {list(m{"name": "a", "value": "1"}), list(m{"name": "a"}), true},
		"port changed":     {list(m{"port": 1.0}), list(m{"port": 2.0}), true},
		"argument changed": {list("a"), list("b"), true},
		"yields": {
			m{"spec": m{"replicas": 1.0}}, m{"metadata": m{"annotations": m{yieldAnnotation: "spec.replicas"}}}, false,
		},
	} {
		before, after := resource.NewPropertyMapFromMap(each.before), resource.NewPropertyMapFromMap(each.after)
		if removes(before, after) != each.expected {
			t.Errorf("%s: expected %v", name, each.expected)
		}
	}
	if removes(hidden, resource.NewPropertyMapFromMap(m{"data": m{"a": "2"}})) || !removes(hidden, resource.PropertyMap{}) {
		t.Error("secrets are not compared as the values that they hide")
	}
}
