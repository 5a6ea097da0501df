// Command trialproviders is two resource providers for tests, because equivalence must hold for other providers than
// Kubernetes too. The name of its file says which of them it is:
//
//   - pulumi-resource-chance makes texts. A text does not change while its inputs do not; any change replaces it. It is
//     a secret. (Such as the providers random and tls, whose modules cannot be had.)
//   - pulumi-resource-shell runs commands, in its own environment and working folder, and changes in place. (Such as the
//     provider command.)
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/blang/semver"
	"google.golang.org/grpc"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

func main() {
	name := strings.TrimPrefix(filepath.Base(os.Args[0]), "pulumi-resource-")
	made := map[string]plugin.Provider{"chance": &chance{common: common{name: "chance"}}, "shell": &shell{common{name: "shell"}}}
	handle, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{Init: func(server *grpc.Server) error {
		pulumirpc.RegisterResourceProviderServer(server, plugin.NewProviderServer(made[name]))
		return nil
	}})
	if err == nil {
		fmt.Println(handle.Port)
		err = <-handle.Done
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// common are the calls in which both providers are equal.
type common struct {
	plugin.UnimplementedProvider
	name string
}

func (c *common) Pkg() tokens.Package { return tokens.Package(c.name) }

func (c *common) Close() error { return nil }

func (c *common) SignalCancellation(context.Context) error { return nil }

func (c *common) GetPluginInfo(context.Context) (plugin.PluginInfo, error) {
	return plugin.PluginInfo{Version: &semver.Version{Major: 1}}, nil
}

func (c *common) GetSchema(context.Context, plugin.GetSchemaRequest) (plugin.GetSchemaResponse, error) {
	return plugin.GetSchemaResponse{Schema: fmt.Appendf(nil, `{"name": %q, "version": "1.0.0"}`, c.name)}, nil
}

func (c *common) CheckConfig(_ context.Context, r plugin.CheckConfigRequest) (plugin.CheckConfigResponse, error) {
	return plugin.CheckConfigResponse{Properties: r.News}, nil
}

func (c *common) DiffConfig(_ context.Context, r plugin.DiffConfigRequest) (plugin.DiffConfigResponse, error) {
	return compare(r.OldInputs, r.NewInputs, func(resource.PropertyKey) bool { return false }), nil
}

func (c *common) Configure(context.Context, plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
	return plugin.ConfigureResponse{}, nil
}

func (c *common) Check(_ context.Context, r plugin.CheckRequest) (plugin.CheckResponse, error) {
	return plugin.CheckResponse{Properties: r.News}, nil
}

// Read returns what is stored: nothing outside of the state can change.
func (c *common) Read(_ context.Context, r plugin.ReadRequest) (plugin.ReadResponse, error) {
	return plugin.ReadResponse{
		ReadResult: plugin.ReadResult{ID: r.ID, Inputs: r.Inputs, Outputs: r.State}, Status: resource.StatusOK,
	}, nil
}

// compare returns which properties differ, and replaces for those that replace.
func compare(before, after resource.PropertyMap, replaces func(resource.PropertyKey) bool) plugin.DiffResult {
	result := plugin.DiffResult{Changes: plugin.DiffNone}
	for _, key := range merged(before, after).StableKeys() {
		if key == "__internal" || before[key].DeepEquals(after[key]) {
			continue
		}
		result.Changes = plugin.DiffSome
		result.ChangedKeys = append(result.ChangedKeys, key)
		if replaces(key) {
			result.ReplaceKeys = append(result.ReplaceKeys, key)
		}
	}
	return result
}

func merged(one, other resource.PropertyMap) resource.PropertyMap {
	all := one.Copy()
	for key, value := range other {
		all[key] = value
	}
	return all
}

// chance makes texts.
type chance struct {
	common
	seed string
}

func (c *chance) Configure(_ context.Context, r plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
	c.seed = textOf(r.Inputs["seed"])
	return plugin.ConfigureResponse{}, nil
}

func (c *chance) Check(_ context.Context, r plugin.CheckRequest) (plugin.CheckResponse, error) {
	inputs := r.News.Copy()
	length, given := inputs["length"]
	switch {
	case !given:
		inputs["length"] = resource.NewProperty(12.0)
	case length.IsNumber() && (length.NumberValue() < 1 || length.NumberValue() > 64):
		failure := plugin.CheckFailure{Property: "length", Reason: "must be between 1 and 64"}
		return plugin.CheckResponse{Failures: []plugin.CheckFailure{failure}}, nil
	}
	return plugin.CheckResponse{Properties: inputs}, nil
}

func (c *chance) Diff(_ context.Context, r plugin.DiffRequest) (plugin.DiffResponse, error) {
	return compare(r.OldInputs, r.NewInputs, func(resource.PropertyKey) bool { return true }), nil
}

func (c *chance) Create(_ context.Context, r plugin.CreateRequest) (plugin.CreateResponse, error) {
	made := r.Properties.Copy()
	if r.Preview {
		made["result"] = resource.MakeComputed(resource.NewProperty(""))
		return plugin.CreateResponse{Properties: made, Status: resource.StatusOK}, nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %v", c.seed, r.URN, r.Properties["keepers"]))
	text := hex.EncodeToString(sum[:])[:int(r.Properties["length"].NumberValue())]
	made["result"] = resource.MakeSecret(resource.NewProperty(text))
	return plugin.CreateResponse{ID: resource.ID("made"), Properties: made, Status: resource.StatusOK}, nil
}

func (c *chance) Delete(context.Context, plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	return plugin.DeleteResponse{Status: resource.StatusOK}, nil
}

func (c *chance) Invoke(_ context.Context, r plugin.InvokeRequest) (plugin.InvokeResponse, error) {
	text := c.seed + " " + textOf(resource.ToResourcePropertyMap(r.Args)["text"])
	found := resource.PropertyMap{"result": resource.NewProperty(text)}
	return plugin.InvokeResponse{Properties: resource.FromResourcePropertyMap(found)}, nil
}

// shell runs commands.
type shell struct{ common }

func (s *shell) Diff(_ context.Context, r plugin.DiffRequest) (plugin.DiffResponse, error) {
	return compare(r.OldInputs, r.NewInputs, func(key resource.PropertyKey) bool { return key == "triggers" }), nil
}

func (s *shell) Create(ctx context.Context, r plugin.CreateRequest) (plugin.CreateResponse, error) {
	made, err := run(ctx, r.Properties, r.Preview, "create")
	if err != nil {
		return plugin.CreateResponse{Status: resource.StatusUnknown}, err // nothing was created
	}
	return plugin.CreateResponse{ID: resource.ID("ran"), Properties: made, Status: resource.StatusOK}, nil
}

func (s *shell) Update(ctx context.Context, r plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	made, err := run(ctx, r.NewInputs, r.Preview, "update", "create")
	if err != nil {
		return plugin.UpdateResponse{Status: resource.StatusUnknown}, err
	}
	return plugin.UpdateResponse{Properties: made, Status: resource.StatusOK}, nil
}

func (s *shell) Delete(ctx context.Context, r plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	if _, err := run(ctx, r.Inputs, false, "delete"); err != nil {
		return plugin.DeleteResponse{Status: resource.StatusUnknown}, err
	}
	return plugin.DeleteResponse{Status: resource.StatusOK}, nil
}

// run runs the first of these commands that the inputs have, and returns the outputs.
func run(ctx context.Context, inputs resource.PropertyMap, preview bool, names ...resource.PropertyKey) (
	resource.PropertyMap, error,
) {
	made := inputs.Copy()
	made["stdout"] = resource.NewProperty("")
	for _, name := range names {
		line := textOf(inputs[name])
		switch {
		case line == "":
			continue
		case preview:
			made["stdout"] = resource.MakeComputed(resource.NewProperty(""))
			return made, nil
		}
		command := exec.CommandContext(ctx, "/bin/sh", "-c", line)
		var complaint bytes.Buffer
		command.Stderr = &complaint
		output, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("the command failed (%w): %s", err, complaint.String())
		}
		made["stdout"] = resource.NewProperty(strings.TrimSpace(string(output)))
		return made, nil
	}
	return made, nil
}

// textOf returns the text of a property, secret or not.
func textOf(value resource.PropertyValue) string {
	for value.IsSecret() {
		value = value.SecretValue().Element
	}
	if !value.IsString() {
		return ""
	}
	return value.StringValue()
}
