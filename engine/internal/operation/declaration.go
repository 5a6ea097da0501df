package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

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
	// declaredClient is the address of a program that is a declaration on the command's standard input. A client that
	// knows all resources from the start needs no language runtime.
	declaredClient = "stdin:"
	// aloneClient is the same, and the command gets processes of providers of its own. The client suspects that the
	// program ends a provider, which must not end the operations of others.
	aloneClient = "stdin:alone"
	// declaredRuntime is the runtime of the project for such a program.
	declaredRuntime = "declared"
	// stackType is the type of the first resource.
	stackType = "pulumi:pulumi:Stack"
	// noResource is the index that means no resource.
	noResource = -1
	// interrupted is the error of a program that the engine did not accept completely. It must not end as if it had
	// succeeded, because the engine deletes every object that a successful program did not register.
	interrupted = "the engine ended before it accepted all objects of the stack"
	// deletionTimeout is how long the provider waits until a deleted object is gone, in the form of customTimeouts. The
	// Sentinel awaits deletions itself; this is the shortest time that the provider knows.
	deletionTimeout = "1s"
	// unknownID represents an id that the provider has not assigned yet.
	unknownID = plugin.UnknownStringValue
)

// declaration is a program as data: all resources of a stack. Each resource is registered as soon as those that it
// refers to exist. The Sentinel writes the document, see reside/sentinel/engine/declaration.py.
type declaration struct {
	Resources []declaredResource
}

// declaredResource is one resource. It refers to others by their index in the declaration, and only to earlier ones.
// The first resource is the stack.
type declaredResource struct {
	Type    string
	Name    string
	Version string
	Inputs  map[string]any
	// Secrets are the names of the inputs that are encrypted in the state.
	Secrets []string
	// Parent and Provider are indexes, or noResource.
	Parent   index
	Provider index
	// Custom reports whether a provider manages the resource.
	Custom bool
	// After are the indexes of the resources that must exist before this one.
	After []index
	// Retain reports whether what the resource represents stays when the resource is deleted or replaced.
	Retain bool
	// Replace reports whether the resource may be replaced if the provider wants that, see steady.go.
	Replace bool
	// Creating are properties that are added to the inputs of the call that creates the resource, and stored nowhere: its
	// preconditions.
	Creating map[string]any
}

// index is the index of a resource in the declaration.
type index int

// UnmarshalJSON refuses null, which encoding/json reads as 0.
func (i *index) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return errors.New("null is not an index")
	}
	return json.Unmarshal(text, (*int)(i))
}

// parseDeclaration reads the document strictly: every member is required, no other is accepted, and no value is null.
// An error contains no value of an input.
func parseDeclaration(text string) (*declaration, error) {
	var program declaration
	if !utf8.ValidString(text) {
		return nil, errors.New("the declaration of the stack is invalid: it is not UTF-8")
	}
	if err := json.Unmarshal([]byte(text), &program); err != nil {
		return nil, fmt.Errorf("the declaration of the stack is invalid: %w", err)
	}
	if err := program.check(); err != nil {
		return nil, fmt.Errorf("the declaration of the stack is invalid: %w", err)
	}
	return &program, nil
}

// UnmarshalJSON reads a declaration strictly.
func (d *declaration) UnmarshalJSON(text []byte) error {
	return unmarshalMembers(text, map[string]any{"resources": &d.Resources})
}

// UnmarshalJSON reads a resource strictly.
func (r *declaredResource) UnmarshalJSON(text []byte) error {
	return unmarshalMembers(text, map[string]any{
		"type": &r.Type, "name": &r.Name, "version": &r.Version, "inputs": &r.Inputs, "secrets": &r.Secrets,
		"parent": &r.Parent, "provider": &r.Provider, "custom": &r.Custom, "after": &r.After,
		"retain": &r.Retain, "replace": &r.Replace, "creating": &r.Creating,
	})
}

