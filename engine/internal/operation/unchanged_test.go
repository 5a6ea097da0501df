package operation

import (
	"context"
	"errors"
	"testing"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// refusing is a provider that must not be asked.
type refusing struct{ plugin.Provider }

var errAsked = errors.New("the provider was asked")

func (refusing) Check(context.Context, plugin.CheckRequest) (plugin.CheckResponse, error) {
	return plugin.CheckResponse{}, errAsked
}

func (refusing) Diff(context.Context, plugin.DiffRequest) (plugin.DiffResponse, error) {
	return plugin.DiffResponse{}, errAsked
}

type values = map[string]any

// deployment returns the inputs of an object; change may change them.
func deployment(change func(values)) resource.PropertyMap {
	made := values{
		"kind":     "Deployment",
		"metadata": values{"name": "web", "annotations": values{"a": "b"}},
		"spec":     values{"replicas": 0, "paused": false, "args": []any{"serve", values{"port": 80}}, "empty": values{}},
	}
	change(made)
	return resource.NewPropertyMapFromMap(made)
}

// returned returns the outputs of an object with these inputs, with what the API server adds.
func returned(inputs resource.PropertyMap, change func(live values)) resource.PropertyMap {
	live := inputs.Mappable()
	live["metadata"].(values)["uid"] = "u"
	live["status"] = values{"replicas": 0}
	change(live)
	outputs := resource.NewPropertyMapFromMap(live)
	outputs["__inputs"] = resource.NewProperty(inputs)
	return outputs
}

func same(values) {}

func TestAnObjectThatIsAsBeforeIsNotAsked(t *testing.T) {
	inputs := deployment(same)
	hidden := inputs.Copy()
	hidden["spec"] = resource.MakeSecret(hidden["spec"])
	provider := newSteadyProvider(refusing{}, &declaration{})
	for _, news := range []resource.PropertyMap{inputs, hidden} {
		checked, err := provider.Check(context.Background(), plugin.CheckRequest{
			URN: webURN, Type: "kubernetes:apps/v1:Deployment", Olds: inputs, News: news,
		})
		if err != nil || !checked.Properties.DeepEquals(news) {
			t.Errorf("expected the new inputs, got %v, %v", checked, err)
		}
		found, err := provider.Diff(context.Background(), plugin.DiffRequest{
			URN: webURN, OldInputs: inputs, OldOutputs: returned(inputs, same), NewInputs: news,
		})
		if err != nil || found.Changes != plugin.DiffNone {
			t.Errorf("expected no changes, got %v, %v", found, err)
		}
	}
}

func TestAnInputThatDiffersIsAsked(t *testing.T) {
	before := deployment(same)
	spec := func(change func(values)) func(values) {
		return func(all values) { change(all["spec"].(values)) }
	}
	for name, change := range map[string]func(values){
		"another value":      spec(func(spec values) { spec["replicas"] = 1 }),
		"another type":       spec(func(spec values) { spec["replicas"] = "0" }),
		"a null":             spec(func(spec values) { spec["replicas"] = nil }),
		"a member more":      spec(func(spec values) { spec["more"] = 1 }),
		"a member less":      spec(func(spec values) { delete(spec, "paused") }),
		"an element less":    spec(func(spec values) { spec["args"] = []any{"serve"} }),
		"an element differs": spec(func(spec values) { spec["args"] = []any{"serve", values{"port": 81}} }),
		"no name":            func(all values) { all["metadata"] = values{} },
	} {
		news := deployment(change)
		if isChecked(plugin.CheckRequest{URN: webURN, Olds: before, News: news}) {
			t.Errorf("%s: Check is not asked", name)
		}
		if isUnchanged(plugin.DiffRequest{URN: webURN, OldOutputs: returned(before, same), NewInputs: news}) {
			t.Errorf("%s: Diff is not asked", name)
		}
	}
}

func TestAStateThatDiffersFromTheInputsIsAsked(t *testing.T) {
	inputs := deployment(same)
	for name, change := range map[string]func(values){
		"another value": func(live values) { live["kind"] = "Job" },
		"a member less": func(live values) { delete(live["spec"].(values), "paused") },
		"an element more": func(live values) {
			live["spec"].(values)["args"] = []any{"serve", values{"port": 80}, "more"}
		},
	} {
		if isUnchanged(plugin.DiffRequest{URN: webURN, OldOutputs: returned(inputs, change), NewInputs: inputs}) {
			t.Errorf("%s: Diff is not asked", name)
		}
	}
	without := returned(inputs, same)
	delete(without, "__inputs")
	if isUnchanged(plugin.DiffRequest{URN: webURN, OldOutputs: without, NewInputs: inputs}) {
		t.Error("inputs of an unknown write: Diff is not asked")
	}
}

func TestWhatDoesMoreThanCompareIsAsked(t *testing.T) {
	unready := deployment(func(all values) {
		all["metadata"].(values)["annotations"] = values{"pulumi.com/replaceUnready": "true"}
	})
	inputs, outputs := deployment(same), returned(deployment(same), same)
	for name, request := range map[string]plugin.DiffRequest{
		"unready": {URN: webURN, OldOutputs: returned(unready, same), NewInputs: unready},
		"ignored": {URN: webURN, OldOutputs: outputs, NewInputs: inputs, IgnoreChanges: []string{"spec"}},
		"release": {URN: "urn:pulumi:demo::reside::kubernetes:helm.sh/v3:Release::web", OldOutputs: outputs, NewInputs: inputs},
		"other":   {URN: "urn:pulumi:demo::reside::random:index/randomId:RandomId::a", OldOutputs: outputs, NewInputs: inputs},
	} {
		if isUnchanged(request) {
			t.Errorf("%s: Diff is not asked", name)
		}
	}
	for _, kind := range []string{"apiextensions.k8s.io/v1:CustomResourceDefinition", "helm.sh/v3:Release"} {
		urn := resource.URN("urn:pulumi:demo::reside::kubernetes:" + kind + "::web")
		if isChecked(plugin.CheckRequest{URN: urn, Type: urn.Type(), Olds: inputs, News: inputs}) {
			t.Errorf("%s: Check is not asked", kind)
		}
	}
}
