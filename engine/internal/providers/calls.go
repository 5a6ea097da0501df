package providers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
)

// endGrace is how long to wait after a broken connection for the process to end.
const endGrace = time.Second

// call calls the provider behind the proxy. If the host is closed first, call returns lost and discards the response.
func call[T any](p *proxy, inFolder bool, lost T, ask func(plugin.Provider) (T, error)) (T, error) {
	own, asked, err := p.target(inFolder)
	if own != nil {
		return ask(own)
	}
	lease := p.host.lease
	if err == nil {
		err = lease.enter(asked)
	}
	if err != nil {
		return lost, err
	}
	type result struct {
		response T
		err      error
	}
	results := make(chan result, 1)
	go func() {
		response, err := ask(asked.running)
		if err != nil {
			err = asked.explain(err)
		}
		lease.leave(asked, err)
		results <- result{response, err}
	}()
	select {
	case got := <-results:
		return got.response, got.err
	case <-p.host.closed:
		return lost, fmt.Errorf("%s: %w before it responded", p.descriptor.Name, errCancelled)
	}
}

// enter counts a call. It refuses calls of a cancelled operation to a process that other operations use. A process that
// received Cancel refuses calls itself.
func (l *Lease) enter(asked *process) error {
	l.pool.mutex.Lock()
	defer l.pool.mutex.Unlock()
	how, ok := asked.users[l]
	if !ok {
		return errEnded
	}
	if l.cancelled && !asked.signalled {
		return errCancelled
	}
	how.calls++
	asked.asked++
	return nil
}

// leave ends a call, and notes whether the process must be retired because of its error.
func (l *Lease) leave(asked *process, err error) {
	l.pool.mutex.Lock()
	defer l.pool.mutex.Unlock()
	how, ok := asked.users[l]
	if !ok {
		return
	}
	how.calls--
	if err != nil && mayCache(asked.spec.descriptor.Name, err) {
		how.trouble = "a call failed, and the provider may cache the cause"
	}
}

// markUntrusted notes that the processes of a proxy must be retired after the operation.
func (l *Lease) markUntrusted(p *proxy, why string) {
	p.mutex.Lock()
	bound := slices.Collect(maps.Values(p.bound))
	p.mutex.Unlock()
	l.pool.mutex.Lock()
	defer l.pool.mutex.Unlock()
	for _, asked := range bound {
		if how, ok := asked.users[l]; ok {
			how.trouble = why
		}
	}
}

// explain adds to the error of a call that the process has ended, if that is its cause.
func (p *process) explain(err error) error {
	if rpc, ok := rpcerror.FromError(err); !ok || rpc.Code() != codes.Unavailable {
		return err
	}
	select {
	case <-p.running.exited:
		return status.Errorf(codes.Unavailable, "the provider %s ended during the call: %v", p, err)
	case <-time.After(endGrace):
		return err
	}
}

func (p *proxy) Handshake(
	ctx context.Context, request plugin.ProviderHandshakeRequest,
) (*plugin.ProviderHandshakeResponse, error) {
	own, err := p.useOwn() // a kept process would get the addresses of services that end with the operation
	if err != nil {
		return nil, err
	}
	return own.Handshake(ctx, request)
}

func (p *proxy) GetPluginInfo(ctx context.Context) (plugin.PluginInfo, error) {
	return call(p, false, plugin.PluginInfo{}, func(to plugin.Provider) (plugin.PluginInfo, error) {
		return to.GetPluginInfo(ctx)
	})
}

func (p *proxy) GetSchema(ctx context.Context, request plugin.GetSchemaRequest) (plugin.GetSchemaResponse, error) {
	return call(p, false, plugin.GetSchemaResponse{}, func(to plugin.Provider) (plugin.GetSchemaResponse, error) {
		return to.GetSchema(ctx, request)
	})
}

func (p *proxy) GetMapping(ctx context.Context, request plugin.GetMappingRequest) (plugin.GetMappingResponse, error) {
	return call(p, false, plugin.GetMappingResponse{}, func(to plugin.Provider) (plugin.GetMappingResponse, error) {
		return to.GetMapping(ctx, request)
	})
}

func (p *proxy) GetMappings(
	ctx context.Context, request plugin.GetMappingsRequest,
) (plugin.GetMappingsResponse, error) {
	return call(p, false, plugin.GetMappingsResponse{}, func(to plugin.Provider) (plugin.GetMappingsResponse, error) {
		return to.GetMappings(ctx, request)
	})
}

func (p *proxy) CheckConfig(
	ctx context.Context, request plugin.CheckConfigRequest,
) (plugin.CheckConfigResponse, error) {
	inFolder := p.alwaysInFolder(resource.ToResourcePropertyMap(request.News))
	return call(p, inFolder, plugin.CheckConfigResponse{}, func(to plugin.Provider) (plugin.CheckConfigResponse, error) {
		return to.CheckConfig(ctx, request)
	})
}

