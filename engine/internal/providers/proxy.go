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

// proxy is what an operation's engine takes for a provider of its own. Its calls are in calls.go.
type proxy struct {
	plugin.NotForwardCompatibleProvider

	host       *host
	ctx        *plugin.Context
	descriptor workspace.PluginDescriptor
	env        env.Env
	inFolder   spec

	mutex         sync.Mutex
	configuration *plugin.ConfigureRequest
	bound         map[bool]*process // configured ones: one for all folders, one in the project's
	own           plugin.Provider   // instead of a kept one
	closed        bool
}

var _ plugin.Provider = (*proxy)(nil)

// wanted is what a process is started with that works in the project's folder, or in any.
func (p *proxy) wanted(inFolder bool) spec {
	if inFolder || !folderFree(p.descriptor.Name) {
		return p.inFolder
	}
	anywhere := p.inFolder
	anywhere.folder, anywhere.project, anywhere.options = "/", "", nil
	return anywhere
}

// target is who answers a call: the operation's own provider, or a process. inFolder says that the call may open files
// of the project's folder.
func (p *proxy) target(inFolder bool) (plugin.Provider, *process, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch {
	case p.closed:
		return nil, nil, errors.New("the provider is closed")
	case p.own != nil:
		return p.own, nil, nil
	case p.configuration == nil:
		found, err := p.host.lease.pool.anyOf(p.host.lease, p.wanted(inFolder), p.host.base)
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

// alwaysInFolder tells whether the configuration itself is relative to the project's folder.
func (p *proxy) alwaysInFolder(inputs ...resource.PropertyMap) bool {
	for _, each := range inputs {
		if relativePaths(each, os.Getenv) {
			return true
		}
	}
	return false
}

// bind finds the process with the proxy's configuration, or configures one.
func (p *proxy) bind(inFolder bool) (*process, error) {
	lease := p.host.lease
	config := configurationKey(p.descriptor.Name, *p.configuration, p.host.files(p.ctx))
	found, ours, err := lease.pool.exactly(lease, p.wanted(inFolder), config, p.host.base)
	if err != nil {
		return nil, err
	}
	if ours {
		return found, found.configure(p.ctx.Request(), *p.configuration)
	}
	return found, found.awaitConfigured(lease.ended)
}

// Configure binds the proxy. A configuration with values that are not known yet configures nothing in Pulumi, so it
// makes no process that could be kept.
func (p *proxy) Configure(ctx context.Context, request plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
	if resource.NewProperty(request.Inputs).ContainsUnknowns() {
		if _, err := p.giveUpKeeping(); err != nil {
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

// Parameterize makes another package of the provider, in a process that then serves nothing else.
func (p *proxy) Parameterize(
	ctx context.Context, request plugin.ParameterizeRequest,
) (plugin.ParameterizeResponse, error) {
	own, err := p.giveUpKeeping()
	if err != nil {
		return plugin.ParameterizeResponse{}, err
	}
	return own.Parameterize(ctx, request)
}

// giveUpKeeping turns to a provider of the operation's own.
func (p *proxy) giveUpKeeping() (plugin.Provider, error) {
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

// Close ends the proxy. A kept process stays with the operation until its end.
func (p *proxy) Close() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.closed = true
	if p.own != nil {
		return p.own.Close()
	}
	return nil
}

// SignalCancellation does nothing for a kept process: the engine interrupts an operation through its host.
func (p *proxy) SignalCancellation(ctx context.Context) error {
	p.mutex.Lock()
	own := p.own
	p.mutex.Unlock()
	if own != nil {
		return own.SignalCancellation(ctx)
	}
	return nil
}
