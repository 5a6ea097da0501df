// Command pulumi-resource-kubernetes is Pulumi's Kubernetes provider, release 4.25.0.
//
// The release is the tagless module version pinned in go.mod. The program makes resources by token and needs
// neither the provider's schema nor its Terraform mapping, which the release embeds and this build leaves empty.
package main

import "github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"

func main() {
	provider.Serve("kubernetes", "4.25.0", []byte("{}"), []byte("{}"))
}
