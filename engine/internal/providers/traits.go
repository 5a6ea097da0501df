package providers

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// kubernetes is the provider whose file accesses are known for each call.
const kubernetes = "kubernetes"

// folderFree reports whether a provider behaves the same in each working folder and project, so that one process may
// serve all stacks. A process of any other provider is used with one folder, project and URN of the provider only.
//
// The Kubernetes provider (source of 4.25) uses its working folder in the calls of [needsFolder] only, and never the
// project. It uses PULUMI_CONFIG, which is part of the key of each provider.
func folderFree(name string) bool { return name == kubernetes }

// needsFolder reports whether a call for this type or function of a folder-free provider may open files with relative
// paths: charts, kustomizations and YAML files.
func needsFolder(token tokens.Type) bool {
	module, _, _ := strings.Cut(strings.TrimPrefix(string(token), kubernetes+":"), ":")
	return strings.HasPrefix(module, "helm") || strings.HasPrefix(module, "kustomize") || strings.HasPrefix(module, "yaml")
}

// reasonToOwn returns why a provider must run in a separate process for each operation, as with the stock engine, or an
// empty string if its process can be kept.
//
// For reasons that are known only later (parameters, a configuration with unknown values), the proxy starts the
// separate process.
func reasonToOwn(ctx *plugin.Context, host plugin.Host, descriptor workspace.PluginDescriptor) (string, error) {
	if descriptor.Kind != apitype.ResourcePlugin {
		return "it is not a resource plugin", nil
	}
	switch descriptor.Name {
	case "pulumi", "pulumi-python", "pulumi-nodejs":
		return "it runs code of the program", nil
	}
	if descriptor.IsGitPlugin() {
		return "it comes from a repository", nil
	}
	port, err := plugin.GetProviderAttachPort(tokens.Package(descriptor.Name))
	if err != nil || port != nil {
		return "PULUMI_DEBUG_PROVIDERS names it", err
	}
	debugging := plugin.DebugSpec{Type: plugin.DebugTypePlugin, Name: descriptor.Name}
	if !ctx.DisableProviderDebugging() && host.AttachDebugger(debugging) {
		return "a debugger is attached", nil
	}
	for _, local := range ctx.ProjectPlugins() {
		if local.Kind == descriptor.Kind && local.Name == descriptor.Name {
			return "the project has a plugin of its own", nil
		}
	}
	return "", nil
}

// reasonToOwnPath is [reasonToOwn] for the path of the plugin. Only a binary can be kept, not a folder that a language
// host runs.
func reasonToOwnPath(path string) string {
	stat, err := os.Stat(path)
	if err != nil || !stat.Mode().IsRegular() {
		return "a language host runs it"
	}
	return ""
}

// relativePaths reports whether a Kubernetes configuration contains a path relative to the working folder.
func relativePaths(inputs resource.PropertyMap, environ func(string) string) bool {
	for _, key := range []resource.PropertyKey{"kubeconfig", "renderYamlToDirectory"} {
		if value, ok := text(inputs[key]); ok && looksLikePath(value) && !filepath.IsAbs(value) && value[0] != '~' {
			return true
		}
	}
	if value, ok := text(inputs["kubeconfig"]); ok && value != "" {
		return false
	}
	for _, path := range filepath.SplitList(environ("KUBECONFIG")) {
		if path != "" && !filepath.IsAbs(path) {
			return true
		}
	}
	return false
}

// text returns the string value of a property, secret or not.
func text(value resource.PropertyValue) (string, bool) {
	for value.IsSecret() {
		value = value.SecretValue().Element
	}
	if !value.IsString() {
		return "", false
	}
	return value.StringValue(), true
}

// looksLikePath distinguishes a path from the content of a file.
func looksLikePath(value string) bool {
	return value != "" && len(value) < 4096 && !strings.ContainsAny(value, "\n\x00{")
}
