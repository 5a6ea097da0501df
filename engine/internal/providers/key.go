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

// bootKey identifies processes that are equal until they are configured. A hash, because what goes in may be secret.
type bootKey string

// configKey identifies processes that are equal after their configuration, among those of one bootKey.
type configKey string

// digest hashes named fields so that no two different lists of fields look alike.
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

// spec is all that a process is started with.
type spec struct {
	descriptor             workspace.PluginDescriptor
	path                   string            // of the program
	folder                 string            // that it works in
	project                string            // PULUMI_PROJECT; empty for a process that serves all projects
	options                map[string]string // runtime options that it sees as PULUMI_RUNTIME_*
	config                 string            // PULUMI_CONFIG
	disableProviderPreview bool
	credentials            map[string]string // for Pulumi's cloud
	env                    env.Env
}

// key is the identity of processes that are started so. The program's file is part of it, so that a provider that was
// installed anew is started anew.
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

// stamp changes whenever a file is written or replaced.
func stamp(stat os.FileInfo) string {
	inode := uint64(0)
	if system, ok := stat.Sys().(*syscall.Stat_t); ok {
		inode = system.Ino
	}
	return fmt.Sprint(inode, stat.Size(), stat.ModTime().UnixNano())
}

// configurationKey is the identity of a configuration: all inputs, secrets included, and the content of what they or the
// surroundings of the provider name. A provider that is not folder-free may also look at its own URN.
func configurationKey(name string, request plugin.ConfigureRequest, outside files) configKey {
	d := newDigest()
	addProperty(d, "inputs", resource.NewProperty(request.Inputs))
	if !folderFree(name) && request.URN != nil {
		d.add("urn", string(*request.URN))
	}
	outside.addTo(d, name, request.Inputs)
	return configKey(d.sum())
}

// addProperty hashes a value, with its type at every level.
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

// runtimeOptions are the options of the program's language that a provider's process sees, without the address of the
// program, which is another one in each operation and means nothing to a provider that can be kept.
func runtimeOptions(options map[string]any) map[string]string {
	seen := map[string]string{}
	for key, value := range options {
		if !strings.EqualFold(key, "address") {
			seen[key] = fmt.Sprint(value)
		}
	}
	return seen
}
