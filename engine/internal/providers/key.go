package providers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// bootKey identifies processes that are equal before they are configured. It is a hash, because its parts may be
// secret.
type bootKey string

// configKey identifies processes with equal configurations, among those of one bootKey.
type configKey string

// digest hashes lists of named fields; different lists have different encodings.
type digest struct{ hash.Hash }

func newDigest() digest { return digest{sha256.New()} }

func (d digest) add(name string, values ...string) {
	fmt.Fprintf(d, "%q %d", name, len(values))
	for _, value := range values {
		fmt.Fprintf(d, " %q", value)
	}
}

func (d digest) addMap(name string, values map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		d.add(name, key, values[key])
	}
}

func (d digest) sum() string { return hex.EncodeToString(d.Sum(nil)[:16]) }

// spec describes how to start a process.
type spec struct {
	descriptor             workspace.PluginDescriptor
	path                   string            // of the program
	folder                 string            // working folder
	project                string            // PULUMI_PROJECT; empty for a process that serves all projects
	options                map[string]string // runtime options, which the process gets as PULUMI_RUNTIME_*
	config                 string            // PULUMI_CONFIG
	disableProviderPreview bool
	credentials            map[string]string // for Pulumi Cloud
	env                    env.Env
}

// key returns the identity of processes that are started with this spec. The stamp of the binary is part of it, so a
// new process is started after the provider was reinstalled.
func (s spec) key() (bootKey, error) {
	d := newDigest()
	stat, err := os.Stat(s.path)
	if err != nil {
		return "", fmt.Errorf("the provider %s cannot be read: %w", s.descriptor.Name, err)
	}
	d.add("program", s.path, stamp(stat))
	d.add("name", s.descriptor.Name, fmt.Sprint(s.descriptor.Version), s.descriptor.PluginDownloadURL)
	for _, platform := range slices.Sorted(maps.Keys(s.descriptor.Checksums)) {
		d.add("checksum", platform, hex.EncodeToString(s.descriptor.Checksums[platform]))
	}
	d.add("place", s.folder, s.project, s.config, fmt.Sprint(s.disableProviderPreview))
	d.addMap("option", s.options)
	d.addMap("credential", s.credentials)
	d.addMap("environment", maps.Collect(s.env.GetStore().Values()))
	return bootKey(d.sum()), nil
}

// stamp returns a text that changes when the file is written or replaced.
func stamp(stat os.FileInfo) string {
	inode := uint64(0)
	if system, ok := stat.Sys().(*syscall.Stat_t); ok {
		inode = system.Ino
	}
	return fmt.Sprint(inode, stat.Size(), stat.ModTime().UnixNano())
}

// configurationKey returns the identity of a configuration: all inputs, secrets included, and the content of the files
// that they or the environment name. The URN of a provider that is not folder-free is part of it, too.
func configurationKey(name string, request plugin.ConfigureRequest, outside files) configKey {
	d := newDigest()
	addProperty(d, "inputs", resource.NewProperty(request.Inputs))
	if !folderFree(name) && request.URN != nil {
		d.add("urn", string(*request.URN))
	}
	outside.addTo(d, name, request.Inputs)
	return configKey(d.sum())
}

// addProperty hashes a value, with the type of each level.
func addProperty(d digest, name string, value resource.PropertyValue) {
	switch {
	case value.IsSecret():
		addProperty(d, name+"!", value.SecretValue().Element)
	case value.IsArray():
		d.add(name+"[]", fmt.Sprint(len(value.ArrayValue())))
		for _, element := range value.ArrayValue() {
			addProperty(d, "", element)
		}
	case value.IsObject():
		d.add(name+"{}", fmt.Sprint(len(value.ObjectValue())))
		for _, key := range value.ObjectValue().StableKeys() {
			addProperty(d, string(key), value.ObjectValue()[key])
		}
	case value.IsAsset():
		d.add(name+"<asset>", value.AssetValue().Hash)
	case value.IsArchive():
		d.add(name+"<archive>", value.ArchiveValue().Hash)
	default:
		d.add(name, value.TypeString(), fmt.Sprint(value.V))
	}
}

// runtimeOptions returns the options of the program's language that the process of a provider gets. The address of the
// program is removed, because it differs in each operation and a kept provider does not use it.
func runtimeOptions(options map[string]any) map[string]string {
	seen := map[string]string{}
	for key, value := range options {
		if !strings.EqualFold(key, "address") {
			seen[key] = fmt.Sprint(value)
		}
	}
	return seen
}
