package providers

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// host is the plugin host of an operation. It is the stock host, except that it takes providers from the pool if
// possible.
type host struct {
	plugin.Host
	lease            *Lease
	base             engine.HostFactory
	messages, status diag.Sink

	connections connections

	closing sync.Once
	closed  chan struct{} // closed when the engine has released the host
}

// Provider returns a proxy for a kept process, or the provider of the stock host.
func (h *host) Provider(
	ctx *plugin.Context, descriptor workspace.PluginDescriptor, e env.Env,
) (plugin.Provider, error) {
	reason, err := reasonToOwn(ctx, h.Host, descriptor)
	if err != nil {
		return nil, err
	}
	if reason != "" {
		return h.own(ctx, descriptor, e)
	}
	path, err := workspace.GetPluginPath(ctx.Base(), ctx.Diag, descriptor, ctx.ProjectPlugins())
	if err != nil {
		return nil, err
	}
	if reasonToOwnPath(path) != "" {
		return h.own(ctx, descriptor, e)
	}
	inFolder, err := h.spec(ctx, descriptor, path, e)
	if err != nil {
		return nil, err
	}
	made := &proxy{host: h, ctx: ctx, descriptor: descriptor, env: e, inFolder: inFolder, bound: map[bool]*process{}}
	info, err := made.GetPluginInfo(ctx.Request())
	if err != nil {
		return nil, errors.Join(err, made.Close())
	}
	warnOfVersion(ctx, descriptor, info)
	return made, nil
}

// own starts a separate provider process for the operation, as the stock engine does. The stock host would read the
// project's name in the working folder of the engine's process, which is not the project's folder, so the name is set
// here.
func (h *host) own(ctx *plugin.Context, descriptor workspace.PluginDescriptor, e env.Env) (plugin.Provider, error) {
	return h.Host.Provider(ctx, descriptor, joinEnv(e, env.MapStore{
		"PULUMI_PROJECT": h.lease.project, "PULUMI_NODEJS_PROJECT": h.lease.project,
	}))
}

// spec returns how to start the provider in the project's folder.
func (h *host) spec(
	ctx *plugin.Context, descriptor workspace.PluginDescriptor, path string, e env.Env,
) (spec, error) {
	values := map[string]string{}
	for key, value := range ctx.Config() {
		if key.Namespace() == descriptor.Name {
			values[key.Name()] = value
		}
	}
	config, err := json.Marshal(values)
	if err != nil {
		return spec{}, fmt.Errorf("encoding the configuration for %s: %w", descriptor.Name, err)
	}
	return spec{
		descriptor: descriptor, path: path, folder: ctx.Pwd, project: h.lease.project, config: string(config),
		options: runtimeOptions(ctx.RuntimeOptions()), disableProviderPreview: ctx.DisableProviderPreview(),
		credentials: ctx.CloudCredentialEnv, env: e,
	}, nil
}

// SignalCancellation forwards an interrupt to all providers of the operation.
func (h *host) SignalCancellation() error {
	return errors.Join(h.lease.cancel(), h.Host.SignalCancellation())
}

// ReleaseContext abandons the pending calls of the context. The engine releases a context when an operation ends or is
// terminated.
func (h *host) ReleaseContext(ctx *plugin.Context) error {
	h.abandonCalls()
	return h.Host.ReleaseContext(ctx)
}

// Close closes the host. Kept processes continue to run.
func (h *host) Close() error {
	h.abandonCalls()
	h.lease.hostsMutex.Lock()
	h.lease.hosts = slices.DeleteFunc(h.lease.hosts, func(other *host) bool { return other == h })
	h.lease.hostsMutex.Unlock()
	return errors.Join(h.Host.Close(), h.connections.close())
}

// Loader is the first method that a new context calls on its host, so it can watch all connections of the context.
func (h *host) Loader(ctx *plugin.Context) (*plugin.GrpcServer, error) {
	h.connections.watch(ctx)
	return h.Host.Loader(ctx)
}

// abandonCalls makes all pending calls return.
func (h *host) abandonCalls() { h.closing.Do(func() { close(h.closed) }) }

// files returns where the providers of this operation find the files that their configuration names.
func (h *host) files(ctx *plugin.Context) files {
	home, _ := os.UserHomeDir() // without a home, the provider finds no files there either
	return files{folder: ctx.Pwd, home: home, environ: os.Environ()}
}

// warnOfVersion warns if the plugin is older than required, as the stock host does.
func warnOfVersion(ctx *plugin.Context, descriptor workspace.PluginDescriptor, info plugin.PluginInfo) {
	version := descriptor.Version
	if version == nil || env.Dev.Value() || (info.Version != nil && info.Version.GTE(*version)) {
		return
	}
	var has string
	if info.Version != nil {
		has = info.Version.String()
	}
	ctx.Diag.Warningf(diag.Message("", "resource plugin %s is expected to have version >=%s, but has %s; "+
		"the wrong version may be on your path, or this may be a bug in the plugin"), descriptor.Name, version, has)
}
