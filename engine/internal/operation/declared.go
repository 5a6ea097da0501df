package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// declaredClient is the address of a program that is data, and came on the command's standard input. A client whose
	// resources are all known from the start needs no language runtime of its own.
	declaredClient = "stdin:"
	// declaredRuntime is what such a program's project has as its runtime.
	declaredRuntime = "declared"
	// unknownID stands for the id that a provider will only get.
	unknownID = plugin.UnknownStringValue
)

// declaration is a program as data. Resources are registered at once, each as soon as those that it names are there.
type declaration struct {
	Resources []declared `json:"resources"`
}

// declared is one resource. Others are named by their place in the declaration, and must come before it.
type declared struct {
	Type    string         `json:"type"`
	Name    string         `json:"name"`
	Version string         `json:"version"`
	Inputs  map[string]any `json:"inputs"`
	// Secrets are names of inputs that are encrypted in the state.
	Secrets []string `json:"secrets"`
	// Parent and Provider are -1 for none. A resource without a provider that is no provider itself is a component.
	Parent   int   `json:"parent"`
	Provider int   `json:"provider"`
	Custom   bool  `json:"custom"`
	After    []int `json:"after"`
}

func parseDeclaration(text string) (*declaration, error) {
	var program declaration
	if err := json.Unmarshal([]byte(text), &program); err != nil {
		return nil, fmt.Errorf("the program on standard input: %w", err)
	}
	for i, each := range program.Resources {
		for _, other := range append([]int{each.Parent, each.Provider}, each.After...) {
			if other >= i {
				return nil, fmt.Errorf("the program on standard input: resource %q names one after it", each.Name)
			}
		}
	}
	return &program, nil
}

// factory wraps a factory of plugin hosts so that they have this program's language runtime.
func (d *declaration) factory(base engine.HostFactory) engine.HostFactory {
	return func(ctx context.Context, sink, status diag.Sink, debug plugin.DebugContext) (plugin.Host, error) {
		inner, err := base(ctx, sink, status, debug)
		return &declaredHost{inner, d}, err
	}
}

type declaredHost struct {
	plugin.Host
	program *declaration
}

func (h *declaredHost) LanguageRuntime(ctx *plugin.Context, runtime string) (plugin.LanguageRuntime, error) {
	if runtime != declaredRuntime {
		return h.Host.LanguageRuntime(ctx, runtime)
	}
	return &declaredLanguage{program: h.program}, nil
}

// declaredLanguage is the language of programs that are data. What an operation does not ask a language is missing.
type declaredLanguage struct {
	plugin.LanguageRuntime
	program *declaration
}

func (l *declaredLanguage) Close() error                 { return nil }
func (l *declaredLanguage) Cancel(context.Context) error { return nil }

func (l *declaredLanguage) GetPluginInfo(context.Context) (plugin.PluginInfo, error) {
	return plugin.PluginInfo{}, nil
}

func (l *declaredLanguage) GetRequiredPackages(
	context.Context, plugin.ProgramInfo,
) ([]workspace.PackageDescriptor, []workspace.PackageSpec, error) {
	return nil, nil, nil
}

// Run registers the resources, and the outputs of the first, which is the stack.
func (l *declaredLanguage) Run(ctx context.Context, info plugin.RunInfo) (string, bool, error) {
	connection, err := grpc.NewClient(info.MonitorAddress,
		grpc.WithTransportCredentials(insecure.NewCredentials()), rpcutil.GrpcChannelOptions())
	if err != nil {
		return "", false, err
	}
	defer connection.Close()
	err = l.program.register(ctx, pulumirpc.NewResourceMonitorClient(connection))
	switch status.Code(err) {
	case codes.OK:
		return "", false, nil
	case codes.Unavailable, codes.Canceled: // the engine is shutting down, and says itself what went wrong
		return "", false, nil
	default:
		return status.Convert(err).Message(), false, nil
	}
}

func (d *declaration) register(ctx context.Context, monitor pulumirpc.ResourceMonitorClient) error {
	if len(d.Resources) == 0 {
		return nil
	}
	answers := make([]*pulumirpc.RegisterResourceResponse, len(d.Resources))
	there := make([]chan struct{}, len(d.Resources))
	for i := range there {
		there[i] = make(chan struct{})
	}
	group, ctx := errgroup.WithContext(ctx)
	for i, each := range d.Resources {
		group.Go(func() error {
			for _, other := range append([]int{each.Parent, each.Provider}, each.After...) {
				if other < 0 {
					continue
				}
				select {
				case <-there[other]:
				case <-ctx.Done():
					return nil // another failed
				}
			}
			request, err := each.request(answers)
			if err != nil {
				return err
			}
			answers[i], err = monitor.RegisterResource(ctx, request)
			if err != nil {
				return err
			}
			close(there[i])
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, err := monitor.RegisterResourceOutputs(ctx, &pulumirpc.RegisterResourceOutputsRequest{
		Urn: answers[0].Urn, Outputs: &structpb.Struct{},
	})
	return err
}

// request is what Pulumi's SDK for Python sends for the same resource.
func (r *declared) request(answers []*pulumirpc.RegisterResourceResponse) (*pulumirpc.RegisterResourceRequest, error) {
	inputs := maps.Clone(r.Inputs)
	for _, name := range r.Secrets {
		inputs[name] = map[string]any{resource.SigKey: sig.Secret, "value": inputs[name]}
	}
	object, err := structpb.NewStruct(inputs)
	if err != nil {
		return nil, fmt.Errorf("the inputs of %s: %w", r.Name, err)
	}
	// Said of each input, or it would follow from all resources that this one comes after
	free := make(map[string]*pulumirpc.RegisterResourceRequest_PropertyDependencies, len(inputs))
	for name := range inputs {
		free[name] = &pulumirpc.RegisterResourceRequest_PropertyDependencies{}
	}
	request := &pulumirpc.RegisterResourceRequest{
		Type:                    r.Type,
		Name:                    r.Name,
		Custom:                  r.Custom,
		Version:                 r.Version,
		Object:                  object,
		PropertyDependencies:    free,
		AcceptSecrets:           true,
		AcceptResources:         true,
		SupportsPartialValues:   true,
		SupportsResultReporting: true,
	}
	if r.Parent >= 0 {
		request.Parent = answers[r.Parent].Urn
	}
	if r.Provider >= 0 {
		id := answers[r.Provider].Id
		if id == "" {
			id = unknownID
		}
		request.Provider = answers[r.Provider].Urn + "::" + id
	}
	for _, other := range r.After {
		request.Dependencies = append(request.Dependencies, answers[other].Urn)
	}
	return request, nil
}
