package operation

import (
	"context"
	"sync"

	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// steady wraps a factory of plugin hosts; the providers of its hosts do what the program says about a resource.
//
// They replace only what the program allows to replace. A provider asks for a replacement if it believes that an update
// is impossible, and the engine then deletes the resource and what it contains. Any other resource is updated instead: if
// the update is impossible, the provider refuses it, and nothing is lost.
//
// They create a resource with its preconditions, and update an object with its uid. They answer themselves what follows
// from a request.
func (d *declaration) steady(base engine.HostFactory) engine.HostFactory {
	return func(ctx context.Context, sink, status diag.Sink, debug plugin.DebugContext) (plugin.Host, error) {
		inner, err := base(ctx, sink, status, debug)
		return &steadyHost{inner, d}, err
	}
}

type steadyHost struct {
	plugin.Host
	program *declaration
}

func (h *steadyHost) Provider(
	ctx *plugin.Context, descriptor workspace.PluginDescriptor, e env.Env,
) (plugin.Provider, error) {
	found, err := h.Host.Provider(ctx, descriptor, e)
	if err != nil {
		return nil, err
	}
	return newSteadyProvider(found, h.program), nil
}

type steadyProvider struct {
	plugin.Provider
	program *declaration

	mutex    sync.Mutex
	replaced map[resource.URN]bool // resources that this operation replaces
}

func newSteadyProvider(inner plugin.Provider, program *declaration) *steadyProvider {
	return &steadyProvider{Provider: inner, program: program, replaced: map[resource.URN]bool{}}
}

// Check answers what follows from the request itself, see unchanged.go.
func (p *steadyProvider) Check(ctx context.Context, request plugin.CheckRequest) (plugin.CheckResponse, error) {
	if isChecked(request) {
		return plugin.CheckResponse{Properties: request.News}, nil
	}
	return p.Provider.Check(ctx, request)
}

func (p *steadyProvider) Diff(ctx context.Context, request plugin.DiffRequest) (plugin.DiffResponse, error) {
	if isUnchanged(request) {
		return plugin.DiffResponse{Changes: plugin.DiffNone}, nil
	}
	response, err := p.Provider.Diff(ctx, request)
	if err != nil || !response.Replace() {
		return response, err
	}
	if !p.program.replaces(request.URN) {
		return asUpdate(response), nil
	}
	p.mutex.Lock()
	p.replaced[request.URN] = true
	p.mutex.Unlock()
	return response, nil
}

// Create creates a resource with its preconditions. In a preview, what will be replaced still exists, so its provider
// can't be asked whether it could create another one.
func (p *steadyProvider) Create(ctx context.Context, request plugin.CreateRequest) (plugin.CreateResponse, error) {
	p.mutex.Lock()
	replaced := p.replaced[request.URN]
	p.mutex.Unlock()
	if request.Preview && replaced {
		return plugin.CreateResponse{Properties: request.Properties, Status: resource.StatusOK}, nil
	}
	if declared := p.program.find(request.URN); declared != nil && len(declared.Creating) > 0 {
		request.Properties = merged(request.Properties, resource.NewPropertyMapFromMap(declared.Creating))
	}
	return p.Provider.Create(ctx, request)
}

// Update names the object that is to be updated by its uid, with which our build of the provider needs one request
// (tools/pulumi-kubernetes/patches/provider/pkg/await/at_once.go), unless a field may be removed. The uid reaches no state.
func (p *steadyProvider) Update(ctx context.Context, request plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	if uid, known := uidOf(request); known && !removes(request.OldInputs, request.NewInputs) {
		request.NewInputs = merged(request.NewInputs, resource.PropertyMap{
			"metadata": resource.NewProperty(resource.PropertyMap{"uid": uid}),
		})
	}
	return p.Provider.Update(ctx, request)
}

// uidOf returns the uid of the object that is to be updated; false: it is none, or none that has one.
func uidOf(request plugin.UpdateRequest) (resource.PropertyValue, bool) {
	before, after := request.OldOutputs["metadata"], request.NewInputs["metadata"]
	if request.Preview || request.URN.Type().Package() != "kubernetes" || !before.IsObject() || !after.IsObject() {
		return resource.PropertyValue{}, false
	}
	uid := before.ObjectValue()["uid"]
	return uid, uid.IsString()
}

// replaces reports whether the resource may be replaced. One that is not in the program is deleted anyway.
func (d *declaration) replaces(urn resource.URN) bool {
	declared := d.find(urn)
	return declared != nil && declared.Replace
}

// find returns the declared resource, or nil.
func (d *declaration) find(urn resource.URN) *declaredResource {
	for i := range d.Resources {
		if each := &d.Resources[i]; each.Name == urn.Name() && each.Type == string(urn.Type()) {
			return each
		}
	}
	return nil
}

// merged returns a copy of properties with those of added; objects in both are merged.
func merged(properties, added resource.PropertyMap) resource.PropertyMap {
	result := properties.Copy()
	for name, value := range added {
		if before, there := result[name]; there && before.IsObject() && value.IsObject() {
			value = resource.NewProperty(merged(before.ObjectValue(), value.ObjectValue()))
		}
		result[name] = value
	}
	return result
}

// asUpdate returns the same difference without a replacement.
func asUpdate(response plugin.DiffResponse) plugin.DiffResponse {
	kinds := map[plugin.DiffKind]plugin.DiffKind{
		plugin.DiffAddReplace:    plugin.DiffAdd,
		plugin.DiffDeleteReplace: plugin.DiffDelete,
		plugin.DiffUpdateReplace: plugin.DiffUpdate,
	}
	detailed := make(map[string]plugin.PropertyDiff, len(response.DetailedDiff))
	for path, each := range response.DetailedDiff {
		if kind, there := kinds[each.Kind]; there {
			each.Kind = kind
		}
		detailed[path] = each
	}
	response.ReplaceKeys, response.DeleteBeforeReplace, response.DetailedDiff = nil, false, detailed
	return response
}
