package operation

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// asking answers each Diff with one response.
type asking struct {
	plugin.Provider
	response plugin.DiffResponse
	err      error
	refusal  error // of each Create
}

// Create returns the inputs as outputs.
func (a asking) Create(_ context.Context, request plugin.CreateRequest) (plugin.CreateResponse, error) {
	return plugin.CreateResponse{Properties: request.Properties}, a.refusal
}

func (a asking) Diff(context.Context, plugin.DiffRequest) (plugin.DiffResponse, error) {
	return a.response, a.err
}

// Update returns the inputs as outputs.
func (a asking) Update(_ context.Context, request plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	return plugin.UpdateResponse{Properties: request.NewInputs}, nil
}

func replacement() plugin.DiffResponse {
	return plugin.DiffResult{
		Changes: plugin.DiffSome, ReplaceKeys: []resource.PropertyKey{"spec"}, DeleteBeforeReplace: true,
		ChangedKeys: []resource.PropertyKey{"spec"},
		DetailedDiff: map[string]plugin.PropertyDiff{
			"spec.selector": {Kind: plugin.DiffUpdateReplace, InputDiff: true},
			"spec.a":        {Kind: plugin.DiffAddReplace},
			"spec.b":        {Kind: plugin.DiffDeleteReplace},
			"data":          {Kind: plugin.DiffUpdate},
		},
	}
}

func diffOf(t *testing.T, replace bool, urn resource.URN) plugin.DiffResponse {
	t.Helper()
	program := &declaration{Resources: []declaredResource{
		{Type: stackType, Name: "reside-demo", Replace: true},
		{Type: "kubernetes:apps/v1:Deployment", Name: "web", Replace: replace},
	}}
	found, err := newSteadyProvider(asking{response: replacement()}, program).Diff(
		context.Background(), plugin.DiffRequest{URN: urn})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

const webURN = "urn:pulumi:demo::reside::pulumi:pulumi:Stack$kubernetes:apps/v1:Deployment::web"

func TestAResourceThatMayNotBeReplacedIsUpdated(t *testing.T) {
	found := diffOf(t, false, webURN)
	if found.Replace() || found.DeleteBeforeReplace || found.Changes != plugin.DiffSome {
		t.Errorf("expected an update, got %+v", found)
	}
	if kind := found.DetailedDiff["spec.selector"]; kind.Kind != plugin.DiffUpdate || !kind.InputDiff {
		t.Errorf("expected an update of an input, got %+v", kind)
	}
	if len(found.DetailedDiff) != 4 || len(found.ChangedKeys) != 1 {
		t.Errorf("expected the same paths, got %+v", found)
	}
}

func TestAResourceThatMayBeReplacedIsReplaced(t *testing.T) {
	if found := diffOf(t, true, webURN); !found.Replace() || !found.DeleteBeforeReplace {
		t.Errorf("expected a replacement, got %+v", found)
	}
}

func TestAResourceOfAnotherTypeIsNotTheOneOfTheProgram(t *testing.T) {
	if found := diffOf(t, true, "urn:pulumi:demo::reside::kubernetes:apps/v1:StatefulSet::web"); found.Replace() {
		t.Errorf("expected an update, got %+v", found)
	}
}

func TestAnErrorOfTheProviderStays(t *testing.T) {
	provider := newSteadyProvider(asking{err: errors.New("broken")}, &declaration{})
	if _, err := provider.Diff(context.Background(), plugin.DiffRequest{URN: webURN}); err == nil {
		t.Error("expected the error")
	}
}

func TestAResourceIsCreatedWithItsPreconditions(t *testing.T) {
	program := &declaration{Resources: []declaredResource{
		{Type: "kubernetes:apps/v1:Deployment", Name: "web", Creating: map[string]any{
			"metadata": map[string]any{"resourceVersion": "1"},
		}},
	}}
	inputs := resource.NewPropertyMapFromMap(map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "web"}})
	before := inputs.Copy()
	for urn, expected := range map[resource.URN]map[string]any{
		webURN: {"kind": "Deployment", "metadata": map[string]any{"name": "web", "resourceVersion": "1"}},
		"urn:pulumi:demo::reside::kubernetes:apps/v1:Deployment::other": before.Mappable(),
	} {
		response, err := newSteadyProvider(asking{}, program).Create(
			context.Background(), plugin.CreateRequest{URN: urn, Properties: inputs})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(response.Properties.Mappable(), expected) {
			t.Errorf("expected %v, got %v", expected, response.Properties.Mappable())
		}
	}
	if !reflect.DeepEqual(inputs, before) {
		t.Errorf("the inputs have changed: %v", inputs)
	}
}

func TestThePreviewOfAReplacementDoesNotCreateBesideTheOldOne(t *testing.T) {
	program := &declaration{Resources: []declaredResource{
		{Type: "kubernetes:apps/v1:Deployment", Name: "web", Replace: true},
	}}
	provider := newSteadyProvider(asking{response: replacement(), refusal: errors.New("it exists")}, program)
	create := func(preview bool) error {
		_, err := provider.Create(context.Background(), plugin.CreateRequest{URN: webURN, Preview: preview})
		return err
	}
	if create(true) == nil {
		t.Error("expected the preview of a new resource to ask the provider")
	}
	if _, err := provider.Diff(context.Background(), plugin.DiffRequest{URN: webURN}); err != nil {
		t.Fatal(err)
	}
	if err := create(true); err != nil {
		t.Error(err)
	}
	if create(false) == nil {
		t.Error("expected the provider to create it")
	}
}

func TestAnObjectIsUpdatedByItsUid(t *testing.T) {
	named := func(metadata map[string]any) resource.PropertyMap {
		return resource.NewPropertyMapFromMap(map[string]any{"metadata": metadata})
	}
	known := named(map[string]any{"name": "web", "uid": "u"})
	asked := plugin.UpdateRequest{URN: webURN, OldOutputs: known, NewInputs: named(map[string]any{"name": "web"})}
	preview, other, unknown := asked, asked, asked
	preview.Preview = true
	other.URN = "urn:pulumi:demo::reside::random:index/randomId:RandomId::web"
	unknown.OldOutputs = named(map[string]any{"name": "web"})
	hidden := asked
	hidden.NewInputs = resource.PropertyMap{"metadata": resource.MakeSecret(asked.NewInputs["metadata"])}
	for name, each := range map[string]struct {
		request  plugin.UpdateRequest
		expected resource.PropertyMap
	}{
		"known": {asked, known}, "preview": {preview, preview.NewInputs}, "other": {other, other.NewInputs},
		"unknown": {unknown, unknown.NewInputs}, "hidden": {hidden, hidden.NewInputs},
	} {
		response, err := newSteadyProvider(asking{}, &declaration{}).Update(context.Background(), each.request)
		if err != nil || !response.Properties.DeepEquals(each.expected) {
			t.Errorf("%s: expected %v, got %v, %v", name, each.expected, response.Properties, err)
		}
	}
	if asked.NewInputs["metadata"].ObjectValue().HasValue("uid") {
		t.Error("the inputs have changed")
	}
}
