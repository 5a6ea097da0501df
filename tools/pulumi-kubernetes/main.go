// Command pulumi-resource-kubernetes is Pulumi's Kubernetes provider, release 4.25.0.
//
// The release is the tagless module version pinned in go.mod. The program makes resources by token and needs
// neither the provider's schema nor its Terraform mapping, which the release embeds and this build leaves empty.
//
// The release notices that its engine was killed, but does not end: it would go on writing to the cluster, and stay for
// ever. This build ends with its engine.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

// engineCheckInterval is how often the provider looks whether the engine that started it is still there.
const engineCheckInterval = time.Second

func main() {
	go endWithEngine(os.Getppid())
	provider.Serve("kubernetes", "4.25.0", []byte("{}"), []byte("{}"))
}

// endWithEngine ends the process once another one has become its parent, which happens when the engine is gone.
func endWithEngine(engine int) {
	for range time.Tick(engineCheckInterval) {
		if os.Getppid() != engine {
			fmt.Fprintln(os.Stderr, "pulumi-resource-kubernetes: the engine is gone")
			os.Exit(1)
		}
	}
}
