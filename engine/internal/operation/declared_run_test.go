package operation

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// monitor is an engine that answers each registration with what `answer` returns for the name of the resource.
type monitor struct {
	pulumirpc.UnimplementedResourceMonitorServer
	answer  func(ctx context.Context, name string) error
	lock    sync.Mutex
	seen    []string
	outputs []string
}

func (m *monitor) RegisterResource(
	ctx context.Context, request *pulumirpc.RegisterResourceRequest,
) (*pulumirpc.RegisterResourceResponse, error) {
	if err := m.answer(ctx, request.Name); err != nil {
		return nil, err
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	m.seen = append(m.seen, request.Name)
	return &pulumirpc.RegisterResourceResponse{Urn: "urn:" + request.Name, Id: request.Name}, nil
}

func (m *monitor) RegisterResourceOutputs(
	_ context.Context, request *pulumirpc.RegisterResourceOutputsRequest,
) (*emptypb.Empty, error) {
	m.outputs = append(m.outputs, request.Urn)
	return &emptypb.Empty{}, nil
}

// serve returns the address of an engine.
func (m *monitor) serve(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pulumirpc.RegisterResourceMonitorServer(server, m)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// runDeclared runs the valid declaration against an engine at an address, and returns the error of the program.
func runDeclared(ctx context.Context, t *testing.T, address string) string {
	t.Helper()
	program, err := parseDeclaration(string(readCases(t).Valid.Document))
	if err != nil {
		t.Fatal(err)
	}
	language := &declaredLanguage{program: program}
	failure, bail, err := language.Run(ctx, plugin.RunInfo{MonitorAddress: address})
	if err != nil || bail {
		t.Fatalf("expected an error of the program, got %v %v", bail, err)
	}
	return failure
}

func accept(context.Context, string) error { return nil }

func TestAProgramRegistersAllResourcesAndTheOutputsOfTheStack(t *testing.T) {
	engine := &monitor{answer: accept}
	if failure := runDeclared(t.Context(), t, engine.serve(t)); failure != "" {
		t.Fatal(failure)
	}
	if len(engine.seen) != 4 || len(engine.outputs) != 1 || engine.outputs[0] != "urn:reside-demo" {
		t.Errorf("expected four resources and the outputs of the stack, got %v %v", engine.seen, engine.outputs)
	}
}

func TestAProgramThatDoesNotReachTheEngineFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	if failure := runDeclared(t.Context(), t, address); failure != interrupted {
		t.Errorf("expected %q, got %q", interrupted, failure)
	}
}

// An engine that ends answers so, also if it lost the objects that come later.
func TestAProgramThatTheEngineDoesNotAcceptCompletelyFails(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.Canceled} {
		for _, refused := range []string{"reside-demo", "kubernetes", "s", "web"} {
			engine := &monitor{answer: func(_ context.Context, name string) error {
				if name == refused {
					return status.Error(code, "the engine is shutting down")
				}
				return nil
			}}
			if failure := runDeclared(t.Context(), t, engine.serve(t)); failure != interrupted {
				t.Errorf("%v at %s: expected %q, got %q", code, refused, interrupted, failure)
			}
		}
	}
}

func TestAnErrorOfTheEngineIsTheProgramsError(t *testing.T) {
	engine := &monitor{answer: func(_ context.Context, name string) error {
		if name == "s" {
			return status.Error(codes.Unknown, "no such type")
		}
		return nil
	}}
	if failure := runDeclared(t.Context(), t, engine.serve(t)); failure != "no such type" {
		t.Errorf("expected the engine's error, got %q", failure)
	}
}

func TestACancelledProgramFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	engine := &monitor{answer: func(ctx context.Context, name string) error {
		if name == "kubernetes" {
			cancel()
			<-ctx.Done()
		}
		return nil
	}}
	if failure := runDeclared(ctx, t, engine.serve(t)); failure != interrupted {
		t.Errorf("expected %q, got %q", interrupted, failure)
	}
}
