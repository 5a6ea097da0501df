// Command pulumi-resource-kubernetes is Pulumi's Kubernetes provider, release 4.25.0.
//
// The release is the tagless module version pinned in go.mod. The program registers resources by token and needs
// neither the provider's schema nor its Terraform mapping. The release embeds both; in this build they are empty.
//
// The release does not end when its engine is killed, so it would continue to write to the cluster. This build ends
// with its engine.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

// engineCheckInterval is the interval of checks that the engine that started the provider is alive.
const engineCheckInterval = time.Second

func main() {
	go endWithEngine(os.Getppid())
	provider.Serve("kubernetes", "4.25.0", []byte("{}"), []byte("{}"))
}

// endWithEngine ends the process when its parent has changed, which happens when the engine has ended.
func endWithEngine(engine int) {
	for range time.Tick(engineCheckInterval) {
		if os.Getppid() != engine {
			fmt.Fprintln(os.Stderr, "pulumi-resource-kubernetes: the engine is gone")
			os.Exit(1)
		}
	}
}
