package providers

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// files finds the files that a provider reads besides its configuration. If such a file changes, a new process is
// needed.
type files struct {
	folder  string // of relative paths
	home    string
	environ []string // "NAME=value"
}

// credentialHomes lists where tools of cloud providers keep credentials, below the home folder. Any provider may read
// them.
var credentialHomes = []string{
	".aws/config", ".aws/credentials", ".aws/sso/cache", ".azure", ".config/gcloud",
	".config/gcloud/application_default_credentials.json", ".docker/config.json", ".kube/config", ".netrc",
}

// largestFile is the maximum size in bytes of a file whose content is hashed. Only the stamp of a larger file is hashed.
const largestFile = 1 << 20

func (f files) addTo(d digest, name string, inputs resource.PropertyMap) {
	for _, path := range f.named(resource.NewProperty(inputs)) {
		f.addFile(d, path)
	}
	if name != kubernetes {
		f.addSurroundings(d)
		return
	}
	if value, ok := text(inputs["kubeconfig"]); ok && value != "" {
		f.addKubeconfig(d, value)
		return
	}
	paths := filepath.SplitList(f.variable("KUBECONFIG"))
	if len(paths) == 0 {
		paths = []string{filepath.Join(f.home, ".kube/config")}
	}
	for _, path := range paths {
		f.addKubeconfig(d, path)
	}
}

// addSurroundings adds the stamps of all files that the environment names, and of credentialHomes.
func (f files) addSurroundings(d digest) {
	for _, entry := range f.environ {
		_, value, _ := strings.Cut(entry, "=")
		if !filepath.IsAbs(value) {
			continue
		}
		if stat, err := os.Stat(value); err == nil && stat.Mode().IsRegular() {
			f.addStamp(d, value)
		}
	}
	for _, path := range credentialHomes {
		f.addStamp(d, filepath.Join(f.home, path))
	}
}

// addKubeconfig adds a kubeconfig, given as a path or as its content, with the certificate and key files that it names.
// Token files are not added, because the Kubernetes client reads them again when they change.
func (f files) addKubeconfig(d digest, pathOrContent string) {
	content, folder := []byte(pathOrContent), f.folder
	if looksLikePath(pathOrContent) {
		path := f.absolute(pathOrContent)
		f.addFile(d, path)
		read, err := os.ReadFile(path)
		if err != nil {
			return // the provider reports the error itself
		}
		content, folder = read, filepath.Dir(path)
	}
	var config struct {
		Clusters []struct {
			Cluster map[string]any `yaml:"cluster"`
		} `yaml:"clusters"`
		Users []struct {
			User map[string]any `yaml:"user"`
		} `yaml:"users"`
	}
	if yaml.Unmarshal(content, &config) != nil {
		return // as above
	}
	for _, cluster := range config.Clusters {
		f.addReference(d, folder, cluster.Cluster["certificate-authority"])
	}
	for _, user := range config.Users {
		f.addReference(d, folder, user.User["client-certificate"])
		f.addReference(d, folder, user.User["client-key"])
	}
}

// addReference adds a file that a kubeconfig names. Its path is relative to the folder of the kubeconfig.
func (f files) addReference(d digest, folder string, value any) {
	if path, ok := value.(string); ok && path != "" {
		f.addFile(d, files{folder: folder, home: f.home}.absolute(path))
	}
}

// named returns the paths of files in a configuration, in the order of their keys.
func (f files) named(value resource.PropertyValue) []string {
	switch {
	case value.IsSecret():
		return f.named(value.SecretValue().Element)
	case value.IsArray():
		var paths []string
		for _, element := range value.ArrayValue() {
			paths = append(paths, f.named(element)...)
		}
		return paths
	case value.IsObject():
		var paths []string
		for _, key := range value.ObjectValue().StableKeys() {
			paths = append(paths, f.named(value.ObjectValue()[key])...)
		}
		return paths
	case value.IsString() && looksLikePath(value.StringValue()):
		path := f.absolute(value.StringValue())
		if stat, err := os.Stat(path); err == nil && stat.Mode().IsRegular() {
			return []string{path}
		}
	}
	return nil
}

func (f files) absolute(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(f.home, rest)
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(f.folder, path)
}

func (f files) variable(name string) string {
	for _, entry := range slices.Backward(f.environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// addFile adds the content of a file, or that it does not exist.
func (f files) addFile(d digest, path string) {
	stat, err := os.Stat(path)
	if err != nil || !stat.Mode().IsRegular() || stat.Size() > largestFile {
		f.addStamp(d, path)
		return
	}
	content, err := os.ReadFile(path)
	if err != nil {
		d.add("unreadable", path)
		return
	}
	sum := sha256.Sum256(content)
	d.add("content", path, hex.EncodeToString(sum[:]))
}

// addStamp adds the stamp of a file, or that it does not exist. The stamp of a folder changes when an entry is added or
// removed.
func (f files) addStamp(d digest, path string) {
	stat, err := os.Stat(path)
	if err != nil {
		d.add("missing", path)
		return
	}
	d.add("stamp", path, stamp(stat))
}