// unmarshalMembers reads an object that has exactly these members.
func unmarshalMembers(text []byte, targets map[string]any) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	for name := range members {
		if _, known := targets[name]; !known {
			return fmt.Errorf("unknown member %q", name)
		}
	}
	for name, target := range targets {
		value, there := members[name]
		if !there || string(value) == "null" {
			return fmt.Errorf("the member %q is missing", name)
		}
		if err := json.Unmarshal(value, target); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (d *declaration) check() error {
	if len(d.Resources) == 0 || d.Resources[0].Type != stackType {
		return errors.New("the first resource is not the stack")
	}
	for i, resource := range d.Resources {
		if isStack := resource.Type == stackType; isStack != (i == 0) || isStack == resource.Custom {
			return fmt.Errorf("resource %d is a second stack, or not managed by what manages its type", i)
		}
		for _, other := range resource.references() {
			if other < 0 || int(other) >= i {
				return fmt.Errorf("resource %d refers to a resource that is not an earlier one", i)
			}
		}
		for _, name := range resource.Secrets {
			if _, there := resource.Inputs[name]; !there {
				return fmt.Errorf("a secret of resource %d is not an input", i)
			}
		}
	}
	return nil
}

// references returns the indexes of the resources that this one refers to.
func (r *declaredResource) references() []index {
	found := slices.Clone(r.After)
	for _, other := range []index{r.Parent, r.Provider} {
		if other != noResource {
			found = append(found, other)
		}
	}
	return found
}

// factory wraps a factory of plugin hosts; its hosts have the language runtime of this program.
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

// declaredLanguage is the language runtime of declarations. It has only the methods that an operation calls.
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

// Run registers the resources, and the outputs of the stack.
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
	case codes.Unavailable, codes.Canceled: // the engine is shutting down, and reports the cause, too
		return interrupted, false, nil
	default:
		return status.Convert(err).Message(), false, nil
	}
}

func (d *declaration) register(ctx context.Context, monitor pulumirpc.ResourceMonitorClient) error {
	responses := make([]*pulumirpc.RegisterResourceResponse, len(d.Resources))
	registered := make([]chan struct{}, len(d.Resources))
	for i := range registered {
		registered[i] = make(chan struct{})
	}
	group, registering := errgroup.WithContext(ctx) // registering ends with the group
	for i, resource := range d.Resources {
		group.Go(func() error {
			for _, other := range resource.references() {
				select {
				case <-registered[other]:
				case <-registering.Done(): // another resource failed, or the operation is cancelled
					return status.FromContextError(registering.Err()).Err()
				}
			}
			request, err := resource.request(responses)
			if err != nil {
				return err
			}
			responses[i], err = monitor.RegisterResource(registering, request)
			if err != nil {
				return err
			}
			close(registered[i])
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, err := monitor.RegisterResourceOutputs(ctx, &pulumirpc.RegisterResourceOutputsRequest{
		Urn: responses[0].Urn, Outputs: &structpb.Struct{},
	})
	return err
}

// request returns the request that Pulumi's SDK for Python sends for the same resource.
func (r *declaredResource) request(
	responses []*pulumirpc.RegisterResourceResponse,
) (*pulumirpc.RegisterResourceRequest, error) {
	inputs := maps.Clone(r.Inputs)
	for _, name := range r.Secrets {
		inputs[name] = map[string]any{resource.SigKey: sig.Secret, "value": inputs[name]}
	}
	object, err := structpb.NewStruct(inputs)
	if err != nil {
		return nil, fmt.Errorf("the inputs of %s: %w", r.Name, err)
	}
	// Each input depends on no resource. By default, it would depend on all resources that this one depends on.
	none := make(map[string]*pulumirpc.RegisterResourceRequest_PropertyDependencies, len(inputs))
	for name := range inputs {
		none[name] = &pulumirpc.RegisterResourceRequest_PropertyDependencies{}
	}
	request := &pulumirpc.RegisterResourceRequest{
		Type:                    r.Type,
		Name:                    r.Name,
		Custom:                  r.Custom,
		Version:                 r.Version,
		Object:                  object,
		PropertyDependencies:    none,
		AcceptSecrets:           true,
		AcceptResources:         true,
		SupportsPartialValues:   true,
		SupportsResultReporting: true,
	}
	if r.Retain {
		request.RetainOnDelete = &r.Retain
	}
	if r.Parent != noResource {
		request.Parent = responses[r.Parent].Urn
	}
	if r.Provider != noResource {
		id := responses[r.Provider].Id
		if id == "" {
			id = unknownID
		}
		request.Provider = responses[r.Provider].Urn + "::" + id
		request.CustomTimeouts = &pulumirpc.RegisterResourceRequest_CustomTimeouts{Delete: deletionTimeout}
	}
	for _, other := range r.After {
		request.Dependencies = append(request.Dependencies, responses[other].Urn)
	}
	return request, nil
}
