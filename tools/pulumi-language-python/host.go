package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/version"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/types/known/emptypb"
)

// host serves the engine's calls. Other methods return Unimplemented: code generation, packing, linking.
type host struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
	engine string // the engine's gRPC address
}

// Handshake gives an attached host the address of its engine.
func (h *host) Handshake(
	_ context.Context, req *pulumirpc.LanguageHandshakeRequest,
) (*pulumirpc.LanguageHandshakeResponse, error) {
	h.engine = req.GetEngineAddress()
	return &pulumirpc.LanguageHandshakeResponse{}, nil
}

// GetPluginInfo returns the version of the SDK that the host was built against.
func (h *host) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: version.Version}, nil
}

// Cancel does nothing, because the processes of a call end with the call.
func (h *host) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

// RuntimeOptionsPrompts returns no prompts for `pulumi new`.
func (h *host) RuntimeOptionsPrompts(
	context.Context, *pulumirpc.RuntimeOptionsRequest,
) (*pulumirpc.RuntimeOptionsResponse, error) {
	return &pulumirpc.RuntimeOptionsResponse{}, nil
}

// About returns the interpreter that would run the program.
func (h *host) About(ctx context.Context, req *pulumirpc.AboutRequest) (*pulumirpc.AboutResponse, error) {
	var about struct{ Executable, Version string }
	if err := h.ask(ctx, req.GetInfo(), aboutScript, &about); err != nil {
		return nil, err
	}
	return &pulumirpc.AboutResponse{Executable: about.Executable, Version: about.Version}, nil
}

// GetRequiredPackages returns the resource plugins that installed Python packages declare in their pulumi-plugin.json.
func (h *host) GetRequiredPackages(
	ctx context.Context, req *pulumirpc.GetRequiredPackagesRequest,
) (*pulumirpc.GetRequiredPackagesResponse, error) {
	var found []struct{ Name, Version, Server string }
	if err := h.ask(ctx, req.GetInfo(), packagesScript, &found); err != nil {
		return nil, err
	}
	response := &pulumirpc.GetRequiredPackagesResponse{}
	for _, p := range found {
		response.Packages = append(response.Packages, &pulumirpc.PackageDependency{
			Name: p.Name, Version: p.Version, Server: p.Server, Kind: "resource",
		})
	}
	return response, nil
}

// GetProgramDependencies returns the installed Python packages, as `pulumi about` shows them.
func (h *host) GetProgramDependencies(
	ctx context.Context, req *pulumirpc.GetProgramDependenciesRequest,
) (*pulumirpc.GetProgramDependenciesResponse, error) {
	var found []struct{ Name, Version string }
	if err := h.ask(ctx, req.GetInfo(), dependenciesScript, &found); err != nil {
		return nil, err
	}
	response := &pulumirpc.GetProgramDependenciesResponse{}
	for _, d := range found {
		response.Dependencies = append(response.Dependencies, &pulumirpc.DependencyInfo{Name: d.Name, Version: d.Version})
	}
	return response, nil
}

// ask runs a script in the program's interpreter and returns the JSON that it prints.
func (h *host) ask(ctx context.Context, info *pulumirpc.ProgramInfo, script string, answer any) error {
	python, err := findPython(info)
	if err != nil {
		return err
	}
	output, err := python.command(ctx, "-c", script).Output()
	if err != nil {
		return fmt.Errorf("asking %s about its packages: %w", python.executable, withStderr(err))
	}
	if err := json.Unmarshal(output, answer); err != nil {
		return fmt.Errorf("reading what %s says about its packages: %w", python.executable, err)
	}
	return nil
}

// The scripts print JSON and import nothing beyond the standard library.
const (
	aboutScript = `
import json, platform, sys
print(json.dumps({"Executable": sys.executable, "Version": platform.python_version()}))`

	dependenciesScript = `
import importlib.metadata as metadata, json
found = {d.metadata["Name"]: d.version for d in metadata.distributions()}
print(json.dumps([{"Name": n, "Version": v} for n, v in sorted(found.items())]))`

	packagesScript = `
import glob, importlib.metadata as metadata, json, os, sys
found = []
for folder in sys.path:
    for file in glob.glob(os.path.join(glob.escape(folder or "."), "*", "pulumi-plugin.json")):
        with open(file, encoding="utf-8") as stream:
            plugin = json.load(stream)
        if not plugin.get("resource"):
            continue
        module = os.path.basename(os.path.dirname(file))
        version = plugin.get("version") or metadata.version(module.replace("_", "-"))
        name = plugin.get("name") or module.removeprefix("pulumi_").replace("_", "-")
        found.append({"Name": name, "Version": version, "Server": plugin.get("server", "")})
print(json.dumps(found))`
)