func (p *proxy) DiffConfig(ctx context.Context, request plugin.DiffConfigRequest) (plugin.DiffConfigResponse, error) {
	inFolder := p.alwaysInFolder(request.NewInputs, request.OldInputs)
	return call(p, inFolder, plugin.DiffConfigResponse{}, func(to plugin.Provider) (plugin.DiffConfigResponse, error) {
		return to.DiffConfig(ctx, request)
	})
}

func (p *proxy) Check(ctx context.Context, request plugin.CheckRequest) (plugin.CheckResponse, error) {
	inFolder := needsFolder(request.URN.Type())
	ask := func() (plugin.CheckResponse, error) {
		return call(p, inFolder, plugin.CheckResponse{}, func(to plugin.Provider) (plugin.CheckResponse, error) {
			return to.Check(ctx, request)
		})
	}
	var response plugin.CheckResponse
	var err error
	if remembered := p.answers(inFolder); remembered != nil {
		response, err = remembered.check(request, ask)
	} else {
		response, err = ask()
	}
	if len(response.Failures) > 0 {
		p.host.lease.markUntrusted(p, "it refused a resource, and may cache the cause")
	}
	return response, err
}

func (p *proxy) Diff(ctx context.Context, request plugin.DiffRequest) (plugin.DiffResponse, error) {
	inFolder := needsFolder(request.URN.Type())
	ask := func() (plugin.DiffResponse, error) {
		return call(p, inFolder, plugin.DiffResponse{}, func(to plugin.Provider) (plugin.DiffResponse, error) {
			return to.Diff(ctx, request)
		})
	}
	if remembered := p.answers(inFolder); remembered != nil {
		return remembered.diff(request, ask)
	}
	return ask()
}

// answers returns what the process that gets a call has answered before; nil: each call must reach the provider.
func (p *proxy) answers(inFolder bool) *answers {
	if inFolder || !folderFree(p.descriptor.Name) {
		return nil
	}
	own, asked, err := p.target(inFolder)
	if own != nil || err != nil {
		return nil
	}
	return &asked.answers
}

func (p *proxy) Create(ctx context.Context, request plugin.CreateRequest) (plugin.CreateResponse, error) {
	lost := plugin.CreateResponse{Status: resource.StatusUnknown}
	return call(p, needsFolder(request.URN.Type()), lost, func(to plugin.Provider) (plugin.CreateResponse, error) {
		return to.Create(ctx, request)
	})
}

func (p *proxy) Read(ctx context.Context, request plugin.ReadRequest) (plugin.ReadResponse, error) {
	lost := plugin.ReadResponse{Status: resource.StatusUnknown}
	return call(p, needsFolder(request.URN.Type()), lost, func(to plugin.Provider) (plugin.ReadResponse, error) {
		return to.Read(ctx, request)
	})
}

func (p *proxy) Update(ctx context.Context, request plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	lost := plugin.UpdateResponse{Status: resource.StatusUnknown}
	return call(p, needsFolder(request.URN.Type()), lost, func(to plugin.Provider) (plugin.UpdateResponse, error) {
		return to.Update(ctx, request)
	})
}

func (p *proxy) Delete(ctx context.Context, request plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	lost := plugin.DeleteResponse{Status: resource.StatusUnknown}
	return call(p, needsFolder(request.URN.Type()), lost, func(to plugin.Provider) (plugin.DeleteResponse, error) {
		return to.Delete(ctx, request)
	})
}

func (p *proxy) List(ctx context.Context, request plugin.ListRequest) (*plugin.ListStream, error) {
	return call(p, false, nil, func(to plugin.Provider) (*plugin.ListStream, error) { return to.List(ctx, request) })
}

func (p *proxy) Construct(ctx context.Context, request plugin.ConstructRequest) (plugin.ConstructResponse, error) {
	return call(p, true, plugin.ConstructResponse{}, func(to plugin.Provider) (plugin.ConstructResponse, error) {
		return to.Construct(ctx, request)
	})
}

func (p *proxy) Invoke(ctx context.Context, request plugin.InvokeRequest) (plugin.InvokeResponse, error) {
	inFolder := needsFolder(tokens.Type(request.Tok))
	return call(p, inFolder, plugin.InvokeResponse{}, func(to plugin.Provider) (plugin.InvokeResponse, error) {
		return to.Invoke(ctx, request)
	})
}

func (p *proxy) Call(ctx context.Context, request plugin.CallRequest) (plugin.CallResponse, error) {
	return call(p, true, plugin.CallResponse{}, func(to plugin.Provider) (plugin.CallResponse, error) {
		return to.Call(ctx, request)
	})
}
