package providers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// proxy is the provider that the engine of an operation gets. Its calls are in calls.go.
type proxy struct {
	plugin.NotForwardCompatibleProvider

	host       *host
	ctx        *plugin.Context
	descriptor workspace.PluginDescriptor
	env        env.Env
	inFolder   spec

	mutex         sync.Mutex
	configuration *plugin.ConfigureRequest
	bound         map[bool]*process // configured processes: key true for the project's folder, false for any folder
	own           plugin.Provider   // used instead of a kept process, if set
	closed        bool
}

var _ plugin.Provider = (*proxy)(nil)

// required returns the spec of a process for the project's folder, or for any folder.
func (p *proxy) required(inFolder bool) spec {
	if inFolder || !folderFree(p.descriptor.Name) {
		return p.inFolder
	}
	anywhere := p.inFolder
	anywhere.folder, anywhere.project, anywhere.options = "/", "", nil
	return anywhere
}

// target returns what handles a call: the operation's separate provider, or a kept process. inFolder means that the
// call may open files in the project's folder.
func (p *proxy) target(inFolder bool) (plugin.Provider, *process, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch {
	case p.closed:
		return nil, nil, errors.New("the provider is closed")
	case p.own != nil:
		return p.own, nil, nil
	case p.configuration == nil:
		found, err := p.host.lease.pool.joinAny(p.host.lease, p.required(inFolder), p.host.base)
		return nil, found, err
	}
	inFolder = inFolder || p.alwaysInFolder(p.configuration.Inputs)
	if !folderFree(p.descriptor.Name) {
		inFolder = true
	}
	if found, ok := p.bound[inFolder]; ok {
		return nil, found, nil
	}
	found, err := p.bind(inFolder)
	if err == nil {
		p.bound[inFolder] = found
	}
	return nil, found, err
}

// alwaysInFolder reports whether the configuration contains paths relative to the project's folder.
func (p *proxy) alwaysInFolder(inputs ...resource.PropertyMap) bool {
	for _, each := range inputs {
		if relativePaths(each, os.Getenv) {
			return true
		}
	}
	return false
}

// bind joins the process with the configuration of the proxy, or configures one.
func (p *proxy) bind(inFolder bool) (*process, error) {
	lease := p.host.lease
	config := configurationKey(p.descriptor.Name, *p.configuration, p.host.files(p.ctx))
	found, ours, err := lease.pool.joinConfigured(lease, p.required(inFolder), config, p.host.base)
	if err != nil {
		return nil, err
	}
	if ours {
		return found, found.configure(p.ctx.Request(), *p.configuration)
	}
	return found, found.awaitConfigured(lease.ended)
}

// Configure binds the proxy. Pulumi does not configure a provider whose configuration has unknown values, so such a
// provider is not kept.
func (p *proxy) Configure(ctx context.Context, request plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
	if resource.NewProperty(request.Inputs).ContainsUnknowns() {
		if _, err := p.useOwn(); err != nil {
			return plugin.ConfigureResponse{}, err
		}
	}
	p.mutex.Lock()
	own := p.own
	if own == nil {
		p.configuration, p.bound = &request, map[bool]*process{}
	}
	p.mutex.Unlock()
	if own != nil {
		return own.Configure(ctx, request)
	}
	_, _, err := p.target(false)
	return plugin.ConfigureResponse{}, err
}

// Parameterize makes the provider serve another package, so the operation gets a separate process.
func (p *proxy) Parameterize(
	ctx context.Context, request plugin.ParameterizeRequest,
) (plugin.ParameterizeResponse, error) {
	own, err := p.useOwn()
	if err != nil {
		return plugin.ParameterizeResponse{}, err
	}
	return own.Parameterize(ctx, request)
}

// useOwn starts a separate provider process for the operation; the proxy uses it from now on.
func (p *proxy) useOwn() (plugin.Provider, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.own != nil {
		return p.own, nil
	}
	own, err := p.host.own(p.ctx, p.descriptor, p.env)
	if err != nil {
		return nil, fmt.Errorf("starting the provider %s: %w", p.descriptor.Name, err)
	}
	p.own = own
	return own, nil
}

// Close closes the proxy. The operation uses a kept process until the operation ends.
func (p *proxy) Close() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.closed = true
	if p.own != nil {
		return p.own.Close()
	}
	return nil
}

// SignalCancellation does nothing for a kept process, because the engine interrupts an operation through its host.
func (p *proxy) SignalCancellation(ctx context.Context) error {
	p.mutex.Lock()
	own := p.own
	p.mutex.Unlock()
	if own != nil {
		return own.SignalCancellation(ctx)
	}
	return nil
}
