package operation

import (
	"context"

	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// steady wraps a factory of plugin hosts; the providers of its hosts replace only what the program allows to replace. A
// provider asks for a replacement if it believes that an update is impossible, and the engine then deletes the resource
// and what it contains. Any other resource is updated instead: if the update is impossible, the provider refuses it, and
// nothing is lost.
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
	return &steadyProvider{found, h.program}, nil
}

type steadyProvider struct {
	plugin.Provider
	program *declaration
}

func (p *steadyProvider) Diff(ctx context.Context, request plugin.DiffRequest) (plugin.DiffResponse, error) {
	response, err := p.Provider.Diff(ctx, request)
	if err != nil || !response.Replace() || p.program.replaces(request.URN) {
		return response, err
	}
	return asUpdate(response), nil
}

// replaces reports whether the resource may be replaced.
func (d *declaration) replaces(urn resource.URN) bool {
	for _, each := range d.Resources {
		if each.Name == urn.Name() && each.Type == string(urn.Type()) {
			return each.Replace
		}
	}
	return false // it is not in the program, so the engine deletes it anyway
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
